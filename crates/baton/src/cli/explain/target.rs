//! What `baton explain` is asked about: a URL, or the path of one.

use baton_engine::ListenAddress;

/// The parts of a URL that decide how a request is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Whether it is an `https` URL; none if only a path was given.
    pub(super) tls: Option<bool>,
    /// Host, without a port; none if only a path was given.
    pub(super) host: Option<String>,
    /// Port, if the URL names one.
    pub(super) port: Option<u16>,
    /// Path and query as they are sent.
    pub(super) path: String,
}

/// A path and the query behind it.
pub(super) fn split(target: &str) -> (&str, Option<&str>) {
    target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)))
}

impl Target {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// What is expected instead.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        if url.starts_with('/') {
            return Ok(Self { tls: None, host: None, port: None, path: url.to_owned() });
        }
        let in_clear = url.strip_prefix("http://").map(|rest| (false, rest));
        let (tls, rest) = in_clear
            .or_else(|| url.strip_prefix("https://").map(|rest| (true, rest)))
            .ok_or("expected http://HOST/PATH, https://HOST/PATH or /PATH")?;
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
        Ok(Self { tls: Some(tls), host: Some(host.to_owned()), port, path: path.to_owned() })
    }

    /// The address at which the request arrives: the one with the URL's port or the scheme's default, else the first that
    /// fits the scheme.
    pub(super) fn listener(&self, addresses: &[(&ListenAddress, bool)]) -> Option<usize> {
        let fits = |tls: &bool| self.tls.is_none_or(|wanted| wanted == *tls);
        let at = |port: u16| {
            let has_port =
                |address: &ListenAddress| matches!(address, ListenAddress::Tcp(tcp) if tcp.port() == port);
            addresses.iter().position(|(address, tls)| has_port(address) && fits(tls))
        };
        match (self.port, self.tls) {
            (Some(port), _) => at(port),
            (None, tls) => at(if tls == Some(true) { 443 } else { 80 })
                .or_else(|| addresses.iter().position(|(_, tls)| fits(tls))),
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
        let tls = host.map(|_| false);
        Ok(Target { tls, host: host.map(str::to_owned), port, path: path.to_owned() })
    }

    #[test]
    fn urls_are_taken_apart() {
        assert_eq!(Target::parse("/a?b"), target(None, None, "/a?b"));
        assert_eq!(Target::parse("http://h"), target(Some("h"), None, "/"));
        assert_eq!(Target::parse("http://h:81/a/b"), target(Some("h"), Some(81), "/a/b"));
        assert_eq!(Target::parse("http://[::1]/"), target(Some("[::1]"), None, "/"));
        assert_eq!(Target::parse("http://[::1]:8080/"), target(Some("[::1]"), Some(8080), "/"));
        assert_eq!(Target::parse("https://h/").map(|target| target.tls), Ok(Some(true)));
        assert!(Target::parse("ftp://h/").is_err());
        assert!(Target::parse("http://h:x/").is_err());
        assert!(Target::parse("http:///x").is_err());
    }

    #[test]
    fn the_port_decides_where_a_request_arrives() {
        let [a, b, c] = ["127.0.0.1:8080", "127.0.0.1:80", "127.0.0.1:443"]
            .map(|text| ListenAddress::Tcp(text.parse().unwrap()));
        let listener =
            |url: &str| Target::parse(url).unwrap().listener(&[(&a, false), (&b, false), (&c, true)]);
        assert_eq!(listener("http://h:8080/"), Some(0));
        assert_eq!(listener("http://h/"), Some(1));
        assert_eq!(listener("https://h/"), Some(2));
        assert_eq!(listener("http://h:9/"), None);
        assert_eq!(listener("https://h:80/"), None);
        assert_eq!(Target::parse("/").unwrap().listener(&[(&a, true)]), Some(0));
        assert_eq!(Target::parse("https://h/").unwrap().listener(&[(&a, false)]), None);
    }
}
