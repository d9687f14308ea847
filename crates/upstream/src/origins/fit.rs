//! The thresholds by which a worker distributes requests, and what they were derived from, for the status.

use baton_dispatch::Fit;

use super::{OriginRecord, word};

/// The thresholds of the worker that has changed them last, in requests under way at a node of usual weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FitSeen {
    /// Below this, a node has room.
    pub t_low: u32,
    /// Above this, requests would have to wait there.
    pub t_high: u32,
    /// What they were derived from; `None`: nothing was seen yet, or they are set.
    pub seen: Option<NodesSeen>,
}

/// What was seen of the nodes while requests waited for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodesSeen {
    /// By how many percent answers grow when load grows by one percent, in thousandths.
    pub elasticity_permille: i64,
    /// Answers of a node of usual weight in 1,000 seconds, above 0.
    pub answers_per_1000_s: u64,
}

impl OriginRecord {
    /// The thresholds; `None`: no request has been distributed.
    pub fn fit(&self) -> Option<FitSeen> {
        let [both, elasticity, answers] = self.load_all(word::FIT);
        let seen = NodesSeen { elasticity_permille: elasticity.cast_signed(), answers_per_1000_s: answers };
        let (t_low, t_high) = ((both >> 32) as u32, both as u32);
        (both > 0).then_some(FitSeen { t_low, t_high, seen: (answers > 0).then_some(seen) })
    }

    /// Tells those of this worker.
    pub(crate) fn set_fit(&self, fit: &Fit) {
        let [t_low, t_high] = [fit.thresholds.t_low, fit.thresholds.t_high].map(|load| load.round() as u64);
        let words = fit.seen.map_or([0, 0], |seen| {
            let elasticity = (seen.elasticity * 1_000.0).round() as i64;
            [elasticity.cast_unsigned(), ((seen.answers_per_s * 1_000.0) as u64).max(1)]
        });
        let words = [t_low << 32 | t_high, words[0], words[1]];
        word::FIT.zip(words).for_each(|(word, value)| self.store(word, value));
    }
}

#[cfg(test)]
mod tests {
    use baton_dispatch::{Seen, Thresholds};

    use super::*;

    #[test]
    fn thresholds_are_told() {
        let record = OriginRecord::default();
        assert_eq!(record.fit(), None);
        let thresholds = Thresholds { t_low: 25.0, t_high: 65.4 };
        record.set_fit(&Fit { thresholds, seen: None });
        assert_eq!(record.fit(), Some(FitSeen { t_low: 25, t_high: 65, seen: None }));
        record.set_fit(&Fit { thresholds, seen: Some(Seen { elasticity: -0.125, answers_per_s: 2.5 }) });
        let seen = NodesSeen { elasticity_permille: -125, answers_per_1000_s: 2_500 };
        assert_eq!(record.fit(), Some(FitSeen { t_low: 25, t_high: 65, seen: Some(seen) }));
    }
}
