//! Hashes that are the same on all front-ends, and a small random number generator.

use xxhash_rust::xxh3::xxh3_64;

/// The identity of a target: the XXH3 hash of the path of its URL.
///
/// The hash is the same in every process, version and architecture, because front-ends place targets by it without
/// communication. Two targets of the same hash share a node, which does no harm.
pub fn target_hash(path: &[u8]) -> u64 {
    xxh3_64(path)
}

/// Spreads every bit of the input over the whole result (the finalizer of MurmurHash3).
pub(crate) const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let value = (value ^ (value >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ (value >> 33)
}

/// One hash of two things, such as a target and a node. The order matters.
pub(crate) const fn pair(first: u64, second: u64) -> u64 {
    mix(first.wrapping_add(mix(second ^ GOLDEN)))
}

/// A hash as a number in `0..bound`; 0 if the bound is 0. Without division: the high half of a product.
pub(crate) const fn below(hash: u64, bound: u64) -> u64 {
    ((hash as u128 * bound as u128) >> 64) as u64
}

/// A generator of choices: the same seed makes the same choices (SplitMix64, Steele and others, 2014).
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    state: u64,
}

impl Choices {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }
}

/// 2^64 divided by the golden ratio: steps by it visit the whole range evenly.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    /// Front-ends of different versions must agree: these values may never change.
    #[test]
    fn placement_hashes_are_fixed_for_ever() {
        // The published test vector of XXH3 for no bytes at all.
        assert_eq!(target_hash(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(target_hash(b"/index.html"), 12_290_069_032_777_152_552);
        assert_eq!(pair(1, 2), 0x8c75_7204_8831_a3af);
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut counts = [0_u32; 10];
        let mut choices = Choices::new(1);
        for _ in 0..10_000 {
            counts[below(choices.next(), 10) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
        assert_eq!(below(u64::MAX, 0), 0);
    }
}
