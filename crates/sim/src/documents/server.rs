//! A server of the simulation: one processor with a queue, copies of lent documents, and what it counts.

use hashbrown::HashMap;

use crate::queueing::{Station, Work};

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) client: u32,
    pub(super) document: u32,
    /// Whether the client visits it, and does not embed it.
    pub(super) is_page: bool,
}

/// What a server does for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// Sends the document to a client.
    Answer(Request),
    /// Sends a client to another server.
    Redirect(Request),
    /// The home server sends a document, or that it has not changed, to a peer.
    Copy { document: u32, peer: u32 },
}

/// A server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) station: Station<Job>,
    /// Documents that are lent to it and have arrived.
    pub(super) copies: HashMap<u32, DocumentCopy, foldhash::fast::FixedState>,
    /// Requests for documents that are on their way from the home server.
    pub(super) waiting: HashMap<u32, Vec<Request>, foldhash::fast::FixedState>,
    /// Answers since the measuring began.
    pub(super) answers: u64,
    /// Load since the interval began, by the metric of the policy.
    pub(super) counted: u64,
    /// Requests per second in the interval before: the load that it tells.
    pub(super) load: u64,
}

/// A copy of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct DocumentCopy {
    /// When the home server looked up where its links lead.
    pub(super) as_of_ns: u64,
    /// When the home server last said that it has not changed.
    pub(super) checked_ns: u64,
    /// Whether the home server has been asked again.
    pub(super) is_asking: bool,
}

impl Server {
    pub(super) fn new() -> Self {
        Self {
            station: Station::new(1),
            copies: HashMap::default(),
            waiting: HashMap::default(),
            answers: 0,
            counted: 0,
            load: 0,
        }
    }

    /// Takes work; returns it if it begins at once.
    pub(super) fn offer(&mut self, job: Job, ns: u64) -> Option<Work<Job>> {
        self.station.offer(Work { job, ns })
    }
}
