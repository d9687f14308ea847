//! The PROXY protocol as a server reads it: whose connection a load balancer passes on.
//!
//! Version 1 is a line of text, version 2 a head of bytes (haproxy.org, `proxy-protocol.txt`, sections 2.1 and 2.2).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// The connection is passed on for this client.
    Client {
        /// The client's address.
        client: SocketAddr,
        /// The address that it has connected to.
        server: SocketAddr,
    },
    /// The load balancer's own connection (a health check), or one of no known address.
    Itself,
}

/// Why bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadProxyHeader {
    /// They begin in another way.
    Missing,
    /// The line of version 1 is not as it should be.
    Line,
    /// The head of version 2 is of another version, or has an unknown command.
    Command,
    /// The addresses of version 2 are shorter than their family says.
    Addresses,
    /// Version 2 announces more than is read.
    TooLong,
}

impl fmt::Display for BadProxyHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "it does not begin with a header of the PROXY protocol",
            Self::Line => "its PROXY line is broken",
            Self::Command => "its PROXY header has an unknown version or command",
            Self::Addresses => "its PROXY header is too short for its addresses",
            Self::TooLong => "its PROXY header is too long",
        })
    }
}

/// Reads the header at the beginning of a connection. Returns what it says and its length; `None`: more has to come.
///
/// # Errors
/// These bytes are the beginning of no header.
pub fn read_proxy_header(input: &[u8]) -> Result<Option<(Announced, usize)>, BadProxyHeader> {
    if begins_alike(input, SIGNATURE) {
        return bytes(input);
    }
    if begins_alike(input, V1_BEGIN) {
        return line(input);
    }
    Err(BadProxyHeader::Missing)
}

/// Whether the input begins like this, as far as there is any.
fn begins_alike(input: &[u8], begin: &[u8]) -> bool {
    let len = input.len().min(begin.len());
    input[..len] == begin[..len]
}

fn line(input: &[u8]) -> Result<Option<(Announced, usize)>, BadProxyHeader> {
    let within = &input[..input.len().min(V1_BYTES_MAX)];
    let Some(end) = within.iter().position(|byte| *byte == b'\n') else {
        return if input.len() < V1_BYTES_MAX { Ok(None) } else { Err(BadProxyHeader::Line) };
    };
    let text = within[..end].strip_suffix(b"\r").and_then(|line| std::str::from_utf8(line).ok());
    let announced = text.and_then(|text| announced_by(text.strip_prefix("PROXY ")?));
    announced.map(|announced| Some((announced, end + 1))).ok_or(BadProxyHeader::Line)
}

/// What the line says behind its first word.
fn announced_by(text: &str) -> Option<Announced> {
    let mut words = text.split(' ');
    let family = words.next()?;
    if family == "UNKNOWN" {
        // What follows is to be ignored.
        return Some(Announced::Itself);
    }
    let mut ip = || match family {
        "TCP4" => words.next()?.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        "TCP6" => words.next()?.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        _ => None,
    };
    let (client, server) = (ip()?, ip()?);
    let mut port = || words.next().filter(|word| is_number(word))?.parse::<u16>().ok();
    let (client_port, server_port) = (port()?, port()?);
    words.next().is_none().then_some(Announced::Client {
        client: SocketAddr::new(client, client_port),
        server: SocketAddr::new(server, server_port),
    })
}

/// Whether it is a decimal number without a sign or zeros in front.
fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit()) && (word == "0" || !word.starts_with('0'))
}

fn bytes(input: &[u8]) -> Result<Option<(Announced, usize)>, BadProxyHeader> {
    let Some((head, rest)) = input.split_first_chunk::<V2_HEAD_BYTES>() else { return Ok(None) };
    let [.., command, family, high, low] = *head;
    if command >> 4 != 2 || command & 0xf > 1 {
        return Err(BadProxyHeader::Command);
    }
    let len = usize::from(u16::from_be_bytes([high, low]));
    if len > V2_REST_BYTES_MAX {
        return Err(BadProxyHeader::TooLong);
    }
    let Some(addresses) = rest.get(..len) else { return Ok(None) };
    let announced = match (command & 0xf, family >> 4) {
        (1, 1) => ends(addresses, |ip: [u8; 4]| Ipv4Addr::from(ip).into())?,
        (1, 2) => ends(addresses, |ip: [u8; 16]| Ipv6Addr::from(ip).into())?,
        // LOCAL, and PROXY for a client without an address: a Unix socket, or of no known family.
        _ => Announced::Itself,
    };
    Ok(Some((announced, V2_HEAD_BYTES + len)))
}

/// Two addresses and their ports. What is behind them says more, of which nothing is needed here.
fn ends<const N: usize>(bytes: &[u8], ip: impl Fn([u8; N]) -> IpAddr) -> Result<Announced, BadProxyHeader> {
    let short = BadProxyHeader::Addresses;
    let (client, rest) = bytes.split_first_chunk::<N>().ok_or(short)?;
    let (server, rest) = rest.split_first_chunk::<N>().ok_or(short)?;
    let (client_port, rest) = rest.split_first_chunk::<2>().ok_or(short)?;
    let (server_port, _) = rest.split_first_chunk::<2>().ok_or(short)?;
    Ok(Announced::Client {
        client: SocketAddr::new(ip(*client), u16::from_be_bytes(*client_port)),
        server: SocketAddr::new(ip(*server), u16::from_be_bytes(*server_port)),
    })
}

const V1_BEGIN: &[u8] = b"PROXY ";

/// The longest line, as the specification counts it.
const V1_BYTES_MAX: usize = 107;

/// What version 2 begins with: no line of text does.
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

const V2_HEAD_BYTES: usize = 16;

