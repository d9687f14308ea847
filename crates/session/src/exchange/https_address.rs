//! Where a request belongs that came in clear to a port that speaks TLS.

use std::fmt::Write;
use std::net::SocketAddr;

use baton_http::{RequestHead, as_uri};

/// The address of the same resource by TLS: the host and port that the client named, else the server's own.
pub(super) fn of(head: &RequestHead<'_>, local: Option<SocketAddr>) -> String {
    let mut address = String::from("https://");
    let written = match (head.host, local) {
        (Some(host), _) => write!(address, "{host}"),
        (None, Some(SocketAddr::V6(local))) => write!(address, "[{}]", local.ip()),
        (None, Some(local)) => write!(address, "{}", local.ip()),
        (None, None) => write!(address, "localhost"),
    };
    let port = head.port.or(local.map(|local| local.port())).filter(|port| *port != HTTPS_PORT);
    let written = written.and_then(|()| port.map_or(Ok(()), |port| write!(address, ":{port}")));
    debug_assert!(written.is_ok(), "text takes text");
    address.push_str(&String::from_utf8_lossy(&as_uri(head.path)));
    if let Some(query) = head.query {
        address.push('?');
        address.push_str(&String::from_utf8_lossy(&as_uri(query)));
    }
    address
}

/// The port that an `https` address without one means.
const HTTPS_PORT: u16 = 443;

#[cfg(test)]
mod tests {
    use baton_http::HeadLimits;

    use super::*;

    fn address(head: &str, local: Option<&str>) -> String {
        let parsed = RequestHead::parse(head.as_bytes(), &HeadLimits::default());
        of(&parsed.unwrap(), local.map(|local| local.parse().unwrap()))
    }

    #[test]
    fn host_and_port_are_the_clients_else_the_servers() {
        let named = |host: &str| format!("GET /a%20b?c=d HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let local = Some("[::1]:8443");
        assert_eq!(address(&named("site.test"), None), "https://site.test/a%20b?c=d");
        assert_eq!(address(&named("site.test:8443"), local), "https://site.test:8443/a%20b?c=d");
        assert_eq!(address(&named("site.test"), local), "https://site.test:8443/a%20b?c=d");
        assert_eq!(address(&named("site.test:443"), local), "https://site.test/a%20b?c=d");
        let without = "GET / HTTP/1.0\r\n\r\n";
        assert_eq!(address(without, local), "https://[::1]:8443/");
        assert_eq!(address(without, Some("127.0.0.1:443")), "https://127.0.0.1/");
    }
}
