//! A request and its answer, from its beginning until the last of its news has been taken.

use crate::connections::ConnectionId;
use crate::pending_response::PendingResponse;
use crate::spool::Bounds;
use crate::{Request, Settings};

/// A request and its answer.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// What is asked; `None` when it has been answered.
    pub(crate) request: Option<Request>,
    pub(crate) response: PendingResponse,
    pub(crate) pool: usize,
    pub(crate) state: ExchangeState,
    /// Whether its news have been announced and not been looked at.
    pub(crate) is_announced: bool,
    /// Whether more of the request's body is wanted, which has not been told.
    pub(crate) wants_body: bool,
    /// Whether some of what the application was told of the request is not here any more.
    pub(crate) is_partly_gone: bool,
    /// Whether it has been sent a second time, although the application may have begun with it.
    pub(crate) is_retried: bool,
    /// How often it was sent to an application that has not seen it.
    pub(crate) times_unseen: u8,
    /// Until when the backlog of the application may be full.
    pub(crate) connecting_until_ms: Option<u64>,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeState {
    /// In the queue of its pool.
    Queued,
    /// On a connection.
    Assigned(ConnectionId),
    /// Nowhere: nothing more comes of it.
    Finished,
}

impl Exchange {
    pub(crate) fn new(request: Request, pool: usize, memory: Vec<u8>) -> Self {
        let response = PendingResponse::new(bounds(request.application.settings()), memory);
        Self {
            request: Some(request),
            response,
            pool,
            state: ExchangeState::Queued,
            is_announced: false,
            wants_body: false,
            is_partly_gone: false,
            is_retried: false,
            times_unseen: 0,
            connecting_until_ms: None,
        }
    }
}

fn bounds(settings: &Settings) -> Bounds {
    Bounds { memory: settings.spool_memory_bytes, file: settings.spool_file_bytes_max }
}
