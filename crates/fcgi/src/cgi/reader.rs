//! Finds where a head ends.

use super::{BadHead, CgiHead};

/// The end of a head: the index after its first blank line, for LF and CR LF. `from`: number of bytes scanned before.
pub fn find_end(bytes: &[u8], from: usize) -> Option<usize> {
    memchr::memchr_iter(b'\n', bytes.get(from..)?).map(|at| from + at).find_map(|newline| {
        let before = &bytes[..newline];
        let line_end = before.strip_suffix(b"\r").unwrap_or(before);
        matches!(line_end.last(), None | Some(b'\n')).then_some(newline + 1)
    })
}

/// Collects a head from the pieces of a stream.
#[derive(Debug)]
pub struct HeadReader {
    text: Vec<u8>,
    bytes_max: usize,
}

/// The result of reading a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadStep {
    /// The whole piece belongs to the head, which is incomplete.
    NeedMore,
    /// The head ended within the piece.
    End {
        /// Where in the piece the body begins.
        body_at: usize,
    },
}

impl HeadReader {
    /// With nothing read. `bytes_max`: the longest head, its blank line included.
    pub const fn new(bytes_max: usize) -> Self {
        Self { text: Vec::new(), bytes_max }
    }

    /// Uses this buffer's memory, not its content.
    pub fn with_buffer(mut buffer: Vec<u8>, bytes_max: usize) -> Self {
        buffer.clear();
        Self { text: buffer, bytes_max }
    }

    /// Takes the next piece of the response.
    ///
    /// # Errors
    /// [`BadHead::TooLarge`]. [`text`](Self::text) has all that was read before this piece then, and nothing
    /// of it.
    pub fn read(&mut self, piece: &[u8]) -> Result<HeadStep, BadHead> {
        let known = self.text.len();
        // What cannot be a part of the head is not even copied.
        let most = piece.len().min(self.bytes_max - known);
        self.text.extend_from_slice(&piece[..most]);
        if let Some(end) = find_end(&self.text, known) {
            self.text.truncate(end);
            return Ok(HeadStep::End { body_at: end - known });
        }
        if most < piece.len() {
            self.text.truncate(known);
            return Err(BadHead::TooLarge { limit: self.bytes_max });
        }
        Ok(HeadStep::NeedMore)
    }

    /// The part of the head read so far.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Parses the head: at its end, or at the end of the response.
    ///
    /// # Errors
    /// As [`CgiHead::parse`].
    pub fn finish(self) -> Result<CgiHead, BadHead> {
        CgiHead::parse(self.text)
    }
}
