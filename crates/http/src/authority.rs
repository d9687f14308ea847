//! Host and port, of a Host field or of a target (RFC 3986 section 3.2).

use std::net::Ipv6Addr;

/// An authority without user information, which no request may have (RFC 9110 section 4.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority<'a> {
    /// A name or an address as the client spelt it, not empty; one in brackets keeps them.
    pub host: &'a str,
    /// `None` without a port, or with an empty one, which the grammar allows.
    pub port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Reads an authority. `None` if `text` is anything but a non-empty host with an optional port.
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        let host_len = match text {
            [b'[', ..] => {
                let end = memchr::memchr(b']', text)?;
                is_literal(&text[1..end]).then_some(end + 1)?
            }
            _ => {
                let end = memchr::memchr(b':', text).unwrap_or(text.len());
                is_name(&text[..end]).then_some(end)?
            }
        };
        let (host, rest) = text.split_at(host_len);
        let port = match rest {
            [] | [b':'] => None,
            [b':', digits @ ..] => Some(parse_port(digits)?),
            _ => return None,
        };
        Some(Self { host: std::str::from_utf8(host).ok()?, port })
    }
}

/// A host without the dot of the root at its end: `example.org.` is `example.org` (RFC 1034 section 3.1). This and lower case
/// make the form in which names of hosts are compared.
pub fn without_root(host: &str) -> &str {
    host.strip_suffix('.').filter(|name| !name.is_empty()).unwrap_or(host)
}

/// The text in brackets (RFC 3986 section 3.2.2): an IPv6 address, or `IPvFuture`, which no site uses.
fn is_literal(text: &[u8]) -> bool {
    if let [b'v' | b'V', future @ ..] = text {
        let Some(dot) = memchr::memchr(b'.', future) else { return false };
        let (version, address) = (&future[..dot], &future[dot + 1..]);
        return !version.is_empty()
            && version.iter().all(u8::is_ascii_hexdigit)
            && !address.contains(&b'%')
            && address.split(|byte| *byte == b':').all(|part| part.is_empty() || is_name(part))
            && !address.is_empty();
    }
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

/// `reg-name` of RFC 3986 section 3.2.2, not empty; IPv4 addresses are a part of it.
fn is_name(text: &[u8]) -> bool {
    let mut rest = text;
    while let [byte, tail @ ..] = rest {
        rest = match (byte, tail) {
            (b'%', [high, low, tail @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => tail,
            (b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~', _) => tail,
            (b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=', _) => tail,
            _ => return false,
        };
    }
    !text.is_empty()
}

/// Five digits at most, which bounds leading zeros.
fn parse_port(digits: &[u8]) -> Option<u16> {
    let number = crate::decimal::parse_decimal(digits)?;
    u16::try_from(number).ok().filter(|_| digits.len() <= 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_and_without_a_port() {
        for (text, host, port) in [
            ("example.org", "example.org", None),
            ("Example.ORG:8080", "Example.ORG", Some(8080)),
            ("example.org:", "example.org", None),
            ("a_b-c~1.example", "a_b-c~1.example", None),
            ("caf%C3%A9.example", "caf%C3%A9.example", None),
            ("127.0.0.1:65535", "127.0.0.1", Some(65535)),
            ("[::1]", "[::1]", None),
            ("[2001:db8::7]:80", "[2001:db8::7]", Some(80)),
            ("[v1.a]", "[v1.a]", None),
            ("[VfF.a:b~!c]:80", "[VfF.a:b~!c]", Some(80)),
            ("[v1.:]", "[v1.:]", None),
        ] {
            assert_eq!(Authority::parse(text.as_bytes()), Some(Authority { host, port }), "{text}");
        }
    }

    #[test]
    fn the_dot_of_the_root_is_no_part_of_a_name() {
        for (host, expected) in [("a.test.", "a.test"), ("a.test", "a.test"), (".", "."), ("[::1]", "[::1]")]
        {
            assert_eq!(without_root(host), expected);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            ":80",
            "user@example.org",
            "user:word@example.org",
            "a b",
            "a/b",
            "a:b",
            "a:80:80",
            "a:-1",
            "a:+1",
            "a:65536",
            "a:000080",
            "a:99999999999999999999",
            "a%4",
            "a%zz",
            "[::1",
            "[::1]x",
            "[::1]80",
            "[]",
            "[127.0.0.1]",
            "[v1]",
            "[v1.]",
            "[v.a]",
            "[vg.a]",
            "[v1.a%41]",
            "[v1.a/b]",
            "[v1.é]",
            "[fe80::1%25eth0]",
            "::1",
            "a,b:80,",
            "ex\\ample",
            "é",
            "a\0b",
        ] {
            assert_eq!(Authority::parse(text.as_bytes()), None, "{text:?}");
        }
    }
}
