//! Requests by the size of their files: a server that starves large files looks fast in every sum.

use std::collections::{BTreeMap, BTreeSet};

use super::targets::Targets;

/// What became of the requests for files of one size, as far as the server had read them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeCount {
    /// Complete in time.
    pub answered: u64,
    /// Ended by the timeout.
    pub timeouts: u64,
}

impl SizeCount {
    /// All of them.
    pub fn requests(self) -> u64 {
        self.answered + self.timeouts
    }
}

/// Requests by size in bytes. `0` are answers of unknown length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SizeCounts(pub BTreeMap<u64, SizeCount>);

impl SizeCounts {
    /// Of several clients together.
    pub fn sum(clients: &[Self]) -> Self {
        let mut sum = Self::default();
        for (size, count) in clients.iter().flat_map(|client| &client.0) {
            let total = sum.0.entry(*size).or_default();
            total.answered += count.answered;
            total.timeouts += count.timeouts;
        }
        sum
    }

    /// Of all sizes together.
    pub fn total(&self) -> SizeCount {
        self.0.values().fold(SizeCount::default(), |sum, count| SizeCount {
            answered: sum.answered + count.answered,
            timeouts: sum.timeouts + count.timeouts,
        })
    }
}

/// Which target is of which size: an index for each, so that counting is one addition.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    /// Sizes in bytes, rising.
    sizes: Vec<u64>,
    of_target: Vec<u16>,
}

impl Sizes {
    /// The sizes of these targets. If there are too many to judge each, they are rounded up to powers of two.
    pub(super) fn of(targets: &Targets) -> Self {
        let exact: Vec<u64> =
            (0..targets.count()).map(|target| targets.body_bytes(target).unwrap_or(0)).collect();
        let different = |sizes: &[u64]| sizes.iter().copied().collect::<BTreeSet<u64>>();
        let rounded: Vec<u64> = if different(&exact).len() > SIZES_MAX {
            exact.iter().map(|size| if *size == 0 { 0 } else { size.next_power_of_two() }).collect()
        } else {
            exact
        };
        let sizes: Vec<u64> = different(&rounded).into_iter().collect();
        let index = |size: &u64| sizes.partition_point(|known| known < size) as u16;
        let of_target = rounded.iter().map(index).collect();
        Self { sizes, of_target }
    }

    /// Counts of a client, none yet.
    pub(super) fn no_counts(&self) -> Vec<SizeCount> {
        vec![SizeCount::default(); self.sizes.len()]
    }

    /// The place of a target's size in such counts.
    pub(super) fn index(&self, target: usize) -> usize {
        self.of_target[target].into()
    }

    /// Counts with their sizes; those that were never asked for are left out.
    pub(super) fn named(&self, counts: &[SizeCount]) -> SizeCounts {
        let pairs = self.sizes.iter().copied().zip(counts.iter().copied());
        SizeCounts(pairs.filter(|(_, count)| count.requests() > 0).collect())
    }
}

/// SPECweb99 has 36 sizes; a log has thousands, with a request or two of most.
const SIZES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::super::targets::LoadRequest;
    use super::*;

    fn sizes(bytes: impl IntoIterator<Item = u64>) -> Sizes {
        let requests = bytes.into_iter().map(|bytes| LoadRequest::file(format!("/{bytes}"), bytes));
        Sizes::of(&Targets::new("site.example", false, requests))
    }

    #[test]
    fn files_of_one_size_are_counted_together() {
        let sizes = sizes([500, 20, 500]);
        let mut counts = sizes.no_counts();
        counts[sizes.index(0)].answered += 1;
        counts[sizes.index(2)].timeouts += 1;
        let expected = SizeCounts([(500, SizeCount { answered: 1, timeouts: 1 })].into());
        assert_eq!(sizes.named(&counts), expected);
        assert_eq!(SizeCounts::sum(&[expected.clone(), expected]).total().requests(), 4);
    }

    #[test]
    fn the_sizes_of_a_log_are_rounded() {
        assert_eq!(sizes(1..=64).sizes.len(), 64);
        assert_eq!(sizes(1..=65).sizes, [1, 2, 4, 8, 16, 32, 64, 128]);
    }
}
