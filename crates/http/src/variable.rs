//! Variables in texts of a configuration, and the one way to write them: `$name`, `${name}`, `$1`; `$$` is a dollar.
//!
//! Values of fields, bodies, locations, targets and lines of logs are such texts, each with a vocabulary of its own.

use std::fmt;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextPart<V> {
    /// A constant text.
    Text(String),
    /// What a variable stands for.
    Variable(V),
}

/// A `$` that begins neither a name nor `$$`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoneDollar;

/// Reads a text. `variable` says what a name stands for.
///
/// # Errors
/// A `$` that begins no variable, and what `variable` refuses.
pub fn text_parts<V, E: From<LoneDollar>>(
    text: &str,
    mut variable: impl FnMut(&str) -> Result<V, E>,
) -> Result<Vec<TextPart<V>>, E> {
    let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some((before, behind)) = rest.split_once('$') {
        plain.push_str(before);
        if let Some(behind) = behind.strip_prefix('$') {
            plain.push('$');
            rest = behind;
            continue;
        }
        let (name, behind) = name_of(behind).ok_or(LoneDollar)?;
        if !plain.is_empty() {
            parts.push(TextPart::Text(std::mem::take(&mut plain)));
        }
        parts.push(TextPart::Variable(variable(name)?));
        rest = behind;
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        parts.push(TextPart::Text(plain));
    }
    Ok(parts)
}

/// The name behind a `$`, and what follows: letters, digits and `_`; digits alone; or anything in braces.
fn name_of(text: &str) -> Option<(&str, &str)> {
    if let Some(text) = text.strip_prefix('{') {
        return text.split_once('}').filter(|(name, _)| !name.is_empty());
    }
    let is_number = text.starts_with(|first: char| first.is_ascii_digit());
    let belongs = |character: char| match is_number {
        true => character.is_ascii_digit(),
        false => character.is_ascii_alphanumeric() || character == '_',
    };
    let end = text.find(|character| !belongs(character)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Writes parts as [`text_parts`] reads them, with braces where they are needed.
pub fn text_of_parts<V: fmt::Display>(parts: &[TextPart<V>]) -> String {
    let mut text = String::new();
    for (index, part) in parts.iter().enumerate() {
        match part {
            TextPart::Text(plain) => text.push_str(&plain.replace('$', "$$")),
            TextPart::Variable(variable) => {
                let (name, next) = (variable.to_string(), parts.get(index + 1));
                let goes_on = matches!(next, Some(TextPart::Text(next))
                    if next.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_'));
                let is_plain = name_of(&name) == Some((&name, ""));
                match is_plain && !goes_on {
                    true => text.extend(["$", &name]),
                    false => text.extend(["${", &name, "}"]),
                }
            }
        }
    }
    text
}

/// What stands for a part of a request or of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Variable {
    /// `$client_ip`: the client's address; behind a trusted proxy, the one that the proxy tells of.
    ClientIp,
    /// `$scheme`: `http` or `https`.
    Scheme,
    /// `$host`: the host that the client asks, without its port.
    Host,
    /// `$method`: the method.
    Method,
    /// `$uri`: path and query, as the client has spelled them.
    Uri,
    /// `$rest`: the part of both behind the path of the route.
    Rest,
    /// `$path`: the path.
    Path,
    /// `$query`: the query, without its question mark.
    Query,
    /// `$request_id`: the id of the request, if the site gives ids.
    RequestId,
    /// `$cache_status`: what the shared cache has done, in a word.
    CacheStatus,
    /// `$upstream`: the application or origin that has answered.
    Upstream,
    /// `$upstream_status`: the status with which it has answered.
    UpstreamStatus,
    /// `$ssl_protocol`: the version of TLS.
    SslProtocol,
    /// `$ssl_client_subject`: the subject of the client's certificate.
    SslClientSubject,
    /// `$ssl_client_verify`: `SUCCESS` if the client has a certificate, which is accepted then; `NONE` if it has none.
    SslClientVerify,
    /// `$1`, `$name`: what a group of the route's pattern has matched.
    Group(String),
}

impl Variable {
    /// All that have a name of their own.
    pub const NAMED: [(&'static str, Self); 15] = [
        ("client_ip", Self::ClientIp),
        ("scheme", Self::Scheme),
        ("host", Self::Host),
        ("method", Self::Method),
        ("uri", Self::Uri),
        ("rest", Self::Rest),
        ("path", Self::Path),
        ("query", Self::Query),
        ("request_id", Self::RequestId),
        ("cache_status", Self::CacheStatus),
        ("upstream", Self::Upstream),
        ("upstream_status", Self::UpstreamStatus),
        ("ssl_protocol", Self::SslProtocol),
        ("ssl_client_subject", Self::SslClientSubject),
        ("ssl_client_verify", Self::SslClientVerify),
    ];

    /// The one with this name. A name that is not known is a group.
    pub fn of(name: &str) -> Self {
        let named = Self::NAMED.into_iter().find(|(other, _)| *other == name);
        named.map_or_else(|| Self::Group(name.to_owned()), |(_, variable)| variable)
    }

    /// Whether only the answer tells it.
    pub fn is_of_answer(&self) -> bool {
        matches!(self, Self::CacheStatus | Self::Upstream | Self::UpstreamStatus)
    }

    /// Whether the client can choose its text.
    pub fn is_of_client(&self) -> bool {
        !self.is_of_answer()
            && !matches!(
                self,
                Self::ClientIp | Self::Scheme | Self::RequestId | Self::SslProtocol | Self::SslClientVerify
            )
    }
}

/// Its name.
impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Group(name) => name,
            named => Self::NAMED.iter().find(|(_, other)| other == named).map_or("", |(name, _)| name),
        })
    }
}

