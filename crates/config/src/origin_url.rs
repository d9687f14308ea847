//! Where an origin is: `http://127.0.0.1:3000`, `https://api.example.org/v1`, `unix:/run/app.sock` or, with a path,
//! `unix:/run/app.sock:/v1`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use baton_http::without_root;

use super::application::{Target, is_host};

/// The URL of an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginUrl {
    /// Whether it is spoken to over TLS.
    pub tls: bool,
    /// Its address.
    pub target: Target,
    /// The path of the URL, as written: it replaces the path of the route. `None`: paths stay as they are.
    pub path: Option<String>,
}

impl OriginUrl {
    /// Reads a URL; a relative path of a socket is relative to `base`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str, base: &Path) -> Result<Self, String> {
        if let Some(socket) = text.strip_prefix("unix:") {
            let (socket, path) = match socket.find(":/") {
                Some(at) => (&socket[..at], Some(socket[at + 1..].to_owned())),
                None => (socket, None),
            };
            if socket.is_empty() {
                return Err("the path of the socket is missing".into());
            }
            if !path.as_deref().is_none_or(is_uri_path) {
                return Err(NOT_A_URI.into());
            }
            return Ok(Self { path, ..Self::in_clear(Target::Unix(base.join(socket))) });
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(|| match text {
            _ if text.starts_with('/') => format!("a Unix socket is written `unix:{text}`"),
            _ => format!("the scheme is missing: `http://{text}`?"),
        })?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            "ws" | "wss" => return Err("WebSocket comes through `http://` and `https://`".into()),
            "h2c" | "h2" => return Err("origins are spoken to in HTTP/1.1: `http://` or `https://`".into()),
            _ => return Err(format!("`{scheme}` is not a scheme of origins: `http` or `https`")),
        };
        let (authority, path) = match rest.find('/') {
            Some(at) => (&rest[..at], Some(&rest[at..])),
            None => (rest, None),
        };
        if rest.contains(['?', '#']) {
            return Err("an origin has no query and no fragment".into());
        }
        if authority.contains('@') {
            return Err("an origin's URL has no user: send `Authorization` with `request_headers`".into());
        }
        if !path.is_none_or(is_uri_path) {
            return Err(NOT_A_URI.into());
        }
        Ok(Self { tls, target: target(authority, tls)?, path: path.map(str::to_owned) })
    }

    /// The URL of an address that is spoken to in clear, without a path.
    pub(crate) fn in_clear(target: Target) -> Self {
        Self { tls: false, target, path: None }
    }

    /// Whether a URL that a user has written means this server, whatever the path.
    pub fn is_server(&self, text: &str) -> bool {
        let Ok(meant) = Self::parse(text, Path::new("/")) else { return false };
        let is_one =
            || meant.target == self.target || meant.is_loopback_of(self) || self.is_loopback_of(&meant);
        meant.tls == self.tls && is_one()
    }

    /// Whether the host is a loopback address, and the other's is `localhost`, which means all of these.
    fn is_loopback_of(&self, other: &Self) -> bool {
        let (Target::Tcp(address), Target::Host(host, port)) = (&self.target, &other.target) else {
            return false;
        };
        address.ip().is_loopback() && address.port() == *port && without_root(host) == LOCALHOST
    }

    /// The URL without its path.
    pub fn server(&self) -> String {
        Self { path: None, ..self.clone() }.to_string()
    }

    /// The path that takes the place of the route's, without a slash at its end.
    pub(crate) fn base(&self) -> &str {
        self.path.as_deref().map_or("", |path| path.trim_end_matches('/'))
    }

    /// Host and port, as they stand in `Host`.
    pub(crate) fn authority(&self) -> String {
        let usual = if self.tls { 443 } else { 80 };
        let (host, port) = match &self.target {
            Target::Unix(_) => return LOCALHOST.into(),
            Target::Tcp(address) => (bracketed(address.ip()), address.port()),
            Target::Host(host, port) => (host.clone(), *port),
        };
        if port == usual { host } else { format!("{host}:{port}") }
    }

    /// The name that a certificate must have, if no setting says so.
    pub(crate) fn host(&self) -> String {
        match &self.target {
            Target::Unix(_) => LOCALHOST.into(),
            Target::Tcp(address) => address.ip().to_string(),
            Target::Host(host, _) => host.trim_end_matches('.').to_owned(),
        }
    }
}

