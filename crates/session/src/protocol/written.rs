//! What an exchange's turn came to, for the log and the input.

/// What an exchange has read and written in one turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// Bytes of the input behind the request's head that were read.
    pub(crate) consumed: usize,
    /// Bytes of the response that wait to be sent, heads included.
    pub(crate) bytes: u64,
    /// Of these, bytes of heads.
    pub(crate) head_bytes: u64,
    /// HTTP/2: the frame that ends the response waits to be sent, too. It need not have bytes of the response.
    pub(crate) ends: bool,
}

/// An application's response is shorter than its `Content-Length`.
#[derive(Debug)]
pub(crate) struct TooShort;
