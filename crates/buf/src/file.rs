//! An open file, and which of its bytes were last seen in memory.

use std::any::Any;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An open file that any number of slices refer to.
#[derive(Debug)]
pub struct OpenFile {
    descriptor: Descriptor,
    /// When a range of the file was last found in memory, in seconds since 1970, and which range.
    seen_at: AtomicU64,
    seen_from: AtomicU64,
    seen_until: AtomicU64,
    /// Dropped after the descriptor.
    _held: Option<Arc<dyn Any + Send + Sync>>,
}

#[derive(Debug)]
enum Descriptor {
    Own(OwnedFd),
    Shared(Arc<OwnedFd>),
}

impl OpenFile {
    /// An open file; none of its bytes are known to be in memory.
    pub fn new(descriptor: OwnedFd) -> Self {
        Self::with(Descriptor::Own(descriptor), None)
    }

    /// Like [`new`](Self::new); drops `held` when the last reference has closed the file.
    pub fn holding(descriptor: OwnedFd, held: Arc<dyn Any + Send + Sync>) -> Self {
        Self::with(Descriptor::Own(descriptor), Some(held))
    }

    /// A part of a file that others use other parts of: it remembers what is in memory of its part alone, and drops
    /// `held` with the last reference to itself.
    pub fn sharing(descriptor: Arc<OwnedFd>, held: Arc<dyn Any + Send + Sync>) -> Self {
        Self::with(Descriptor::Shared(descriptor), Some(held))
    }

    fn with(descriptor: Descriptor, held: Option<Arc<dyn Any + Send + Sync>>) -> Self {
        let [seen_at, seen_from, seen_until] = Default::default();
        Self { descriptor, seen_at, seen_from, seen_until, _held: held }
    }

    /// Whether these bytes were found in memory in this second. Saves asking the kernel for each send of the same
    /// range.
    pub fn was_resident(&self, bytes: Range<u64>, unix_seconds: u64) -> bool {
        let seen = self.seen();
        self.seen_at.load(Ordering::Relaxed) == unix_seconds
            && seen.start <= bytes.start
            && bytes.end <= seen.end
    }

    /// Notes that these bytes are in memory. Remembers one range: ranges that touch it extend it; of two separate
    /// ranges the longer one stays, since it costs more to check. Threads that race may store a mix of both, which is
    /// wrong for a second at most.
    pub fn note_resident(&self, bytes: Range<u64>, unix_seconds: u64) {
        let mut noted = bytes;
        if self.seen_at.load(Ordering::Relaxed) == unix_seconds {
            let seen = self.seen();
            if noted.start <= seen.end && seen.start <= noted.end {
                noted = noted.start.min(seen.start)..noted.end.max(seen.end);
            } else if noted.end - noted.start <= seen.end - seen.start {
                return;
            }
        }
        self.seen_from.store(noted.start, Ordering::Relaxed);
        self.seen_until.store(noted.end, Ordering::Relaxed);
        self.seen_at.store(unix_seconds, Ordering::Relaxed);
    }

    /// Whether it is a file and nothing else: its descriptor is all that another process needs to read what it promises.
    pub fn is_plain(&self) -> bool {
        self._held.is_none() && matches!(self.descriptor, Descriptor::Own(_))
    }

    fn seen(&self) -> Range<u64> {
        self.seen_from.load(Ordering::Relaxed)..self.seen_until.load(Ordering::Relaxed)
    }
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.descriptor {
            Descriptor::Own(descriptor) => descriptor.as_fd(),
            Descriptor::Shared(descriptor) => descriptor.as_fd(),
        }
    }
}

impl From<OwnedFd> for OpenFile {
    fn from(descriptor: OwnedFd) -> Self {
        Self::new(descriptor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_remembered_for_a_second() {
        let (null, _) = std::io::pipe().expect("a descriptor");
        let file = OpenFile::new(null.into());
        assert!(!file.was_resident(0..1, 7), "nothing is known of a new file");
        file.note_resident(100..200, 7);
        assert!(file.was_resident(100..200, 7) && file.was_resident(150..160, 7));
        assert!(!file.was_resident(99..200, 7) && !file.was_resident(100..201, 7));
        assert!(!file.was_resident(100..200, 8), "a second later it may be gone");
        file.note_resident(200..300, 7);
        file.note_resident(50..120, 7);
        assert!(file.was_resident(50..300, 7), "neighbours join");
        file.note_resident(400..500, 7);
        assert!(file.was_resident(50..300, 7) && !file.was_resident(400..500, 7), "the longer one stays");
        file.note_resident(400..900, 7);
        assert!(!file.was_resident(50..300, 7) && file.was_resident(400..900, 7));
        file.note_resident(0..1, 8);
        assert!(
            file.was_resident(0..1, 8) && !file.was_resident(400..900, 8),
            "another second, another range"
        );
    }
}
