//! The client behind proxies that say whose requests they pass on.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use baton_http::{RequestHead, list_members};

use crate::address_range::{AddressSet, canonical};

/// Proxies in front of the server, and the field in which they say whose request it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealAddress {
    /// Proxies that are believed.
    pub from: AddressSet,
    /// The field: addresses, each proxy's client behind those that the proxy was told.
    pub field: String,
}

impl RealAddress {
    /// The client's address; `None`: that of the connection.
    ///
    /// What a client has written itself stands on the left. So the list is read from the right, where the nearest proxy has
    /// written, up to the first address that is no proxy's. What is not an address ends the search at the proxy on its right.
    pub fn of(&self, peer: Option<SocketAddr>, head: &RequestHead<'_>) -> Option<SocketAddr> {
        if !self.from.contains(peer.map(|peer| peer.ip())) {
            return None;
        }
        let lines = head.fields().filter(|(name, _)| name.eq_ignore_ascii_case(&self.field));
        let claims: Vec<_> = lines.flat_map(|(_, value)| list_members(value)).collect();
        let mut nearest = None;
        for claim in claims.into_iter().rev() {
            let Some(address) = address_of(claim) else { break };
            nearest = Some(address);
            if !self.from.contains(Some(address.ip())) {
                break;
            }
        }
        nearest
    }
}

/// An address, perhaps with a port, which is 0 if there is none: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`.
fn address_of(text: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let of_ip = |ip: IpAddr| SocketAddr::new(ip.to_canonical(), 0);
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some(of_ip(ip));
    }
    if let Some(ip) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        return ip.parse::<Ipv6Addr>().ok().map(|ip| of_ip(ip.into()));
    }
    let address: SocketAddr = text.parse().ok()?;
    Some(canonical(address))
}

#[cfg(test)]
mod tests {
    use baton_http::HeadLimits;

    use super::*;

    fn real(peer: &str, fields: &str) -> Option<String> {
        let from = ["10.0.0.0/8", "2001:db8::/32"].map(|range| range.parse().unwrap());
        let from = AddressSet { ranges: from.into_iter().collect(), has_local: true };
        let rule = RealAddress { from, field: "X-Forwarded-For".into() };
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let head = RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap();
        let peer = (peer != "unix").then(|| format!("{peer}:1").parse().unwrap());
        rule.of(peer, &head).map(|address| address.to_string())
    }

    #[test]
    fn what_the_nearest_proxy_says_counts_and_nothing_that_a_client_has_written() {
        let says = |peer, list: &str| real(peer, &format!("x-forwarded-FOR: {list}\r\n"));
        assert_eq!(says("192.0.2.1", "198.51.100.7"), None, "no proxy");
        assert_eq!(real("10.0.0.1", ""), None);
        assert_eq!(says("10.0.0.1", "198.51.100.7").as_deref(), Some("198.51.100.7:0"));
        assert_eq!(says("unix", "198.51.100.7:99").as_deref(), Some("198.51.100.7:99"));
        // Forged by the client, in front of what the proxies have written.
        let forged = "127.0.0.1, 10.1.1.1, 198.51.100.7, 10.2.2.2,, [2001:db8::5]";
        assert_eq!(says("10.0.0.1", forged).as_deref(), Some("198.51.100.7:0"));
        assert_eq!(says("10.0.0.1", "10.3.3.3, 10.2.2.2").as_deref(), Some("10.3.3.3:0"), "all are proxies");
        assert_eq!(says("10.0.0.1", "127.0.0.1, x, 10.2.2.2").as_deref(), Some("10.2.2.2:0"));
        assert_eq!(says("10.0.0.1", "127.0.0.1, unknown"), None);
        assert_eq!(says("10.0.0.1", "::ffff:198.51.100.7").as_deref(), Some("198.51.100.7:0"));
        assert_eq!(says("10.0.0.1", "[2001:db9::5]:8").as_deref(), Some("[2001:db9::5]:8"));
        let lines = "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-For: 198.51.100.7, 10.2.2.2\r\n";
        assert_eq!(real("10.0.0.1", lines).as_deref(), Some("198.51.100.7:0"));
        assert_eq!(real("10.0.0.1", "X_Forwarded_For: 127.0.0.1\r\n"), None);
    }
}
