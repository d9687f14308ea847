//! The number of requests for each rank, which meets the published points exactly.
//!
//! ```text
//!  share of requests (log)
//!   hottest ┤╲
//!           │  ╲  head: h · ((1 + q) / (i + q))^a           (Zipf–Mandelbrot)
//!           │     ╲
//!           │        ╲──┬ segments between published points: f · (i / b)^-a
//!    once   ┤           └──┴─────────┴───────────
//!           └────────────┬──┬─────────┬─────────┬─ rank (log)
//!                      97 % 98 %     99 %     last target
//! ```
//!
//! The curve is built from its end, where each target has one request: a segment's share of the requests determines
//! the height at its beginning, which is the end of the segment before. The head has two free parameters, for its
//! final height and for the remaining share.

/// The curve's shape: `(number of targets, share of the requests that these and all before them get)`, both rising.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) hottest_share: f64,
    pub(super) points: Vec<(usize, f64)>,
    /// The share of the last target.
    pub(super) last_share: f64,
}

impl Shape {
    /// The share of each rank; they fall, and their sum is one.
    pub(super) fn shares(&self) -> Vec<f64> {
        let mut bounds = self.points.clone();
        let targets = bounds.last().map_or(0, |&(targets, _)| targets);
        let mut shares = vec![0.0; targets];
        let mut end_share = self.last_share;
        while let Some((end, until)) = bounds.pop() {
            let (start, from) = bounds.last().copied().unwrap_or((0, 0.0));
            let part = &mut shares[start..end];
            end_share = if start == 0 {
                fill_head(part, self.hottest_share, end_share, until)
            } else {
                fill_segment(part, start, end_share, until - from)
            };
        }
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum);
        shares
    }
}

/// Fills a segment that ends at a height and holds a share, and returns the height at which it begins.
fn fill_segment(part: &mut [f64], start: usize, end_share: f64, total: f64) -> f64 {
    let end = (start + part.len()) as f64;
    let sum = |a: f64| end_share * end.powf(a) * power_sum(start + 1, start + part.len(), 0.0, a);
    let a = bisect(0.0, STEEPEST, |a| sum(a) < total);
    fill(part, total, |i| ((start + i) as f64 / end).powf(-a));
    part.first().copied().unwrap_or(end_share)
}

/// Fills the head between the hottest target and the height at which it ends.
fn fill_head(part: &mut [f64], hottest: f64, end_share: f64, total: f64) -> f64 {
    let len = part.len();
    let steepness = |q: f64| (hottest / end_share).ln() / ((len as f64 + q) / (1.0 + q)).ln();
    let sum = |q: f64| hottest * (1.0 + q).powf(steepness(q)) * power_sum(1, len, q, steepness(q));
    // The larger q, the longer the curve stays high. It is sought by its logarithm.
    let log_q =
        bisect((1e-6_f64).ln(), (100.0 * len as f64).ln(), |log_q| sum(log_q.exp() - 1.0 + 1e-3) < total);
    let q = log_q.exp() - 1.0 + 1e-3;
    fill(part, total, |i| ((1.0 + q) / (i as f64 + q)).powf(steepness(q)));
    hottest
}

/// Fills with a shape (of ranks from 1), scaled to a total.
fn fill(part: &mut [f64], total: f64, shape: impl Fn(usize) -> f64) {
    for (i, share) in part.iter_mut().enumerate() {
        *share = shape(i + 1);
    }
    let sum: f64 = part.iter().sum();
    part.iter_mut().for_each(|share| *share *= total / sum);
}

/// The sum of `(i + q)^-a` from `first` to `last`. Far from the steep beginning, an integral is as good.
fn power_sum(first: usize, last: usize, q: f64, a: f64) -> f64 {
    let exact_until = last.min(first + 256);
    let exact: f64 = (first..=exact_until).map(|i| (i as f64 + q).powf(-a)).sum();
    let (from, to) = (exact_until as f64 + 0.5 + q, last as f64 + 0.5 + q);
    let rest = if (a - 1.0).abs() < 1e-9 {
        (to / from).ln()
    } else {
        (to.powf(1.0 - a) - from.powf(1.0 - a)) / (1.0 - a)
    };
    exact + rest
}

const STEEPEST: f64 = 20.0;

/// Where a predicate stops being true, between `low` and `high`.
pub(super) fn bisect(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_passes_through_its_points_and_falls() {
        let shape = Shape {
            hottest_share: 0.02,
            points: vec![(15_000, 0.97), (19_000, 0.98), (25_000, 0.99), (37_000, 1.0)],
            last_share: 1.0 / 2.3e6,
        };
        let shares = shape.shares();
        assert!((shares[0] - 0.02).abs() < 1e-4, "{}", shares[0]);
        for &(targets, share) in &shape.points {
            let covered: f64 = shares[..targets].iter().sum();
            assert!((covered - share).abs() < 1e-6, "{targets}: {covered}");
        }
        // A thousandth: sums are approximated, so segments need not meet to the last digit.
        assert!(shares.windows(2).all(|pair| pair[1] <= pair[0] * 1.001));
    }

    #[test]
    fn sums_of_powers() {
        for (first, last, q, a) in [(1, 10, 0.0, 1.0), (1, 100_000, 3.5, 0.7), (500, 90_000, 0.0, 1.0)] {
            let exact: f64 = (first..=last).map(|i| (i as f64 + q).powf(-a)).sum();
            assert!((power_sum(first, last, q, a) / exact - 1.0).abs() < 1e-4);
        }
    }
}
