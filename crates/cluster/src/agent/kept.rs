//! A connection that a front-end has given to this host.

use baton_passport::Passport;

use crate::flow::{FlowId, Tuple};
use crate::peer::Shipment;

/// A connection of a front-end.
#[derive(Debug)]
pub(super) struct Kept<S> {
    pub(super) link: u64,
    /// The front-end's number for it.
    pub(super) remote: FlowId,
    pub(super) tuple: Tuple,
    /// The process that has said that it has taken it.
    pub(super) worker: Option<u32>,
    pub(super) phase: Phase<S>,
}

#[derive(Debug)]
pub(super) enum Phase<S> {
    Restoring {
        passport: Box<Passport>,
    },
    /// The front-end wants it no more, but the socket is not there yet.
    Unwanted,
    Ready {
        passport: Box<Passport>,
        socket: S,
    },
    /// The server has it, or is to take it. `open`: its requests that have not ended. `is_back`: it was given to the server
    /// again, since it cannot be given back to the front-end.
    Taken {
        open: u64,
        is_back: bool,
    },
    /// On its way back.
    Freezing {
        passport: Box<Passport>,
    },
    Returning(Box<Shipment>),
}
