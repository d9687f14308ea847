//! A simulated disk: a seed, not the kernel's page cache, decides what is in memory, and so whether an answer needs a job.

use std::cell::RefCell;
use std::sync::Arc;

use baton_buf::FileSlice;
use baton_content::{Blocking, Cache, Found, NeedsDisk, Query, Tree};
use baton_http::Stamp;

thread_local! {
    static COLD: RefCell<(fastrand::Rng, u8)> = const { RefCell::new((fastrand::Rng::with_seed(0), 0)) };
}

/// From now on, on this thread, so many in a hundred looks find nothing in memory, which ones by `seed`.
pub(crate) fn set(seed: u64, percent: u8) {
    COLD.set((fastrand::Rng::with_seed(seed), percent));
}

/// Says of the ranges that a send queue asks for whether they are in memory.
pub(crate) fn is_resident(_slice: &FileSlice, _window: u64, _unix_seconds: u64) -> bool {
    !is_cold()
}

/// Looks a path up; a name may be on the disk alone.
pub(crate) fn find(
    cache: &Cache,
    tree: &Arc<Tree>,
    query: &Query<'_>,
    stamp: &Stamp,
    blocking: Blocking,
) -> Result<Found, NeedsDisk> {
    if is_cold() { Err(NeedsDisk) } else { cache.find(tree, query, stamp, blocking) }
}

fn is_cold() -> bool {
    COLD.with_borrow_mut(|(random, percent)| random.u8(0..100) < *percent)
}
