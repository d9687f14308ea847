//! Open connections of one worker process: descriptors and limits belong to the process, however many loops it has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::context::Context;

/// Counts open connections. Clones share the count.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionCount {
    open: Arc<AtomicUsize>,
    /// Connections for which there are descriptors.
    clients_max: usize,
}

impl ConnectionCount {
    pub(crate) fn new(clients_max: usize) -> Self {
        Self { open: Arc::default(), clients_max }
    }

    /// How many more connections may be accepted. Loops that ask at the same instant may each accept one too many.
    pub(crate) fn room(&self, ctx: &Context) -> usize {
        ctx.plan.limits.connections_max.min(self.clients_max).saturating_sub(self.open())
    }

    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}
