//! What the operator is told of peers.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use super::cause::Cause;
use crate::Application;

/// An origin that gets no requests for a while, or gets them again. `Display` tells the operator.
#[derive(Clone, Debug)]
pub struct PeerEvent {
    pub(super) origin: Arc<Application>,
    pub(super) change: Change,
}

/// What has changed for a peer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// It is left out for so many milliseconds, because of its failures. The cause is the last of them.
    Ejected { out_ms: u64, cause: Cause },
    /// It has failed enough checks. The cause is the last of them.
    Down { cause: Cause },
    /// It has passed enough checks.
    Up,
}

impl fmt::Display for PeerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "origin {}: ", self.origin.name())?;
        match self.change {
            Change::Ejected { out_ms, cause } => {
                write!(f, "ejected for {out_ms} ms after repeated failures: {cause}")
            }
            Change::Down { cause } => {
                write!(f, "its health checks fail, and it gets no requests: {cause}")
            }
            Change::Up => f.write_str("its health checks succeed: it gets requests again"),
        }
    }
}

/// News that the caller has not heard of.
#[derive(Debug, Default)]
pub(crate) struct PeerEventQueue(VecDeque<PeerEvent>);

impl PeerEventQueue {
    pub(crate) fn push(&mut self, event: Option<PeerEvent>) {
        self.0.extend(event);
        self.0.truncate(NEWS_MAX);
    }

    pub(crate) fn poll(&mut self) -> Option<PeerEvent> {
        self.0.pop_front()
    }
}

/// More are dropped. Each request that ends tells of one at most, so a round of a loop brings few.
const NEWS_MAX: usize = 64;
