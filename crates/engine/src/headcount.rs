//! The clients of one worker process, however many loops serve them: descriptors and limits are the process's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::context::Context;

/// Counts clients. Clones count the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Headcount {
    inside: Arc<AtomicUsize>,
    /// Clients for whom there are descriptors.
    clients_max: usize,
}

impl Headcount {
    pub(crate) fn new(clients_max: usize) -> Self {
        Self { inside: Arc::default(), clients_max }
    }

    /// How many more clients may come in. Loops that ask at the same instant may let in one too many each.
    pub(crate) fn room(&self, ctx: &Context) -> usize {
        ctx.plan.limits.connections_max.min(self.clients_max).saturating_sub(self.inside())
    }

    pub(crate) fn inside(&self) -> usize {
        self.inside.load(Ordering::Relaxed)
    }

    pub(crate) fn enter(&self) {
        self.inside.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.inside.fetch_sub(1, Ordering::Relaxed);
    }
}
