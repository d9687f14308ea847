//! One request on a stream, as both ends see it.

use super::frame::WINDOW_USUAL;
use super::state::Priority;
use crate::response::Response;

/// A stream that the client has opened.
#[derive(Debug)]
pub(super) struct Stream {
    /// Which of the client's requests it is.
    pub(super) request: usize,

    pub(super) priority: Priority,
    /// Streams that have sent since this one has, though it could.
    pub(super) passed_by: Vec<u32>,

    // What the client has put into its outbox
    /// Bytes of the body.
    pub(super) body_sent: usize,
    /// The request is complete, and was so with its head.
    pub(super) has_ended: bool,
    pub(super) is_head_only: bool,
    /// Where the frame that resets the stream ends in what the client sends.
    pub(super) cancelled_at: Option<usize>,
    /// Bytes of DATA that the client may send.
    pub(super) credit: i64,
    /// Bytes of DATA that the client has allowed and not got.
    pub(super) promised: i64,

    // What the server has read of that
    pub(super) is_read: bool,
    pub(super) is_end_read: bool,
    /// Bytes of DATA that the server may send.
    pub(super) window: i64,
    /// The same without any WINDOW_UPDATE.
    pub(super) first_window: i64,

    // The response
    pub(super) response: Option<Response>,
    pub(super) is_complete: bool,
    /// The code by which the server has reset the stream.
    pub(super) reset: Option<u32>,
    /// The server knows for sure that the client has reset the stream, and has nothing of it on its way.
    pub(super) is_silenced: bool,
}

impl Stream {
    pub(super) fn new(request: usize, priority: Priority, promised: u32) -> Self {
        Self {
            request,
            priority,
            passed_by: Vec::new(),
            body_sent: 0,
            has_ended: false,
            is_head_only: false,
            cancelled_at: None,
            credit: WINDOW_USUAL.into(),
            promised: promised.into(),
            is_read: false,
            is_end_read: false,
            window: 0,
            first_window: 0,
            response: None,
            is_complete: false,
            reset: None,
            is_silenced: false,
        }
    }

    /// Whether the client awaits nothing more of it.
    pub(super) fn is_over(&self) -> bool {
        self.is_complete || self.reset.is_some() || self.cancelled_at.is_some()
    }

    /// Whether the client may send more of the request.
    pub(super) fn is_uploading(&self) -> bool {
        !self.has_ended && self.reset.is_none() && self.cancelled_at.is_none()
    }
}
