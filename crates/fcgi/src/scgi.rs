//! SCGI: the same parameters in a netstring, then the body (the protocol's specification, section 3). The
//! answer is a CGI response ([`crate::cgi`]) that ends with the connection.

use crate::Broken;
use crate::params::Params;

/// Appends a request up to its body: the pairs of `block` (made with [`params::push`](crate::params::push)) after the
/// length of the body, which replaces a `CONTENT_LENGTH` among them.
///
/// # Errors
/// [`Broken::Params`] if the block ends in the middle of a pair or a pair has a NUL, which ends names and
/// values here; nothing is appended then.
pub fn push_request(out: &mut Vec<u8>, block: &[u8], content_length: u64) -> Result<(), Broken> {
    let mut length = itoa::Buffer::new();
    let first = [
        (&b"CONTENT_LENGTH"[..], length.format(content_length).as_bytes()),
        // The version.
        (&b"SCGI"[..], &b"1"[..]),
    ];
    let mut bytes: usize = first.iter().map(|pair| pair_bytes(*pair)).sum();
    for pair in pairs(block) {
        let (name, value) = pair?;
        if memchr::memchr(0, name).or_else(|| memchr::memchr(0, value)).is_some() {
            return Err(Broken::Params);
        }
        bytes += pair_bytes((name, value));
    }
    out.reserve(bytes + 2 * itoa::Buffer::new().format(bytes).len());
    out.extend_from_slice(itoa::Buffer::new().format(bytes).as_bytes());
    out.push(b':');
    for (name, value) in first.into_iter().chain(pairs(block).flatten()) {
        out.extend_from_slice(name);
        out.push(0);
        out.extend_from_slice(value);
        out.push(0);
    }
    out.push(b',');
    Ok(())
}

/// The pairs that are not written in front.
fn pairs(block: &[u8]) -> impl Iterator<Item = Result<(&[u8], &[u8]), Broken>> {
    Params::new(block).filter(|pair| !matches!(pair, Ok((b"CONTENT_LENGTH" | b"SCGI", _))))
}

const fn pair_bytes((name, value): (&[u8], &[u8])) -> usize {
    name.len() + value.len() + 2
}
