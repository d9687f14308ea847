//! A look at the first message of a client, before the library sees it.
//!
//! Which configuration answers a client depends on the name that it asks for, and the library wants the configuration
//! first. Until the message is complete, a client costs its bytes and nothing else. Everything but the name is left for
//! the library to judge.

/// What the first bytes of a client amount to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientHello {
    /// The message is not complete.
    Part,
    /// The message is complete.
    Whole(HelloFacts),
    /// This is no such message; the library knows the right alert.
    Broken,
}

/// What decides about a client's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HelloFacts {
    /// The name that it asks for, in lower case; `None`: it gives none, or none that is a host name.
    pub(crate) name: Option<Box<str>>,
    /// Whether the client is an authority that wants to see a proof (RFC 8737): it offers `acme-tls/1` and nothing else.
    pub(crate) wants_proof: bool,
    /// Whether it knows TLS 1.1 at most.
    pub(crate) is_too_old: bool,
}

/// The type of a record with handshake messages: the first byte that a client sends.
const HANDSHAKE_RECORD: u8 = 22;

/// The type of the message (RFC 8446, section 4).
const CLIENT_HELLO: u8 = 1;

/// The extension that names the server (RFC 6066, section 3).
const SERVER_NAME: u16 = 0;

/// The extension that offers protocols (RFC 7301, section 3.1).
const PROTOCOLS: u16 = 16;

/// The protocol of an authority that wants to see a proof.
pub(crate) const ACME_PROTOCOL: &[u8] = b"acme-tls/1";

/// The version of TLS 1.2.
const TLS12: u16 = 0x0303;

/// The only type of name.
const HOST_NAME: u8 = 0;

/// Whether a connection that begins with these bytes, at least one, may be TLS. No request of HTTP begins so.
pub fn looks_like_tls(first_bytes: &[u8]) -> bool {
    first_bytes.first() == Some(&HANDSHAKE_RECORD)
}

/// Looks for the message in the bytes that a client sends, at each of them once: a client may send it in records of a byte.
#[derive(Debug, Default)]
pub(crate) struct HelloReader {
    /// Where the next record begins.
    at: usize,
    /// What the records so far hold of the message, if the first one does not hold all of it.
    joined: Vec<u8>,
}

impl HelloReader {
    /// Looks at the input, to which bytes have been added since the last time.
    pub(crate) fn read(&mut self, input: &[u8]) -> ClientHello {
        loop {
            let record = &input[self.at..];
            let Some((header, rest)) = record.split_first_chunk::<5>() else {
                let may_go_on = record.first().is_none_or(|first| *first == HANDSHAKE_RECORD);
                return if may_go_on { ClientHello::Part } else { ClientHello::Broken };
            };
            let len = usize::from(u16::from_be_bytes([header[3], header[4]]));
            if header[0] != HANDSHAKE_RECORD || header[1] != 3 || len == 0 || len > 1 << 14 {
                return ClientHello::Broken;
            }
            let Some(fragment) = rest.get(..len) else { return ClientHello::Part };
            self.at += header.len() + len;
            // Almost always the message is in one record; only a longer one is put together.
            let is_first = self.joined.is_empty();
            if !is_first {
                self.joined.extend_from_slice(fragment);
            }
            match body(if is_first { fragment } else { &self.joined }) {
                Err(Broken) => return ClientHello::Broken,
                Ok(Some(body)) => return asked(body).map_or(ClientHello::Broken, ClientHello::Whole),
                Ok(None) if is_first => self.joined.extend_from_slice(fragment),
                Ok(None) => {}
            }
        }
    }
}

struct Broken;

/// The body of the message, if all of it is there.
fn body(message: &[u8]) -> Result<Option<&[u8]>, Broken> {
    match message {
        [CLIENT_HELLO, high, middle, low, body @ ..] => {
            Ok(body.get(..u32::from_be_bytes([0, *high, *middle, *low]) as usize))
        }
        [CLIENT_HELLO, ..] => Ok(None),
        _ => Err(Broken),
    }
}

/// What the body of the message says (RFC 8446, section 4.1.2); `None`: it cannot be parsed.
fn asked(body: &[u8]) -> Option<HelloFacts> {
    let mut asked = HelloFacts::default();
    let mut body = Reader(body);
    // TLS 1.3 puts its version elsewhere, and that of TLS 1.2 here.
    asked.is_too_old = body.u16()? < TLS12;
    body.take(32)?; // Random.
    body.vector8()?; // Session.
    body.vector16()?; // Cipher suites.
    body.vector8()?; // Compression methods.
    if body.0.is_empty() {
        return Some(asked); // TLS 1.2 allows a message without extensions.
    }
    let mut extensions = Reader(body.vector16()?);
    while !extensions.0.is_empty() {
        let kind = extensions.u16()?;
        let mut content = Reader(extensions.vector16()?);
        match kind {
            SERVER_NAME => {
                let mut names = Reader(content.vector16()?);
                let name = (names.take(1)? == [HOST_NAME]).then(|| names.vector16());
                asked.name = name.flatten().and_then(host_name);
            }
            PROTOCOLS => {
                let mut protocols = Reader(content.vector16()?);
                asked.wants_proof = protocols.vector8()? == ACME_PROTOCOL && protocols.0.is_empty();
            }
            _ => {}
        }
    }
    Some(asked)
}

/// A host name in lower case, unless it has characters that none has. The dot of the root at its end, which RFC 6066 section 3
/// forbids, is taken off: browsers send it for `https://example.org./`.
fn host_name(name: &[u8]) -> Option<Box<str>> {
    let name = name.strip_suffix(b".").unwrap_or(name);
    const BYTES_MAX: usize = 253;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let fits = (1..=BYTES_MAX).contains(&name.len()) && name.iter().all(is_plain);
    let name = str::from_utf8(name).ok().filter(|_| fits)?;
    Some(name.to_ascii_lowercase().into())
}

/// Reads the fields of a message one after the other.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Bytes with their number in one byte in front.
    fn vector8(&mut self) -> Option<&'a [u8]> {
        let len = self.take(1)?[0];
        self.take(usize::from(len))
    }

    /// Bytes with their number in two bytes in front.
    fn vector16(&mut self) -> Option<&'a [u8]> {
        let len = self.u16()?;
        self.take(usize::from(len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the work for a message in many records grows with its bytes, not with their square. Method: what has been read is
    /// not read again.
    #[test]
    fn a_message_in_records_of_a_byte_is_read_once() {
        let hello = [&[CLIENT_HELLO, 0, 0, 41, 3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0]].concat();
        let (mut reader, mut input) = (HelloReader::default(), Vec::new());
        for (index, byte) in hello.iter().enumerate() {
            for part in [&[HANDSHAKE_RECORD, 3, 1, 0, 1][..], &[*byte]] {
                let read = reader.read(&input);
                assert_eq!((reader.at, reader.joined.len(), read), (6 * index, index, ClientHello::Part));
                input.extend_from_slice(part);
            }
        }
        assert_eq!(reader.read(&input), ClientHello::Whole(HelloFacts::default()));
        assert_eq!(
            HelloReader::default().read(&input),
            ClientHello::Whole(HelloFacts::default()),
            "all at once"
        );
    }
}