/// A variable of nginx, and what Baton has for it.
#[derive(Clone, Copy, Debug)]
pub struct OfNginx {
    /// Its name there.
    pub name: &'static str,
    /// Whether the variable here means the very same in a field.
    pub is_same: bool,
    /// The name of a variable here; empty: there is none.
    pub here: &'static str,
    /// The name of a field of the log; empty: there is none.
    pub in_log: &'static str,
}

impl OfNginx {
    /// The variable with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        OF_NGINX.iter().find(|variable| variable.name == name)
    }
}

const fn same(name: &'static str, here: &'static str, in_log: &'static str) -> OfNginx {
    OfNginx { name, is_same: true, here, in_log }
}

const fn near(name: &'static str, here: &'static str, in_log: &'static str) -> OfNginx {
    OfNginx { name, is_same: false, here, in_log }
}

/// Durations in logs are in microseconds here, and `$uri` is decoded there.
const OF_NGINX: [OfNginx; 30] = [
    same("args", "query", ""),
    same("host", "host", "host"),
    same("query_string", "query", ""),
    same("remote_addr", "client_ip", "peer"),
    same("request_method", "method", "method"),
    same("request_uri", "uri", "target"),
    same("scheme", "scheme", ""),
    same("ssl_client_s_dn", "ssl_client_subject", ""),
    same("ssl_client_verify", "ssl_client_verify", ""),
    same("ssl_protocol", "ssl_protocol", ""),
    same("upstream_addr", "upstream", "origin"),
    same("upstream_cache_status", "cache_status", "cache"),
    near("binary_remote_addr", "client_ip", "peer"),
    near("body_bytes_sent", "", "body_bytes"),
    near("bytes_sent", "", "body_bytes"),
    near("document_uri", "path", "target"),
    near("http_host", "host", "host"),
    near("http_referer", "", "referer"),
    near("http_user_agent", "", "user_agent"),
    near("is_args", "uri", ""),
    near("msec", "", "time"),
    near("proxy_add_x_forwarded_for", "client_ip", "peer"),
    near("remote_user", "", "user"),
    near("request_time", "", "duration_us"),
    near("server_name", "host", "site"),
    near("server_protocol", "", "protocol"),
    near("status", "upstream_status", "status"),
    near("time_iso8601", "", "time"),
    near("time_local", "", "time_common"),
    near("uri", "path", "target"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<TextPart<Variable>>, LoneDollar> {
        text_parts(text, |name| Ok(Variable::of(name)))
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        for text in ["a", "$$", "a$$b$host", "${host}x", "$1$$1", "${a-b}c", "$1$2x"] {
            let parts = read(text).unwrap();
            assert_eq!(read(&text_of_parts(&parts)).unwrap(), parts, "{text}");
        }
        assert_eq!(text_of_parts(&read("${host}:$1 ${path}s").unwrap()), "$host:$1 ${path}s");
        for wrong in ["$", "a$ b", "${", "${}", "$-"] {
            assert_eq!(read(wrong), Err(LoneDollar), "{wrong}");
        }
    }

    #[test]
    fn names_of_nginx_lead_to_names_that_exist() {
        for of_nginx in OF_NGINX.iter().filter(|of_nginx| !of_nginx.here.is_empty()) {
            assert!(!matches!(Variable::of(of_nginx.here), Variable::Group(_)), "{of_nginx:?}");
        }
    }
}
