//! An open file, and what is known of where its bytes are.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// An open file that any number of slices refer to.
#[derive(Debug)]
pub struct OpenFile {
    descriptor: OwnedFd,
    /// The second in which the beginning of the file was last found to be in memory, and up to where.
    seen_at: AtomicU64,
    seen_until: AtomicU64,
}

impl OpenFile {
    /// An open file of which nothing is known.
    pub fn new(descriptor: OwnedFd) -> Self {
        Self { descriptor, seen_at: AtomicU64::new(0), seen_until: AtomicU64::new(0) }
    }

    /// Whether the bytes up to `end` were found to be in memory in this very second: who sends the same file again
    /// and again need not ask the kernel each time.
    pub fn was_resident(&self, end: u64, unix_seconds: u64) -> bool {
        self.seen_at.load(Ordering::Relaxed) == unix_seconds && end <= self.seen_until.load(Ordering::Relaxed)
    }

    /// Notes that the bytes up to `end` are in memory. Threads that note different things at the same instant may
    /// leave a mixture of both, which is found out within the second.
    pub fn note_resident(&self, end: u64, unix_seconds: u64) {
        if self.seen_at.load(Ordering::Relaxed) == unix_seconds {
            self.seen_until.fetch_max(end, Ordering::Relaxed);
            return;
        }
        self.seen_until.store(end, Ordering::Relaxed);
        self.seen_at.store(unix_seconds, Ordering::Relaxed);
    }
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl From<OwnedFd> for OpenFile {
    fn from(descriptor: OwnedFd) -> Self {
        Self::new(descriptor)
    }
}
