//! A simulated disk for tests: a seed, not the kernel's page cache, decides what is in memory.

use std::cell::RefCell;

thread_local! {
    static COLD: RefCell<Option<(fastrand::Rng, u8)>> = const { RefCell::new(None) };
}

/// From now on, on this thread, so many in a hundred looks find nothing in memory, which ones by `seed`.
pub(crate) fn set(seed: u64, percent: u8) {
    COLD.set(Some((fastrand::Rng::with_seed(seed), percent)));
}

/// Whether a look finds nothing in memory. `None`: there is no simulation on this thread.
pub(crate) fn is_cold() -> Option<bool> {
    COLD.with_borrow_mut(|cold| cold.as_mut().map(|(random, percent)| random.u8(0..100) < *percent))
}
