//! What an origin or an application gets, read at the other end of its connection.

use std::io::{self, Read};

use baton_fcgi::params::Params;
use baton_fcgi::record::{HEADER_BYTES, RecordType};

/// A request, as far as it is told apart from its body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Forwarded {
    /// A head of HTTP/1.
    Head(String),
    /// Parameters of FastCGI or SCGI.
    Parameters(Vec<(String, String)>),
}

impl Forwarded {
    /// Reads a request: its first byte tells the protocol.
    ///
    /// # Errors
    /// The connection ends before, or the request is in none of these protocols.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut received = Vec::new();
        let mut some = [0; 4096];
        loop {
            let found = match received.first() {
                None => None,
                Some(1) => fastcgi(&received)?,
                Some(b'0'..=b'9') => scgi(&received)?,
                Some(_) => head(&received).map(Self::Head),
            };
            if let Some(found) = found {
                return Ok(found);
            }
            match from.read(&mut some)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => received.extend_from_slice(&some[..count]),
            }
        }
    }
}

/// A head of HTTP/1 up to the empty line, if it is complete.
pub(super) fn head(received: &[u8]) -> Option<String> {
    let end = received.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(String::from_utf8_lossy(&received[..end]).into_owned())
}

/// The parameters in all records of their stream, which an empty one ends.
fn fastcgi(mut received: &[u8]) -> io::Result<Option<Forwarded>> {
    let mut block = Vec::new();
    while let Some((header, rest)) = received.split_at_checked(HEADER_BYTES) {
        let content = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let Some((content, rest)) = rest.split_at_checked(content) else { return Ok(None) };
        let Some((_, rest)) = rest.split_at_checked(usize::from(header[6])) else { return Ok(None) };
        received = rest;
        if RecordType::from_u8(header[1]) == Some(RecordType::Params) {
            if content.is_empty() {
                let pairs: Result<Vec<_>, _> = Params::new(&block)
                    .map(|pair| pair.map(|(name, value)| (shown(name), shown(value))))
                    .collect();
                return pairs.map(|pairs| Some(Forwarded::Parameters(pairs))).map_err(io::Error::other);
            }
            block.extend_from_slice(content);
        }
    }
    Ok(None)
}

/// The pairs of a netstring.
fn scgi(received: &[u8]) -> io::Result<Option<Forwarded>> {
    let Some(colon) = received.iter().position(|byte| *byte == b':') else { return Ok(None) };
    let length = std::str::from_utf8(&received[..colon]).ok().and_then(|length| length.parse().ok());
    let length: usize = length.ok_or(io::ErrorKind::InvalidData)?;
    let Some((pairs, _)) = received[colon + 1..].split_at_checked(length) else { return Ok(None) };
    let texts: Vec<_> = pairs.split(|byte| *byte == 0).collect();
    let pairs = texts.chunks_exact(2).map(|pair| (shown(pair[0]), shown(pair[1])));
    Ok(Some(Forwarded::Parameters(pairs.collect())))
}

fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut bytes: &[u8]) -> io::Result<Forwarded> {
        Forwarded::read(&mut bytes)
    }

    #[test]
    fn the_first_byte_tells_the_protocol() {
        assert_eq!(
            read(b"GET / HTTP/1.1\r\nA: b\r\n\r\nbody").unwrap(),
            Forwarded::Head("GET / HTTP/1.1\r\nA: b".into())
        );
        let parameters = |name: &str, value: &str| Forwarded::Parameters(vec![(name.into(), value.into())]);
        assert_eq!(read(b"5:A\0b\n\0,body").unwrap(), parameters("A", "b\\n"));
        let record = |kind: u8, content: &[u8]| {
            [&[1, kind, 0, 1, 0, content.len() as u8, 2, 0][..], content, &[0, 0]].concat()
        };
        let request =
            [record(1, &[0; 8]), record(4, b"\x01\x02Ab"), record(4, b"c"), record(4, b"")].concat();
        assert_eq!(read(&request).unwrap(), parameters("A", "bc"));
        for cut in 0..request.len() - 2 {
            assert_eq!(read(&request[..cut]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{cut}");
        }
    }
}
