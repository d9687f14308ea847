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
    /// It is complete. The name that it asks for, in lower case; `None`: it gives none, or none that is a host name.
    Whole(Option<Box<str>>),
    /// This is no such message; the library knows the right alert.
    Broken,
}

/// The type of a record with handshake messages: the first byte that a client sends.
const HANDSHAKE_RECORD: u8 = 22;

/// The type of the message (RFC 8446, section 4).
const CLIENT_HELLO: u8 = 1;

/// The extension that names the server (RFC 6066, section 3).
const SERVER_NAME: u16 = 0;

/// The only type of name.
const HOST_NAME: u8 = 0;

/// Whether a connection that begins with these bytes, at least one, may be TLS. No request of HTTP begins so.
pub fn looks_like_tls(first_bytes: &[u8]) -> bool {
    first_bytes.first() == Some(&HANDSHAKE_RECORD)
}

impl ClientHello {
    /// Looks at all the bytes that a client has sent so far.
    pub(crate) fn read(mut input: &[u8]) -> Self {
        // Almost always the message is in one record; only a longer one is put together.
        let mut joined = Vec::new();
        loop {
            let Some((header, rest)) = input.split_first_chunk::<5>() else {
                let may_go_on = input.first().is_none_or(|first| *first == HANDSHAKE_RECORD);
                return if may_go_on { Self::Part } else { Self::Broken };
            };
            let len = usize::from(u16::from_be_bytes([header[3], header[4]]));
            if header[0] != HANDSHAKE_RECORD || header[1] != 3 || len == 0 || len > 1 << 14 {
                return Self::Broken;
            }
            let Some((fragment, rest)) = rest.split_at_checked(len) else { return Self::Part };
            let message = if joined.is_empty() {
                fragment
            } else {
                joined.extend_from_slice(fragment);
                &joined[..]
            };
            match body(message) {
                Err(Broken) => return Self::Broken,
                Ok(Some(body)) => return server_name(body).map_or(Self::Broken, Self::Whole),
                Ok(None) if joined.is_empty() => joined.extend_from_slice(fragment),
                Ok(None) => {}
            }
            input = rest;
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

/// The host name in the body of the message (RFC 8446, section 4.1.2); `None`: the body cannot be parsed.
fn server_name(body: &[u8]) -> Option<Option<Box<str>>> {
    let mut body = Reader(body);
    body.take(2 + 32)?; // Version and random.
    body.vector8()?; // Session.
    body.vector16()?; // Cipher suites.
    body.vector8()?; // Compression methods.
    if body.0.is_empty() {
        return Some(None); // TLS 1.2 allows a message without extensions.
    }
    let mut extensions = Reader(body.vector16()?);
    while !extensions.0.is_empty() {
        let kind = extensions.u16()?;
        let mut content = Reader(extensions.vector16()?);
        if kind == SERVER_NAME {
            let mut names = Reader(content.vector16()?);
            let name = (names.take(1)? == [HOST_NAME]).then(|| names.vector16());
            return Some(name.flatten().and_then(host_name));
        }
    }
    Some(None)
}

/// A host name in lower case, unless it has characters that none has.
fn host_name(name: &[u8]) -> Option<Box<str>> {
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
