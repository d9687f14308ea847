//! The PROXY protocol: in front of everything else a connection says whose it is.
//!
//! Version 1 is a line of text, version 2 a head of bytes (haproxy.org, `proxy-protocol.txt`, sections 2.1 and 2.2). The
//! other side believes it, so a connection is used for one client only.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};

/// The version that is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyVersion {
    /// Text.
    V1,
    /// Bytes.
    V2,
}

/// The two ends of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientEnds {
    /// The client's address.
    pub client: SocketAddr,
    /// The address that it has connected to.
    pub server: SocketAddr,
}

/// The header of a connection for this client; `None`: a client on a Unix socket.
pub(crate) fn header(version: ProxyVersion, ends: Option<ClientEnds>) -> Vec<u8> {
    let ends = ends.map(|ClientEnds { client, server }| of_one_family(client, server));
    match version {
        ProxyVersion::V1 => text(ends),
        ProxyVersion::V2 => bytes(ends),
    }
}

/// IPv4 in both places, or IPv6: an IPv4 client of a listener for both is an IPv4 client.
fn of_one_family(client: SocketAddr, server: SocketAddr) -> (SocketAddr, SocketAddr) {
    let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let (client, server) = (canonical(client), canonical(server));
    let mapped = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    };
    if client.is_ipv4() == server.is_ipv4() { (client, server) } else { (mapped(client), mapped(server)) }
}

fn text(ends: Option<(SocketAddr, SocketAddr)>) -> Vec<u8> {
    let Some((client, server)) = ends else { return b"PROXY UNKNOWN\r\n".to_vec() };
    let family = if client.is_ipv4() { "TCP4" } else { "TCP6" };
    let mut out = Vec::with_capacity(V1_BYTES_MAX);
    // A vector takes everything.
    let _ =
        write!(out, "PROXY {family} {} {} {} {}\r\n", client.ip(), server.ip(), client.port(), server.port());
    out
}

fn bytes(ends: Option<(SocketAddr, SocketAddr)>) -> Vec<u8> {
    const TCP4: u8 = 0x11;
    const TCP6: u8 = 0x21;
    let mut out = SIGNATURE.to_vec();
    let Some((client, server)) = ends else {
        out.extend_from_slice(&[VERSION_2 | LOCAL, 0, 0, 0]);
        return out;
    };
    let (family, len) = if client.is_ipv4() { (TCP4, 12) } else { (TCP6, 36) };
    out.extend_from_slice(&[VERSION_2 | PROXY, family, 0, len]);
    for address in [client, server] {
        match address.ip() {
            IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
        }
    }
    for address in [client, server] {
        out.extend_from_slice(&address.port().to_be_bytes());
    }
    out
}

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
const VERSION_2: u8 = 0x20;
/// The connection is the server's own.
const LOCAL: u8 = 0;
/// It is that of a client.
const PROXY: u8 = 1;

/// The longest line of version 1.
const V1_BYTES_MAX: usize = 107;

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(client: &str, server: &str) -> Option<ClientEnds> {
        Some(ClientEnds { client: client.parse().unwrap(), server: server.parse().unwrap() })
    }

    #[test]
    fn the_text_is_as_the_specification_has_it() {
        for (ends, expected) in [
            (ends("192.0.2.1:56324", "192.0.2.2:443"), "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n"),
            (ends("[2001:db8::1]:1", "[2001:db8::2]:2"), "PROXY TCP6 2001:db8::1 2001:db8::2 1 2\r\n"),
            (ends("[::ffff:192.0.2.1]:1", "192.0.2.2:2"), "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"),
            (ends("192.0.2.1:1", "[2001:db8::2]:2"), "PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 1 2\r\n"),
            (None, "PROXY UNKNOWN\r\n"),
        ] {
            let header = header(ProxyVersion::V1, ends);
            assert_eq!(header, expected.as_bytes());
            assert!(header.len() <= V1_BYTES_MAX);
        }
    }

    #[test]
    fn the_bytes_are_as_the_specification_has_them() {
        let (head, rest) = (b"\r\n\r\n\0\r\nQUIT\n", |ends| header(ProxyVersion::V2, ends)[12..].to_vec());
        assert!(header(ProxyVersion::V2, None).starts_with(head));
        assert_eq!(rest(None), b"\x20\0\0\0");
        assert_eq!(
            rest(ends("192.0.2.1:256", "192.0.2.2:443")),
            b"\x21\x11\0\x0c\xc0\0\x02\x01\xc0\0\x02\x02\x01\0\x01\xbb"
        );
        let v6 = rest(ends("[::1]:1", "[::2]:2"));
        assert_eq!((v6.len(), &v6[..4]), (4 + 36, &b"\x21\x21\0\x24"[..]));
        assert_eq!((v6[4 + 15], v6[4 + 31], &v6[36..]), (1, 2, &b"\0\x01\0\x02"[..]));
    }
}
