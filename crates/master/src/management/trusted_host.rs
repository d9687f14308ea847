//! Which requests the admin listener answers: none that a page of another site has a browser send. The name of such a site may
//! come to lead here (DNS rebinding), and then a browser takes this listener for a part of it.

use std::net::{IpAddr, Ipv6Addr};

use baton_http::{RequestHead, Status, without_root};

/// Where a request arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    /// The server's own address of the connection; `None`: a Unix socket, which no browser opens.
    pub(crate) local: Option<IpAddr>,
    /// `admin.hosts`.
    pub(crate) hosts: &'a [String],
}

impl Arrival<'_> {
    /// Why a request is not answered. A name is checked on loopback, which is what such pages try, and wherever names are
    /// configured. No page has an IP address for its name, so these are answered everywhere.
    pub(super) fn refusal(&self, request: &RequestHead<'_>) -> Option<(Status, &'static str)> {
        let local = self.local?;
        // Only HTTP/1.0 needs no host, and no browser speaks it.
        let host = request.host?;
        let is_checked = local.to_canonical().is_loopback() || !self.hosts.is_empty();
        let name = without_root(host);
        let is_known = |known: &str| known.eq_ignore_ascii_case(name);
        let is_fine = !is_checked
            || is_address(host)
            || is_known("localhost")
            || self.hosts.iter().any(|one| is_known(one));
        (!is_fine).then_some((Status::MISDIRECTED_REQUEST, UNKNOWN_HOST))
    }
}

/// Whether a host is an IP literal, as in a URL.
fn is_address(host: &str) -> bool {
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(literal) => literal.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<IpAddr>().is_ok(),
    }
}

const UNKNOWN_HOST: &str = "This listener is reached by an IP address, `localhost` or a name of the setting `admin.hosts`; \
                            the request has another Host.";

#[cfg(test)]
mod tests {
    use baton_http::HeadLimits;

    use super::*;

    fn is_refused(local: Option<&str>, hosts: &[&str], host: &str) -> bool {
        let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let request = RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap();
        let hosts: Vec<_> = hosts.iter().map(|&host| host.to_owned()).collect();
        let local = local.map(|local| local.parse().unwrap());
        Arrival { local, hosts: &hosts }.refusal(&request).is_some()
    }

    #[test]
    fn loopback_knows_addresses_localhost_and_configured_names() {
        for local in ["127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1"] {
            for host in
                ["127.0.0.1", "10.0.0.1:80", "[::1]:9000", "localhost", "LocalHost.:1", "mon.example."]
            {
                assert!(!is_refused(Some(local), &["mon.example"], host), "{local} {host}");
            }
            for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "0x7f000001"] {
                assert!(is_refused(Some(local), &["mon.example"], host), "{local} {host}");
            }
        }
    }

    #[test]
    fn elsewhere_names_count_if_some_are_configured() {
        assert!(!is_refused(Some("10.0.0.1"), &[], "any.example"));
        assert!(is_refused(Some("10.0.0.1"), &["mon.example"], "any.example"));
        assert!(!is_refused(None, &["mon.example"], "any.example"), "a Unix socket");
    }
}
