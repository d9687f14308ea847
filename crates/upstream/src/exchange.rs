//! A request and its response, from `begin` until the session has taken the last event.

use std::sync::Arc;

use baton_shares::{ClientKey, Permit};

use crate::attempts::Attempts;
use crate::connections::ConnectionId;
use crate::origins::AtOrigin;
use crate::peers::Turn;
use crate::pending_response::PendingResponse;
use crate::spool::Bounds;
use crate::trail::TrailSoFar;
use crate::{Application, Request, Settings};

/// A request and its response.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// `None` once it has been answered.
    pub(crate) request: Option<Request>,
    pub(crate) response: PendingResponse,
    /// Memory for the head of the response.
    pub(crate) memory: Vec<u8>,
    pub(crate) pool: usize,
    /// Its turn at a peer, if there are several.
    pub(crate) turn: Option<Turn>,
    /// Its part of the counts of an origin. Checks have none.
    pub(crate) at_origin: Option<AtOrigin>,
    pub(crate) state: ExchangeState,
    /// Its part of its client's share of the connections, while it is on one.
    pub(crate) place: Option<Permit>,
    /// Whether it is in the list of requests with events to take.
    pub(crate) is_announced: bool,
    /// Whether the session has yet to learn that the application wants more of the body.
    pub(crate) wants_body: bool,
    /// Whether pieces of the body were sent and dropped. Then the request cannot be repeated.
    pub(crate) is_partly_gone: bool,
    /// What was tried for it.
    pub(crate) attempts: Attempts,
    /// What the log says of its way.
    pub(crate) trail: TrailSoFar,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeState {
    /// In the queue of its pool.
    Queued,
    /// On a connection.
    Assigned(ConnectionId),
    /// Answered or failed.
    Finished,
}

impl Exchange {
    pub(crate) fn new(request: Request, pool: usize, memory: Vec<u8>, now_ms: u64) -> Self {
        let application = Arc::clone(&request.application);
        let answered = Self::answered(&application, request.client, pool, memory, now_ms);
        Self { request: Some(request), state: ExchangeState::Queued, ..answered }
    }

    /// A request that goes to no connection.
    pub(crate) fn answered(
        application: &Application,
        client: Option<ClientKey>,
        pool: usize,
        memory: Vec<u8>,
        now_ms: u64,
    ) -> Self {
        Self {
            request: None,
            response: PendingResponse::new(bounds(application.settings()), client),
            memory,
            pool,
            turn: None,
            at_origin: None,
            state: ExchangeState::Finished,
            place: None,
            is_announced: false,
            wants_body: false,
            is_partly_gone: false,
            attempts: Attempts::default(),
            trail: TrailSoFar::new(now_ms),
        }
    }

    /// Whether the session has something to take or to learn.
    pub(crate) fn has_news(&self) -> bool {
        self.wants_body || self.response.has_event()
    }

    /// The request goes to its peer through the gateway.
    pub(crate) fn note_relayed(&mut self) {
        let choice = self.turn.as_ref().and_then(Turn::choice);
        self.trail.note_choice(choice);
        if let (Some(turn), Some(choice)) = (&self.turn, choice) {
            turn.application().settings().record.note_way(choice.way);
        }
    }
}

fn bounds(settings: &Settings) -> Bounds {
    Bounds { memory: settings.spool_memory_bytes, file: settings.spool_file_bytes_max }
}
