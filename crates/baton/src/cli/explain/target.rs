//! What `baton explain` is asked about: a URL, or the path of one.

use baton_engine::ListenAddress;

/// The parts of a URL that decide how a request is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Host, without a port; none if only a path was given.
    pub(super) host: Option<String>,
    /// Port, if the URL names one.
    pub(super) port: Option<u16>,
    /// Path and query as they are sent.
    pub(super) path: String,
}

impl Target {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// What is expected instead.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        if url.starts_with('/') {
            return Ok(Self { host: None, port: None, path: url.to_owned() });
        }
        let rest = url.strip_prefix("http://").ok_or("expected http://HOST/PATH or /PATH")?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let path = if path.is_empty() { "/" } else { path };
        // The colons of an IPv6 literal stand in brackets.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, Some(port.parse().map_err(|_| format!("`{port}` is not a port"))?))
            }
            _ => (authority, None),
        };
        if host.is_empty() {
            return Err("the host is missing".into());
        }
        Ok(Self { host: Some(host.to_owned()), port, path: path.to_owned() })
    }

    /// The address that such a request arrives at: one with the URL's port, else with the one that URLs mean by none,
    /// else the first.
    pub(super) fn listener(&self, addresses: &[&ListenAddress]) -> Option<usize> {
        let at = |port: u16| {
            addresses
                .iter()
                .position(|address| matches!(address, ListenAddress::Tcp(tcp) if tcp.port() == port))
        };
        match self.port {
            Some(port) => at(port),
            None => at(80).or((!addresses.is_empty()).then_some(0)),
        }
    }

    /// The value of `Host`.
    pub(super) fn authority(&self) -> String {
        let host = self.host.as_deref().unwrap_or("localhost");
        self.port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(host: Option<&str>, port: Option<u16>, path: &str) -> Result<Target, String> {
        Ok(Target { host: host.map(str::to_owned), port, path: path.to_owned() })
    }

    #[test]
    fn urls_are_taken_apart() {
        assert_eq!(Target::parse("/a?b"), target(None, None, "/a?b"));
        assert_eq!(Target::parse("http://h"), target(Some("h"), None, "/"));
        assert_eq!(Target::parse("http://h:81/a/b"), target(Some("h"), Some(81), "/a/b"));
        assert_eq!(Target::parse("http://[::1]/"), target(Some("[::1]"), None, "/"));
        assert_eq!(Target::parse("http://[::1]:8080/"), target(Some("[::1]"), Some(8080), "/"));
        assert!(Target::parse("https://h/").is_err());
        assert!(Target::parse("http://h:x/").is_err());
        assert!(Target::parse("http:///x").is_err());
    }

    #[test]
    fn the_port_decides_where_a_request_arrives() {
        let [a, b] = ["127.0.0.1:8080", "127.0.0.1:80"].map(|text| ListenAddress::Tcp(text.parse().unwrap()));
        let listener = |url: &str| Target::parse(url).unwrap().listener(&[&a, &b]);
        assert_eq!(listener("http://h:8080/"), Some(0));
        assert_eq!(listener("http://h/"), Some(1));
        assert_eq!(listener("http://h:9/"), None);
        assert_eq!(Target::parse("/").unwrap().listener(&[&a]), Some(0));
    }
}
