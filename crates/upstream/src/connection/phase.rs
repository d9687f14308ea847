//! What a connection is doing, and what belongs to that alone.

use std::sync::Arc;

use baton_buf::Pipe;

use crate::RequestId;

/// What a connection is doing.
#[derive(Debug)]
pub(crate) enum Phase {
    /// It is being connected, for this request.
    Connecting { request_id: RequestId, until_ms: u64 },
    /// It is connected, and TLS is not established yet.
    Securing { request_id: RequestId, until_ms: u64 },
    /// The application is answering a request.
    Serving(Serving),
    /// It is kept for the next request.
    Idle { until_ms: u64 },
    /// The request has timed out. Its process holds the client's socket and is being ended.
    Ending { request_id: RequestId, until_ms: u64 },
}

/// A request that the application is answering.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) request_id: RequestId,
    pub(super) deadlines: Deadlines,
    /// Whether the connection will be kept when the request has been answered.
    pub(super) keeps: bool,
    /// Whether the client was asked for more of the request's body.
    pub(super) awaits_client: bool,
    pub(super) delivery: Delivery,
    pub(super) route: BodyRoute,
    pub(super) halves: Halves,
}

/// The deadlines of a request on a connection; `u64::MAX`: there is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadlines {
    /// When the application must have moved.
    pub(super) until_ms: u64,
    /// End of the client's grace period, in which the application waits.
    pub(super) grace_until_ms: u64,
    /// When the head of the response must have come. There is none once it has.
    pub(super) head_until_ms: u64,
}

impl Deadlines {
    pub(super) const NONE: Self =
        Self { until_ms: u64::MAX, grace_until_ms: u64::MAX, head_until_ms: u64::MAX };

    /// The next of them. The head's is what the application's is set to.
    pub(super) fn due_ms(&self) -> u64 {
        self.until_ms.min(self.grace_until_ms)
    }

    /// Whether the head of the response is to come by a time of its own.
    pub(super) fn awaits_head(&self) -> bool {
        self.head_until_ms != u64::MAX
    }
}

/// How far a request has come on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// The socket has taken nothing of it.
    Unsent,
    /// The socket has taken some of it.
    Sent,
    /// The application has sent something since.
    Heard,
    /// The application closed the connection without reading it.
    LeftUnread,
}

/// How the body of a response comes: by reads, or its rest through a pipe.
#[derive(Debug)]
pub(super) struct BodyRoute {
    /// From how many bytes on the rest goes through a pipe; `u64::MAX`: it does not.
    pub(super) splice_bytes_min: u64,
    /// The pipe of this response.
    pub(super) pipe: Option<Arc<Pipe>>,
}

/// Which halves of a tunnel have ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Halves {
    /// The origin sends no more.
    pub(super) input_over: bool,
    /// The origin was told that nothing follows.
    pub(super) output_over: bool,
}

impl Phase {
    /// The request for which the connection is in use.
    pub(crate) fn request_id(&self) -> Option<RequestId> {
        match *self {
            Self::Connecting { request_id, .. }
            | Self::Securing { request_id, .. }
            | Self::Ending { request_id, .. }
            | Self::Serving(Serving { request_id, .. }) => Some(request_id),
            Self::Idle { .. } => None,
        }
    }

    /// When something is to be done about it; `u64::MAX`: never.
    pub(crate) fn due_ms(&self) -> u64 {
        match self {
            Self::Connecting { until_ms, .. }
            | Self::Securing { until_ms, .. }
            | Self::Idle { until_ms }
            | Self::Ending { until_ms, .. } => *until_ms,
            Self::Serving(serving) => serving.deadlines.due_ms(),
        }
    }
}

impl Serving {
    pub(super) fn new(request_id: RequestId, keeps: bool, splice_bytes_min: u64) -> Self {
        Self {
            request_id,
            deadlines: Deadlines::NONE,
            keeps,
            awaits_client: false,
            delivery: Delivery::Unsent,
            route: BodyRoute { splice_bytes_min, pipe: None },
            halves: Halves::default(),
        }
    }
}

impl Delivery {
    /// The socket has taken some of the request.
    pub(super) fn note_sent(&mut self) {
        if *self == Self::Unsent {
            *self = Self::Sent;
        }
    }

    /// The application has sent something.
    pub(super) fn note_heard(&mut self) {
        if *self == Self::Sent {
            *self = Self::Heard;
        }
    }

    /// Whether the application cannot have begun with the request.
    pub(super) fn is_unseen(self) -> bool {
        matches!(self, Self::Unsent | Self::LeftUnread)
    }
}

impl BodyRoute {
    /// Whether the client has left bytes in the pipe.
    pub(super) fn holds_piped(&self) -> bool {
        self.pipe.as_ref().is_some_and(|pipe| !pipe.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a request is sent again only if no application can have begun with it.
    #[test]
    fn a_request_is_unseen_until_some_of_it_is_sent() {
        let mut delivery = Delivery::Unsent;
        delivery.note_heard();
        assert!(delivery.is_unseen(), "an origin that speaks first has read nothing");
        delivery.note_sent();
        assert_eq!((delivery, delivery.is_unseen()), (Delivery::Sent, false));
        delivery.note_heard();
        delivery.note_sent();
        assert_eq!((delivery, delivery.is_unseen()), (Delivery::Heard, false));
        assert!(Delivery::LeftUnread.is_unseen());
    }

    #[test]
    fn a_phase_is_due_at_its_own_time() {
        let request_id = RequestId::new(1);
        assert_eq!(Phase::Connecting { request_id, until_ms: 5 }.due_ms(), 5);
        assert_eq!(Phase::Idle { until_ms: 7 }.due_ms(), 7);
        let serving = Serving::new(request_id, true, u64::MAX);
        assert_eq!(Phase::Serving(serving).due_ms(), u64::MAX, "nothing is sent yet");
    }

    #[test]
    fn an_idle_connection_is_in_use_for_no_request() {
        let request_id = RequestId::new(1);
        assert_eq!(Phase::Idle { until_ms: 0 }.request_id(), None);
        for phase in [
            Phase::Connecting { request_id, until_ms: 0 },
            Phase::Securing { request_id, until_ms: 0 },
            Phase::Serving(Serving::new(request_id, false, u64::MAX)),
            Phase::Ending { request_id, until_ms: 0 },
        ] {
            assert_eq!(phase.request_id(), Some(request_id), "{phase:?}");
        }
    }

    #[test]
    fn the_grace_of_a_client_ends_before_the_time_of_the_application() {
        let deadlines = Deadlines { until_ms: 9, grace_until_ms: 8, head_until_ms: 9 };
        assert_eq!((deadlines.due_ms(), Deadlines::NONE.due_ms()), (8, u64::MAX));
        assert!(deadlines.awaits_head() && !Deadlines::NONE.awaits_head());
    }
}
