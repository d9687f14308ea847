//! Values of fields that a configuration gives: constant, or with parts of a request in them, such as `$client_ip`.
//!
//! Clients write some of these parts. A line break must not begin another field, so control characters are encoded.

use std::borrow::Cow;
use std::fmt;

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// The same for each request.
    Fixed(String),
    /// Texts and variables, of which at least one is a variable.
    Made(Vec<ValuePart>),
}

/// A part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValuePart {
    /// A constant text.
    Text(String),
    /// What a variable stands for.
    Variable(FieldVariable),
}

/// What stands for a part of a request or of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldVariable {
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
    /// `$1`, `$name`: what a group of the route's pattern has matched.
    Group(String),
}

impl FieldVariable {
    /// All that have a name of their own.
    pub const NAMED: [(&'static str, Self); 13] = [
        ("client_ip", Self::ClientIp),
        ("scheme", Self::Scheme),
        ("host", Self::Host),
        ("method", Self::Method),
        ("uri", Self::Uri),
        ("path", Self::Path),
        ("query", Self::Query),
        ("request_id", Self::RequestId),
        ("cache_status", Self::CacheStatus),
        ("upstream", Self::Upstream),
        ("upstream_status", Self::UpstreamStatus),
        ("ssl_protocol", Self::SslProtocol),
        ("ssl_client_subject", Self::SslClientSubject),
    ];
}

impl fmt::Display for FieldVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Group(name) => name,
            named => Self::NAMED.iter().find(|(_, other)| other == named).map_or("", |(name, _)| name),
        };
        f.write_str(name)
    }
}

/// A `$` that begins neither a name nor `$$`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoneDollar;

/// Knows what variables stand for in one request.
pub trait VariableSource: fmt::Debug {
    /// Appends what a variable stands for; nothing where it stands for nothing.
    fn push(&self, variable: &FieldVariable, out: &mut Vec<u8>);
}

/// Knows nothing.
impl VariableSource for () {
    fn push(&self, _: &FieldVariable, _: &mut Vec<u8>) {}
}

/// Where it is not known, variables stand for nothing.
impl<S: VariableSource> VariableSource for Option<S> {
    fn push(&self, variable: &FieldVariable, out: &mut Vec<u8>) {
        if let Some(source) = self {
            source.push(variable, out);
        }
    }
}

impl FieldValue {
    /// Reads a value: `$name`, `${name}` and `$1` are variables, `$$` is a dollar. A name that is not known is a group.
    ///
    /// # Errors
    /// A `$` that begins none of these.
    pub fn parse(text: &str) -> Result<Self, LoneDollar> {
        let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find('$') {
            plain.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix('$') {
                plain.push('$');
                rest = behind;
                continue;
            }
            let (name, behind) = variable_name(rest).ok_or(LoneDollar)?;
            if !plain.is_empty() {
                parts.push(ValuePart::Text(std::mem::take(&mut plain)));
            }
            let named = FieldVariable::NAMED.into_iter().find(|(other, _)| *other == name);
            let variable =
                named.map_or_else(|| FieldVariable::Group(name.to_owned()), |(_, variable)| variable);
            parts.push(ValuePart::Variable(variable));
            rest = behind;
        }
        plain.push_str(rest);
        if parts.is_empty() {
            return Ok(Self::Fixed(plain));
        }
        if !plain.is_empty() {
            parts.push(ValuePart::Text(plain));
        }
        Ok(Self::Made(parts))
    }

    /// The value, if it is the same for each request.
    pub fn fixed(&self) -> Option<&str> {
        match self {
            Self::Fixed(text) => Some(text),
            Self::Made(_) => None,
        }
    }

    /// The variables in it.
    pub fn variables(&self) -> impl Iterator<Item = &FieldVariable> {
        let parts = match self {
            Self::Fixed(_) => &[][..],
            Self::Made(parts) => parts,
        };
        parts.iter().filter_map(|part| match part {
            ValuePart::Text(_) => None,
            ValuePart::Variable(variable) => Some(variable),
        })
    }

