//! Received bytes that the kernel no longer sees, so that waiting for input must not be left to it alone.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::inbox::Inbox;

/// How many bytes in a connection's inbox are ready for the program.
pub(crate) struct ReadyBytes(AtomicUsize);

/// How many connections have bytes ready: as long as there are none, waiting is the kernel's business alone.
static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);

impl ReadyBytes {
    pub(crate) const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Whether any connection has bytes ready.
    pub(crate) fn exist() -> bool {
        CONNECTIONS.load(Ordering::Acquire) > 0
    }

    /// Whether this connection has.
    pub(crate) fn any(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }

    /// Call it whenever the inbox has changed.
    pub(crate) fn note(&self, inbox: &Inbox) {
        let now = inbox.ready();
        let before = self.0.swap(now, Ordering::AcqRel);
        match (before, now) {
            (0, 1..) => _ = CONNECTIONS.fetch_add(1, Ordering::AcqRel),
            (1.., 0) => _ = CONNECTIONS.fetch_sub(1, Ordering::AcqRel),
            _ => {}
        }
    }
}
