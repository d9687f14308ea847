//! What a reader holds of a response that cannot be fetched in parts, so that its eviction does not cut it off.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_buf::Aggregate;

/// Bytes that all readers together hold, at most so many: evicted ones leave memory, or the disk, when their reader has got
/// them.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    held: AtomicU64,
    bytes_max: u64,
}

/// The next bytes of one reader.
#[derive(Debug, Default)]
pub(crate) struct Held {
    bytes: Aggregate,
    of_all: Option<Arc<HeldBytes>>,
}

impl HeldBytes {
    pub(crate) fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Self { held: AtomicU64::new(0), bytes_max })
    }

    /// Holds what `find` returns, which is at most `bytes_max` long. Nothing, if all readers would hold too much then.
    pub(crate) fn hold(self: &Arc<Self>, bytes_max: u64, find: impl FnOnce() -> Aggregate) -> Held {
        let with_it = |held: u64| held.checked_add(bytes_max).filter(|held| *held <= self.bytes_max);
        if self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_it).is_err() {
            return Held::default();
        }
        let bytes = find();
        self.release(bytes_max - bytes.len());
        Held { bytes, of_all: Some(Arc::clone(self)) }
    }

    fn release(&self, count: u64) {
        self.held.fetch_sub(count, Ordering::Relaxed);
    }
}

impl Held {
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Its first bytes, which it does not hold any more; `None` if there are none.
    pub(crate) fn take(&mut self, bytes_max: u64) -> Option<Aggregate> {
        if self.is_empty() {
            return None;
        }
        let behind = self.bytes.split_off(bytes_max.min(self.bytes.len()));
        let taken = std::mem::replace(&mut self.bytes, behind);
        if let Some(of_all) = &self.of_all {
            of_all.release(taken.len());
        }
        Some(taken)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(of_all) = &self.of_all {
            of_all.release(self.bytes.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use baton_buf::Slice;

    use super::*;

    #[test]
    fn readers_hold_no_more_than_the_bound() {
        let of_all = HeldBytes::new(100);
        let bytes = |count: usize| {
            let mut bytes = Aggregate::new();
            bytes.push(Slice::from(vec![7; count]));
            bytes
        };
        let mut first = of_all.hold(60, || bytes(50));
        assert!(of_all.hold(51, || panic!("there is no room")).is_empty());
        let second = of_all.hold(50, || bytes(50));
        assert!(of_all.hold(1, || panic!("nor here")).is_empty());
        assert_eq!(first.take(20).map(|bytes| bytes.len()), Some(20));
        assert!(!of_all.hold(20, || bytes(20)).is_empty());
        assert_eq!(first.take(100).map(|bytes| bytes.len()), Some(30));
        assert!(first.take(100).is_none());
        drop((first, second));
        assert_eq!(of_all.held.load(Ordering::Relaxed), 0);
    }
}