impl fmt::Display for OriginUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.as_deref().unwrap_or_default();
        match &self.target {
            Target::Unix(socket) if path.is_empty() => write!(f, "unix:{}", socket.display()),
            Target::Unix(socket) => write!(f, "unix:{}:{path}", socket.display()),
            _ => write!(f, "{}://{}{path}", if self.tls { "https" } else { "http" }, self.authority()),
        }
    }
}

fn is_uri_path(path: &str) -> bool {
    path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\' && byte != b'?' && byte != b'#')
}

const NOT_A_URI: &str = "other characters than visible ASCII must be percent-encoded";

fn target(authority: &str, tls: bool) -> Result<Target, String> {
    let usual = if tls { 443 } else { 80 };
    let is_literal = authority.ends_with(']');
    let (host, port) = match authority.rsplit_once(':').filter(|_| !is_literal) {
        Some((host, port)) => {
            let port = port.parse().map_err(|_| format!("`{port}` is not a port: expected 1 to 65535"))?;
            (host, port)
        }
        None => (authority, usual),
    };
    if host.is_empty() || port == 0 {
        return Err("host and port are missing: `http://127.0.0.1:3000`".into());
    }
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match literal.unwrap_or(host).parse::<IpAddr>() {
        Ok(ip) if literal.is_some() == ip.is_ipv6() => Ok(Target::Tcp(SocketAddr::new(ip, port))),
        _ if is_host(host) => Ok(Target::Host(host.to_ascii_lowercase(), port)),
        _ => Err(format!("`{host}` is neither an IP address nor a host name")),
    }
}

fn bracketed(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

const LOCALHOST: &str = "localhost";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_url() {
        for (text, shown, authority, base) in [
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000", "127.0.0.1:3000", ""),
            ("http://Localhost:3000/", "http://localhost:3000/", "localhost:3000", ""),
            ("HTTPS://API.example.org/v1/", "https://api.example.org/v1/", "api.example.org", "/v1"),
            (
                "https://api.example.org:8443/v1",
                "https://api.example.org:8443/v1",
                "api.example.org:8443",
                "/v1",
            ),
            ("http://[::1]:80", "http://[::1]", "[::1]", ""),
            ("http://[::1]:81/a", "http://[::1]:81/a", "[::1]:81", "/a"),
            ("unix:run/a.sock", "unix:/base/run/a.sock", "localhost", ""),
            ("unix:run/a.sock:/v1/", "unix:/base/run/a.sock:/v1/", "localhost", "/v1"),
        ] {
            let url = OriginUrl::parse(text, Path::new("/base")).unwrap();
            assert_eq!(url.to_string(), shown);
            assert_eq!((url.authority().as_str(), url.base()), (authority, base));
            assert_eq!(
                OriginUrl::parse(&url.to_string(), Path::new("/")).unwrap(),
                url,
                "as it is written back"
            );
        }
    }

    #[test]
    fn localhost_means_every_loopback_address() {
        let url = |text| OriginUrl::parse(text, Path::new("/")).unwrap();
        assert_eq!(url("https://localhost").host(), "localhost", "as in its certificate");
        assert_eq!(url("https://127.0.0.1").host(), "127.0.0.1");
        assert_eq!(url("http://localhost:81").target, Target::Host("localhost".into(), 81));
        for same in ["http://127.0.0.1:81/", "http://[::1]:81", "http://LOCALHOST:81"] {
            assert!(url("http://localhost:81").is_server(same), "{same}");
            assert!(url(same).is_server("http://localhost:81"), "{same}");
        }
        for other in ["http://127.0.0.1:82/", "http://192.0.2.1:81", "https://localhost:81"] {
            assert!(!url("http://localhost:81").is_server(other), "{other}");
        }
    }

    #[test]
    fn refusals_say_what_is_meant() {
        let refused = |text| OriginUrl::parse(text, Path::new("/")).unwrap_err();
        assert!(refused("127.0.0.1:3000").contains("`http://127.0.0.1:3000`?"));
        assert!(refused("/run/a.sock").contains("`unix:/run/a.sock`"));
        assert!(refused("ftp://a").contains("`ftp` is not a scheme"));
        assert!(refused("ws://a").contains("http://"));
        assert!(refused("http://a:99999").contains("not a port"));
        assert!(refused("http://:3000").contains("missing"));
        assert!(refused("http://").contains("missing"));
        assert!(refused("http://user@a").contains("Authorization"));
        assert!(refused("http://a?b").contains("query"));
        assert!(refused("http://1.2.3").contains("neither"));
        assert!(refused("http://a/\u{e4}").contains("percent-encoded"));
        assert!(refused("unix:").contains("missing"));
    }
}
