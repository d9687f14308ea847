//! Medians with intervals, and what an interval allows to say: ahead, level, behind, or nothing.
//!
//! Intervals come from order statistics: the bounds are samples, and hold for any distribution (Conover, *Practical
//! Nonparametric Statistics*, 3.2). Rounds on a shared machine are neither normal nor free of outliers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A median and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower bound.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The upper bound.
    pub high: f64,
}

impl Interval {
    /// A number without spread, such as a published or a simulated one.
    pub const fn exact(value: f64) -> Self {
        Self { low: value, median: value, high: value }
    }

    /// The median of the samples, with an interval that contains the true one with 95 % confidence.
    ///
    /// Fewer than [`SAMPLES_MIN`] samples cannot give that confidence; the bounds are then the extremes.
    /// `None` without finite samples.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = samples.iter().copied().filter(|sample| sample.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let outside = samples_outside(sorted.len());
        let median = f64::midpoint(sorted[last / 2], sorted[sorted.len() / 2]);
        Some(Self { low: sorted[outside], median, high: sorted[last - outside] })
    }

    /// Whether it has a width.
    pub fn has_spread(&self) -> bool {
        self.low < self.high
    }
}

/// How many samples on each side an interval of 95 % leaves outside.
fn samples_outside(count: usize) -> usize {
    // P(fewer than k samples below the median): the head of a binomial distribution with p = 1/2.
    let (mut tail, mut term) = (0.0, 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX)));
    let mut outside = 0;
    for below in 0..count / 2 {
        tail += term;
        if 2.0 * tail > 1.0 - CONFIDENCE {
            break;
        }
        outside = below;
        term *= (count - below) as f64 / (below + 1) as f64;
    }
    outside
}

const CONFIDENCE: f64 = 0.95;

/// With fewer samples, no interval reaches a confidence of 95 %: 2 × 0.5⁵ is more than a twentieth.
pub const SAMPLES_MIN: usize = 6;

/// What is better: more of it, or less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Such as requests per second.
    #[default]
    More,
    /// Such as a delay, or memory.
    Less,
}

/// How ours compares with theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// The whole interval is on the better side.
    Ahead,
    /// The interval contains equality, and nothing that matters besides.
    Level,
    /// The whole interval is on the worse side.
    Behind,
}

impl fmt::Display for Comparison {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Ahead => "ahead",
            Self::Level => "level",
            Self::Behind => "behind",
        })
    }
}

/// Rounds of ours and theirs, compared in pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// Ours divided by theirs, round by round.
    pub ratio: Interval,
    /// What the interval allows to say; `None` if it is too wide, or the pairs too few.
    pub comparison: Option<Comparison>,
}

impl Paired {
    /// Compares what was measured in the same rounds.
    ///
    /// A pair counts if both numbers are finite and theirs is not zero. `None` without such a pair.
    pub fn of(ours: &[f64], theirs: &[f64], better: Better) -> Option<Self> {
        let ratios: Vec<f64> = ours
            .iter()
            .zip(theirs)
            .map(|(ours, theirs)| ours / theirs)
            .filter(|ratio| ratio.is_finite())
            .collect();
        let ratio = Interval::of(&ratios)?;
        let comparison = match better {
            _ if ratios.len() < SAMPLES_MIN => None,
            Better::More if ratio.low > 1.0 => Some(Comparison::Ahead),
            Better::More if ratio.high < 1.0 => Some(Comparison::Behind),
            Better::Less if ratio.high < 1.0 => Some(Comparison::Ahead),
            Better::Less if ratio.low > 1.0 => Some(Comparison::Behind),
            _ if ratio.low >= 1.0 - LEVEL && ratio.high <= 1.0 + LEVEL => Some(Comparison::Level),
            _ => None,
        };
        Some(Self { ratio, comparison })
    }
}

/// A difference below this share does not matter to a reader.
const LEVEL: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_binomial_table() {
        // Conover's table for p = 1/2 and 95 %: the ranks of the bounds, counted from zero.
        for (count, outside) in [(1, 0), (5, 0), (6, 0), (8, 0), (9, 1), (11, 1), (12, 2), (15, 3), (20, 5)] {
            assert_eq!(samples_outside(count), outside, "{count} samples");
        }
    }

    #[test]
    fn an_outlier_moves_neither_median_nor_bounds() {
        let mut samples: Vec<f64> = (1..=12).map(f64::from).collect();
        let calm = Interval::of(&samples).expect("there are samples");
        assert_eq!(calm, Interval { low: 3.0, median: 6.5, high: 10.0 });
        samples[11] = 1e9;
        samples.push(f64::NAN);
        assert_eq!(Interval::of(&samples), Some(calm));
        assert_eq!(Interval::of(&[f64::INFINITY]), None);
        assert_eq!(Interval::of(&[]), None);
    }

    fn comparison(ours: &[f64], better: Better) -> Option<Comparison> {
        Paired::of(ours, &[100.0; 8], better).expect("there are pairs").comparison
    }

    #[test]
    fn only_the_interval_says_who_is_ahead() {
        let ahead = [103.0, 104.0, 102.0, 105.0, 103.0, 104.0];
        assert_eq!(comparison(&ahead, Better::More), Some(Comparison::Ahead));
        assert_eq!(comparison(&ahead, Better::Less), Some(Comparison::Behind));
        let level = [99.0, 101.0, 100.0, 98.0, 102.0, 100.0];
        assert_eq!(comparison(&level, Better::More), Some(Comparison::Level));
        let wide = [60.0, 140.0, 100.0, 98.0, 102.0, 100.0];
        assert_eq!(comparison(&wide, Better::More), None, "a wide interval is not equality");
        assert_eq!(comparison(&ahead[..5], Better::More), None, "five pairs cannot show it");
    }

    #[test]
    fn pairs_cancel_what_both_suffered() {
        // The machine slows down fourfold in the course of the rounds; ours is 10 % faster throughout.
        let theirs = [400.0, 300.0, 200.0, 150.0, 120.0, 100.0];
        let ours = theirs.map(|rate| 1.1 * rate);
        let paired = Paired::of(&ours, &theirs, Better::More).expect("there are pairs");
        assert_eq!(paired.comparison, Some(Comparison::Ahead));
        assert!((paired.ratio.median - 1.1).abs() < 1e-9 && paired.ratio.high - paired.ratio.low < 1e-9);
        assert_eq!(Paired::of(&[1.0], &[0.0], Better::More), None, "nothing is a multiple of zero");
    }
}
