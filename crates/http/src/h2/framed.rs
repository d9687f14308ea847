//! What was put into the output, and whose it is.

use super::frame::StreamId;

/// An entry for each frame, in order, so that bytes which leave the socket can be accounted to requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framed {
    /// Whose; `None` for frames of the connection.
    pub stream: Option<StreamId>,
    /// Bytes of framing. They come first (a head that needs CONTINUATION has some in between).
    pub overhead_bytes: u64,
    /// Bytes of a header block.
    pub head_bytes: u64,
    /// Bytes of a response's body.
    pub body_bytes: u64,
    /// The response ends here.
    pub ends: bool,
}

impl Framed {
    /// All bytes of the entry.
    pub const fn total_bytes(&self) -> u64 {
        self.overhead_bytes + self.head_bytes + self.body_bytes
    }

    /// Bytes of framing alone.
    pub(crate) const fn overhead(stream: Option<StreamId>, bytes: usize) -> Self {
        Self { stream, overhead_bytes: bytes as u64, head_bytes: 0, body_bytes: 0, ends: false }
    }
}
