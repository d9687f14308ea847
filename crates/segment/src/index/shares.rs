//! How much of a cache each class should have: as much as it makes use of.
//!
//! ```text
//!   a class is asked for what it has lost lately ──► its share grows by that much, the others' shrink
//!   there is no room                             ──► the class with most beyond its share gives way
//! ```
//!
//! All classes remember as many lost bytes. So those of a class that are asked for again tell what more room would save
//! there, and room goes where it saves most: hill climbing, as in A. Cidon and others, *Cliffhanger: Scaling Performance
//! Cliffs in Web Memory Caches*, NSDI 2016. What is asked for once moves no share, however much of it comes. Room that no class
//! uses is for all.

/// The number of a class in its index.
pub(super) type ClassId = u8;

/// The shares of all classes. They add up to one.
#[derive(Debug, Default)]
pub(super) struct Shares {
    shares: Vec<f64>,
    /// The cache was full once.
    is_settled: bool,
}

/// No class has less: with a few segments its policy can tell which are worth keeping.
const SHARE_MIN: f64 = 1.0 / 32.0;

impl Shares {
    /// Another class, which has the least share if it is not the first.
    pub(super) fn add(&mut self) {
        let is_first = self.shares.is_empty();
        self.shares.push(if is_first { 1.0 } else { 0.0 });
        if !is_first {
            self.gain(self.shares.len() as ClassId - 1, SHARE_MIN);
        }
    }

    /// What each class should have, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = f64> {
        self.shares.iter().copied()
    }

    /// A class gets so much more, and the others so much less, each as far as it can spare it.
    pub(super) fn gain(&mut self, class: ClassId, step: f64) {
        let class = usize::from(class);
        let spare = |share: f64| (share - SHARE_MIN).max(0.0);
        let others = self.shares.iter().enumerate().filter(|(other, _)| *other != class);
        let spared: f64 = others.map(|(_, share)| spare(*share)).sum();
        let taken = step.min(spared);
        if taken <= 0.0 {
            return;
        }
        for share in &mut self.shares {
            *share -= spare(*share) * taken / spared;
        }
        self.shares[class] = 1.0 - self.all_but(class);
    }

    /// When the cache is full for the first time, shares are what has come so far. Whether that is now.
    pub(super) fn settle(&mut self, bytes: impl Iterator<Item = u64> + Clone) -> bool {
        if std::mem::replace(&mut self.is_settled, true) {
            return false;
        }
        let all = bytes.clone().sum::<u64>().max(1) as f64;
        let wanted = bytes.map(|bytes| (bytes as f64 / all).max(SHARE_MIN));
        let sum: f64 = wanted.clone().sum();
        self.shares = wanted.map(|share| share / sum).collect();
        true
    }

    /// The class with most beyond its share of `max`: bytes or objects.
    pub(super) fn fullest(&self, amounts: impl Iterator<Item = u64>, max: u64) -> ClassId {
        let beyond = amounts.zip(&self.shares).map(|(amount, share)| amount as f64 - share * max as f64);
        let fullest = beyond.enumerate().max_by(|(_, one), (_, other)| one.total_cmp(other));
        fullest.map_or(0, |(class, _)| class as ClassId)
    }

    fn all_but(&self, class: usize) -> f64 {
        self.shares.iter().enumerate().filter(|(other, _)| *other != class).map(|(_, share)| share).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever classes gain: shares add up to one, and none is below the least.
        #[test]
        fn shares_add_up(steps in prop::collection::vec((0..6_u8, 0.0..2.0_f64), 0..60)) {
            let mut shares = Shares::default();
            (0..6).for_each(|_| shares.add());
            for (class, step) in steps {
                shares.gain(class, step);
                prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                prop_assert!(shares.iter().all(|share| share > SHARE_MIN - 1e-9), "{shares:?}");
            }
        }
    }

    #[test]
    fn the_class_with_most_beyond_its_share_gives_way() {
        let mut shares = Shares::default();
        (0..2).for_each(|_| shares.add());
        assert!(shares.settle([600, 400].into_iter()) && !shares.settle([0, 1000].into_iter()));
        assert_eq!(shares.fullest([600, 410].into_iter(), 1000), 1);
        shares.gain(1, 0.2);
        assert_eq!(shares.fullest([600, 410].into_iter(), 1000), 0);
    }
}
