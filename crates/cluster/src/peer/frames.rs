//! Where messages begin and end in a stream.

use super::{BODY_BYTES_MAX, MessageRefused};

/// Bytes that have arrived and not been read: never much more than one message.
#[derive(Debug, Default)]
pub struct Frames {
    input: Vec<u8>,
    /// Bytes at the front that have been read.
    read: usize,
}

/// Bytes of a length.
const LENGTH_BYTES: usize = 4;

impl Frames {
    /// Takes what has arrived.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.input.drain(..std::mem::take(&mut self.read));
        self.input.extend_from_slice(bytes);
    }

    /// The body of the next message, if all of it is there.
    ///
    /// # Errors
    /// [`MessageRefused::TooLong`]: nothing behind it can be read.
    pub fn next_body(&mut self) -> Result<Option<&[u8]>, MessageRefused> {
        let rest = &self.input[self.read..];
        let Some(length) = rest.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > BODY_BYTES_MAX {
            return Err(MessageRefused::TooLong);
        }
        let Some(body) = rest.get(LENGTH_BYTES..LENGTH_BYTES + length) else { return Ok(None) };
        self.read += LENGTH_BYTES + length;
        Ok(Some(body))
    }
}

/// Puts the length in front of a body. `None`: it is too long.
pub(super) fn frame(body: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= BODY_BYTES_MAX)?;
    Some([&length.to_be_bytes()[..], body].concat())
}