    /// The value for a request. Empty: the field is not sent.
    pub fn made(&self, source: &dyn VariableSource) -> Cow<'_, [u8]> {
        let parts = match self {
            Self::Fixed(text) => return Cow::Borrowed(text.as_bytes()),
            Self::Made(parts) => parts,
        };
        let mut value = Vec::new();
        for part in parts {
            match part {
                ValuePart::Text(text) => value.extend_from_slice(text.as_bytes()),
                ValuePart::Variable(variable) => source.push(variable, &mut value),
            }
        }
        Cow::Owned(without_controls(value))
    }
}

impl From<&str> for FieldValue {
    /// A constant, in which a `$` is a dollar.
    fn from(text: &str) -> Self {
        Self::Fixed(text.to_owned())
    }
}

/// As [`parse`](FieldValue::parse) reads it.
impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |text: &str| text.replace('$', "$$");
        match self {
            Self::Fixed(text) => f.write_str(&plain(text)),
            Self::Made(parts) => parts.iter().try_for_each(|part| match part {
                ValuePart::Text(text) => f.write_str(&plain(text)),
                ValuePart::Variable(variable) => write!(f, "${{{variable}}}"),
            }),
        }
    }
}

/// The name behind a `$`, and what follows: letters, digits and `_`; digits alone; or any of these in braces.
pub fn variable_name(text: &str) -> Option<(&str, &str)> {
    if let Some(text) = text.strip_prefix('{') {
        return text
            .split_once('}')
            .filter(|(name, _)| variable_name(name).is_some_and(|(_, behind)| behind.is_empty()));
    }
    let is_number = text.starts_with(|first: char| first.is_ascii_digit());
    let belongs = |character: char| match is_number {
        true => character.is_ascii_digit(),
        false => character.is_ascii_alphanumeric() || character == '_',
    };
    let end = text.find(|character| !belongs(character)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The value as a field can have it: control characters are encoded, and blanks around it are cut off.
fn without_controls(value: Vec<u8>) -> Vec<u8> {
    let is_safe = |byte: &u8| !byte.is_ascii_control();
    if value.iter().all(is_safe) && value.trim_ascii().len() == value.len() {
        return value;
    }
    let mut safe = Vec::with_capacity(value.len());
    for byte in value.trim_ascii() {
        match is_safe(byte) {
            true => safe.push(*byte),
            false => safe.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Known;

    impl VariableSource for Known {
        fn push(&self, variable: &FieldVariable, out: &mut Vec<u8>) {
            match variable {
                FieldVariable::Host => out.extend_from_slice(b"a.example"),
                FieldVariable::Query => out.extend_from_slice(b"x\r\nSet-Cookie: y\0"),
                FieldVariable::Group(name) => out.extend_from_slice(format!("<{name}>").as_bytes()),
                _ => {}
            }
        }
    }

    fn made(text: &str) -> String {
        String::from_utf8(FieldValue::parse(text).unwrap().made(&Known).into_owned()).unwrap()
    }

    #[test]
    fn variables_are_put_in() {
        for (text, value) in [
            ("plain", "plain"),
            ("$host", "a.example"),
            ("<$host:80>", "<a.example:80>"),
            ("${host}s", "a.examples"),
            ("$hosts", "<hosts>"),
            ("$1$2x", "<1><2>x"),
            ("$$host $$", "$host $"),
            ("$upstream", ""),
            (" $host ", "a.example"),
        ] {
            assert_eq!(made(text), value, "{text}");
        }
        for wrong in ["$", "a$ b", "${", "${}", "${a-b}", "$-"] {
            assert_eq!(FieldValue::parse(wrong), Err(LoneDollar), "{wrong}");
        }
    }

    #[test]
    fn a_value_begins_no_second_line() {
        assert_eq!(made("$query"), "x%0D%0ASet-Cookie: y%00");
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        for text in ["a", "$$", "a$$b$host", "${host}x", "$1$$1"] {
            let value = FieldValue::parse(text).unwrap();
            assert_eq!(FieldValue::parse(&value.to_string()).unwrap(), value, "{text}");
        }
        assert_eq!(FieldValue::from("$host").to_string(), "$$host");
    }
}
