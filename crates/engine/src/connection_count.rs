//! The clients of one worker process, however many loops serve them: descriptors and limits are the process's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::context::Context;

/// Counts clients. Clones count the same ones.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionCount {
    open: Arc<AtomicUsize>,
    /// Clients for whom there are descriptors.
    clients_max: usize,
}

impl ConnectionCount {
    pub(crate) fn new(clients_max: usize) -> Self {
        Self { open: Arc::default(), clients_max }
    }

    /// How many more clients may come in. Loops that ask at the same instant may let in one too many each.
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
