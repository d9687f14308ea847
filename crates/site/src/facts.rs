//! What is known of a request and its answer: what variables stand for.

use std::net::IpAddr;

use baton_http::{RequestHead, Variable, VariableSource, as_uri, encode_path, push_decimal};

use crate::matcher::{Matcher, group_of};

/// What is known of a request, and of its answer by now.
#[derive(Clone, Copy, Debug)]
pub struct RequestFacts<'a> {
    /// The head, with the target that its route answers.
    pub head: &'a RequestHead<'a>,
    /// The matcher of its route.
    pub matcher: Option<&'a Matcher>,
    /// The client's address; `None`: a Unix socket.
    pub client: Option<IpAddr>,
    /// Whether the client has come over TLS.
    pub is_https: bool,
    /// The client's connection, if it is over TLS.
    pub tls: Option<&'a baton_tls::Facts>,
    /// The id of the request.
    pub request_id: Option<&'a str>,
    /// What is known of what answers elsewhere.
    pub answer: AnswerFacts<'a>,
}

/// What is known of what answers elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnswerFacts<'a> {
    /// What the shared cache has done, in a word.
    pub cache: Option<&'a str>,
    /// The application or origin.
    pub upstream: Option<&'a str>,
    /// The status with which it has answered.
    pub status: Option<u16>,
}

impl VariableSource for RequestFacts<'_> {
    fn push(&self, variable: &Variable, out: &mut Vec<u8>) {
        let head = self.head;
        let certificate = || self.tls?.client_certificate.as_ref();
        let text = match variable {
            Variable::ClientIp => {
                // A mapped IPv4 address is shown as the log shows it.
                let shown = self.client.map(|address| address.to_canonical().to_string());
                return out.extend_from_slice(shown.unwrap_or_default().as_bytes());
            }
            Variable::Scheme if self.is_https => "https",
            Variable::Scheme => "http",
            Variable::Host => head.host.unwrap_or_default(),
            Variable::Method => {
                return out
                    .extend_from_slice(head.line.split(|byte| *byte == b' ').next().unwrap_or_default());
            }
            Variable::Uri => {
                out.extend_from_slice(&as_uri(head.path));
                if let Some(query) = head.query {
                    out.push(b'?');
                    out.extend_from_slice(&as_uri(query));
                }
                return;
            }
            // Locations and targets alone have it.
            Variable::Rest => return,
            Variable::Path => return out.extend_from_slice(&as_uri(head.path)),
            Variable::Query => return out.extend_from_slice(&as_uri(head.query.unwrap_or_default())),
            Variable::RequestId => self.request_id.unwrap_or_default(),
            Variable::CacheStatus => self.answer.cache.unwrap_or_default(),
            Variable::Upstream => self.answer.upstream.unwrap_or_default(),
            Variable::UpstreamStatus => {
                if let Some(status) = self.answer.status {
                    push_decimal(out, u64::from(status));
                }
                return;
            }
            Variable::SslProtocol => self.tls.map_or("", |tls| tls.version.name()),
            Variable::SslClientSubject => certificate().map_or("", |own| own.subject.as_str()),
            Variable::SslClientVerify => match self.tls {
                Some(tls) if tls.client_certificate.is_some() => "SUCCESS",
                Some(_) => "NONE",
                None => "",
            },
            Variable::Group(name) => return self.push_group(name, out),
        };
        out.extend_from_slice(text.as_bytes());
    }
}

impl RequestFacts<'_> {
    /// Encoded as a path has it, as everything that a group has matched is in templates.
    fn push_group(&self, name: &str, out: &mut Vec<u8>) {
        let mut decoded = Vec::new();
        let captures = self.matcher.and_then(|matcher| matcher.captures(self.head.path, &mut decoded));
        if let Some(group) = captures.as_ref().and_then(|captures| group_of(captures, name)) {
            out.extend_from_slice(&encode_path(group));
        }
    }
}

#[cfg(test)]
mod tests {
    use baton_http::{HeadLimits, VariableText};
    use baton_pattern::Pattern;

    use super::*;

    fn made(value: &str, target: &str) -> String {
        let text = format!("GET {target} HTTP/1.1\r\nHost: a.example:81\r\n\r\n");
        let head = RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap();
        let matcher = Matcher::pattern(Pattern::regex("^/(?<user>[^/]+)/(.*)$").unwrap());
        let facts = RequestFacts {
            head: &head,
            matcher: Some(&matcher),
            client: Some("::ffff:192.0.2.1".parse().unwrap()),
            is_https: true,
            tls: None,
            request_id: Some("0a"),
            answer: AnswerFacts { cache: Some("hit"), upstream: Some("http://o"), status: Some(203) },
        };
        String::from_utf8(VariableText::parse(value).unwrap().field(&facts).into_owned()).unwrap()
    }

    #[test]
    fn each_variable_stands_for_its_own_part() {
        for (value, target, expected) in [
            ("$client_ip", "/", "192.0.2.1"),
            ("$scheme://$host$uri", "/a?b=c", "https://a.example/a?b=c"),
            ("$method $path", "/a%20b?c", "GET /a%20b"),
            ("[$query]", "/", "[]"),
            ("$request_id $cache_status $upstream $upstream_status", "/", "0a hit http://o 203"),
            ("$ssl_protocol$ssl_client_subject$ssl_client_verify", "/", ""),
            ("$user: $2", "/ann/b/c", "ann: b/c"),
            ("$1", "/a%0D%0Ab/", "a%0D%0Ab"),
            ("$1", "/none", ""),
        ] {
            assert_eq!(made(value, target), expected, "{value}");
        }
    }
}