/// Bytes behind the head that are read: addresses, and what load balancers add (names, certificates' subjects).
const V2_REST_BYTES_MAX: usize = 2_048;

/// The longest header that is read.
pub const PROXY_HEADER_BYTES_MAX: usize = V2_HEAD_BYTES + V2_REST_BYTES_MAX;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn client(client: &str, server: &str) -> Announced {
        Announced::Client { client: client.parse().unwrap(), server: server.parse().unwrap() }
    }

    fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let len = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [SIGNATURE, &[command, family], &len, rest].concat()
    }

    #[test]
    fn lines_of_text() {
        for (text, announced) in [
            ("PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r\n", client("192.0.2.7:4711", "10.0.0.1:443")),
            ("PROXY TCP6 2001:db8::1 ::1 1 2\r\n", client("[2001:db8::1]:1", "[::1]:2")),
            ("PROXY UNKNOWN\r\n", Announced::Itself),
            ("PROXY UNKNOWN ffff::1 what ever\r\n", Announced::Itself),
        ] {
            let input = format!("{text}GET / HTTP/1.1\r\n");
            assert_eq!(read_proxy_header(input.as_bytes()), Ok(Some((announced, text.len()))), "{text}");
            for end in 0..text.len() {
                assert_eq!(read_proxy_header(&text.as_bytes()[..end]), Ok(None), "{:?}", &text[..end]);
            }
        }
        for text in [
            "PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 4711\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 4711 443 1\r\n",
            "PROXY TCP4 192.0.2.7  10.0.0.1 4711 443\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 +4711 443\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 65536 443\r\n",
            "PROXY TCP4 ::1 ::1 4711 443\r\n",
            "PROXY TCP6 192.0.2.7 10.0.0.1 4711 443\r\n",
            "PROXY UDP4 192.0.2.7 10.0.0.1 4711 443\r\n",
            "PROXY \r\n",
        ] {
            assert_eq!(read_proxy_header(text.as_bytes()), Err(BadProxyHeader::Line), "{text}");
        }
        assert_eq!(
            read_proxy_header(&[b"PROXY UNKNOWN ", &[b'x'; 100][..]].concat()),
            Err(BadProxyHeader::Line)
        );
        for text in ["GET / HTTP/1.1\r\n", "proxy TCP4", "\r\nPROXY", "\x16\x03\x01", "PRI * HTTP/2.0"] {
            assert_eq!(read_proxy_header(text.as_bytes()), Err(BadProxyHeader::Missing), "{text}");
        }
    }

    #[test]
    fn heads_of_bytes() {
        let four = [192, 0, 2, 7, 10, 0, 0, 1, 0x12, 0x67, 1, 187];
        let header = v2(0x21, 0x11, &four);
        let expected = client("192.0.2.7:4711", "10.0.0.1:443");
        assert_eq!(read_proxy_header(&header), Ok(Some((expected, 28))));
        for end in 0..header.len() {
            assert_eq!(read_proxy_header(&header[..end]), Ok(None), "{end}");
        }
        let with_more = v2(0x21, 0x11, &[&four[..], &[3, 0, 4, 1, 2, 3, 4]].concat());
        assert_eq!(read_proxy_header(&with_more), Ok(Some((expected, 35))));
        assert_eq!(read_proxy_header(&v2(0x20, 0, &[])), Ok(Some((Announced::Itself, 16))));
        assert_eq!(read_proxy_header(&v2(0x21, 0x31, &[0; 216])), Ok(Some((Announced::Itself, 232))));
        for (header, why) in [
            (v2(0x11, 0x11, &four), BadProxyHeader::Command),
            (v2(0x22, 0x11, &four), BadProxyHeader::Command),
            (v2(0x21, 0x11, &four[..11]), BadProxyHeader::Addresses),
            (v2(0x21, 0x21, &four), BadProxyHeader::Addresses),
            (v2(0x21, 0x11, &[0; V2_REST_BYTES_MAX + 1]), BadProxyHeader::TooLong),
        ] {
            assert_eq!(read_proxy_header(&header), Err(why));
        }
    }

    proptest! {
        /// What a balancer writes is read back, whatever follows, and in whatever pieces it comes.
        #[test]
        fn what_is_written_is_read(
            ends in any::<([u8; 16], [u8; 16], u16, u16)>(),
            is_four in any::<bool>(),
            rest in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let (client_ip, server_ip, client_port, server_port) = ends;
            let ip = |bytes: [u8; 16]| -> IpAddr {
                if is_four { Ipv4Addr::from([bytes[0], bytes[1], bytes[2], bytes[3]]).into() } else { bytes.into() }
            };
            let (client, server) = (ip(client_ip), ip(server_ip));
            let family = if is_four { "TCP4" } else { "TCP6" };
            let text = format!("PROXY {family} {client} {server} {client_port} {server_port}\r\n").into_bytes();
            let octets = |ip: IpAddr| match ip {
                IpAddr::V4(ip) => ip.octets().to_vec(),
                IpAddr::V6(ip) => ip.octets().to_vec(),
            };
            let ports = [client_port.to_be_bytes(), server_port.to_be_bytes()].concat();
            let body = [octets(client), octets(server), ports].concat();
            let head = v2(0x21, if is_four { 0x11 } else { 0x21 }, &body);
            let announced = Announced::Client {
                client: SocketAddr::new(client, client_port),
                server: SocketAddr::new(server, server_port),
            };
            for header in [text, head] {
                let input = [&header[..], &rest].concat();
                for end in 0..input.len() {
                    let expected = (end >= header.len()).then_some((announced, header.len()));
                    prop_assert_eq!(read_proxy_header(&input[..end]), Ok(expected));
                }
            }
        }
    }
}
