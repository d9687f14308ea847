//! Where a server is: scheme, host and port, as in links and in the configuration.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The origin of a server's URLs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Origin {
    is_https: bool,
    /// In lower case; an IPv6 address in brackets.
    host: String,
    port: u16,
}

impl Origin {
    /// Whether it is spoken to by TLS.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// Host and port as in the `Host` field: without the port that the scheme implies.
    pub fn authority(&self) -> String {
        match self.port == Self::usual_port(self.is_https) {
            true => self.host.clone(),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// The path below which another server has copies of this one's documents: `/~migrate/HOST/PORT`, as published.
    pub fn copies_path(&self) -> String {
        format!("{COPIES}/{}/{}", self.host, self.port)
    }

    /// Splits a URL that begins with a scheme into its origin and the rest, which is empty or begins with `/`, `?` or `#`.
    pub(crate) fn split(url: &str) -> Option<(Self, &str)> {
        let (scheme, rest) = url.split_once("://")?;
        let is_https = match scheme {
            _ if scheme.eq_ignore_ascii_case("http") => false,
            _ if scheme.eq_ignore_ascii_case("https") => true,
            _ => return None,
        };
        Self::split_authority(is_https, rest)
    }

    /// Splits what is behind `//` into its origin, with the scheme of the page, and the rest.
    pub(crate) fn split_authority(is_https: bool, text: &str) -> Option<(Self, &str)> {
        let end = text.find(['/', '?', '#']).unwrap_or(text.len());
        let (authority, rest) = text.split_at(end);
        let (host, port) = match authority.rfind(':').filter(|colon| !authority[*colon..].contains(']')) {
            Some(colon) => (&authority[..colon], authority[colon + 1..].parse().ok()?),
            None => (authority, Self::usual_port(is_https)),
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
        let is_host =
            !host.is_empty() && host.bytes().all(is_plain) && host.contains(':') == host.starts_with('[');
        (is_host && port != 0).then(|| (Self { is_https, host: host.to_ascii_lowercase(), port }, rest))
    }

    fn usual_port(is_https: bool) -> u16 {
        if is_https { 443 } else { 80 }
    }
}

/// The path below which copies of other servers' documents are, and where servers speak with each other.
pub const COPIES: &str = "/~migrate";

impl FromStr for Origin {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match Self::split(text) {
            Some((origin, "" | "/")) => Ok(origin),
            Some(_) => Err("expected no path behind the host"),
            None => Err("expected `http://HOST`, `http://HOST:PORT` or the same with `https`"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_https { "https" } else { "http" }, self.authority())
    }
}

impl From<Origin> for String {
    fn from(origin: Origin) -> Self {
        origin.to_string()
    }
}

impl TryFrom<String> for Origin {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_one_form() {
        for (text, shown) in [
            ("http://A.example.org", "http://a.example.org"),
            ("HTTP://a:80/", "http://a"),
            ("http://a:8080", "http://a:8080"),
            ("https://a:443", "https://a"),
            ("https://[::1]:80", "https://[::1]:80"),
        ] {
            assert_eq!(text.parse::<Origin>().unwrap().to_string(), shown);
        }
        for text in [
            "a",
            "ftp://a",
            "http://",
            "http://a/b",
            "http://a b",
            "http://u@a",
            "http://a:0",
            "http://a:b",
            "http://::1",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
        assert_eq!("https://a".parse::<Origin>().unwrap().copies_path(), "/~migrate/a/443");
    }
}
