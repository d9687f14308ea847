//! A trace made from published statistics.
//!
//! Popularity follows the published coverage points ([`super::popularity`]). Sizes are log-logistic with a Pareto
//! tail, like sizes of files on the web; they grow with the rank to meet the published mean size of a request.
//! Requests come in random order, those for rare targets within a part of the time.

use serde::Serialize;

use super::popularity::{Shape, bisect};
use super::{LogStatistics, Statistics, TargetFacts, TargetId, Trace, TraceRequest};

/// How closely a synthetic trace fits the published statistics.
#[derive(Clone, Debug, Serialize)]
pub struct Fit {
    /// The trace.
    pub trace: String,
    /// The points compared.
    pub points: Vec<FitPoint>,
    /// The assumptions.
    pub assumed: String,
}

/// One published statistic and the trace's own.
#[derive(Clone, Debug, Serialize)]
pub struct FitPoint {
    /// Its name and unit.
    pub what: String,
    /// The figure that was published.
    pub published: f64,
    /// Of the trace.
    pub ours: f64,
}

/// Makes a trace of about `requests` requests.
#[must_use]
pub fn synthesize(published: &LogStatistics, requests: u64, seed: u64) -> (Trace, Fit) {
    let mut random = fastrand::Rng::with_seed(seed);
    let spread = spread_sizes(published.targets as usize, random.f64());
    let growth = bisect(0.0, GROWTH_MAX, |growth| {
        let sizes = sizes(&spread, growth, published.bytes);
        let shares = shape(published, &sizes).shares();
        let mean: f64 = shares.iter().zip(&sizes).map(|(share, bytes)| share * bytes).sum();
        mean > published.request_bytes as f64
    });
    let sizes = sizes(&spread, growth, published.bytes);
    let shares = shape(published, &sizes).shares();

    let order = draw(&shares, requests, published.rarest_window, &mut random);
    let targets = sizes.iter().enumerate().map(|(rank, bytes)| TargetFacts {
        hash: baton_dispatch::target_hash(format!("/{}/{rank}", published.name).as_bytes()),
        bytes: *bytes as u64,
        dynamic: false,
    });
    let trace = Trace::new(published.name.to_owned(), targets.collect(), order);
    let fit = compare(published, &trace);
    (trace, fit)
}

/// Requests of each target in the number of its share. The hottest target is requested all the time, the rarest
/// within a random window, a share of the whole; others in proportion to the logarithm of the rank.
pub(super) fn draw(
    shares: &[f64],
    requests: u64,
    rarest_window: f64,
    random: &mut fastrand::Rng,
) -> Vec<TraceRequest> {
    // The time in the upper bits, for sorting; the target in the lower.
    let mut order: Vec<u64> = Vec::with_capacity(requests as usize);
    for (rank, share) in shares.iter().enumerate() {
        let expected = share * requests as f64;
        let count = expected as u64 + u64::from(random.f64() < expected.fract());
        let window = rarest_window.powf(rank as f64 / shares.len() as f64);
        let start = random.f64();
        order.extend((0..count).map(|_| {
            let moment = (start + window * random.f64()).fract();
            (((moment * f64::from(u32::MAX)) as u64) << 32) | rank as u64
        }));
    }
    order.sort_unstable();
    order.into_iter().map(|request| TraceRequest::whole(request as TargetId)).collect()
}

/// Sizes relative to the median, without regard to rank. The golden ratio spreads large and small ones evenly over
/// all ranks, so that no seed happens to make one of the few hottest targets the largest.
pub(super) fn spread_sizes(targets: usize, offset: f64) -> Vec<f64> {
    let quantile = |i: usize| (offset + i as f64 * GOLDEN).fract().clamp(1e-6, 1.0 - 1e-6);
    (0..targets).map(|i| (quantile(i) / (1.0 - quantile(i))).powf(SIZE_SPREAD)).collect()
}

/// Sizes in bytes that grow with the rank and sum up to a total.
fn sizes(spread: &[f64], growth: f64, total: u64) -> Vec<f64> {
    let len = spread.len() as f64;
    let raw = spread.iter().enumerate().map(|(i, size)| size * ((i as f64 + 1.0) / len).powf(growth));
    let raw: Vec<f64> = raw.collect();
    let scale = total as f64 / raw.iter().sum::<f64>();
    raw.iter().map(|size| (size * scale).max(BYTES_MIN)).collect()
}

/// The published coverage, by number of targets.
fn shape(published: &LogStatistics, sizes: &[f64]) -> Shape {
    let mut points = Vec::new();
    let (mut targets, mut bytes) = (0, 0.0);
    for &(covering, share) in published.coverage {
        while targets < sizes.len() && bytes < covering as f64 {
            bytes += sizes[targets];
            targets += 1;
        }
        points.push((targets, share));
    }
    points.push((sizes.len(), 1.0));
    Shape { hottest_share: published.hottest_share, points, last_share: 1.0 / published.requests as f64 }
}

fn compare(published: &LogStatistics, trace: &Trace) -> Fit {
    let ours = Statistics::of(trace);
    let mut points = vec![
        point("targets", published.targets.into(), trace.targets().len() as f64),
        point(
            "data set, MiB",
            mb(published.bytes),
            mb(trace.targets().iter().map(|target| target.bytes).sum()),
        ),
        point("hottest target, % of requests", 100.0 * published.hottest_share, 100.0 * ours.hottest_share),
        point(
            "mean request, KiB",
            published.request_bytes as f64 / 1024.0,
            ours.bytes_sent as f64 / 1024.0 / ours.requests.max(1) as f64,
        ),
    ];
    for &(bytes, share) in published.coverage {
        let covering = ours.bytes_covering(share).unwrap_or(0);
        points.push(point(
            &format!("covers {:.0} % of requests, MiB", 100.0 * share),
            mb(bytes),
            mb(covering),
        ));
    }
    Fit { trace: published.name.to_owned(), points, assumed: published.assumed.to_owned() }
}

fn point(what: &str, published: f64, ours: f64) -> FitPoint {
    FitPoint { what: what.to_owned(), published, ours }
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The golden ratio's fractional part.
const GOLDEN: f64 = 0.618_033_988_749_894_9;
/// The upper end falls like Pareto's law with the index 1 / 0.65 = 1.5.
const SIZE_SPREAD: f64 = 0.65;
const GROWTH_MAX: f64 = 3.0;
/// Even an empty page has a head.
const BYTES_MIN: f64 = 64.0;

#[cfg(test)]
mod tests {
    use super::super::{CHESS, IBM, RICE};
    use super::*;

    #[test]
    fn traces_fit_what_is_published() {
        for (published, tolerance) in [(&RICE, 0.02), (&CHESS, 0.15)] {
            let (_, fit) = synthesize(published, published.requests_default, 1);
            for point in &fit.points {
                let off = (point.ours / point.published - 1.0).abs();
                assert!(
                    off < tolerance,
                    "{}, {}: {} for {}",
                    fit.trace,
                    point.what,
                    point.ours,
                    point.published
                );
            }
        }
    }

    /// A fifth of the log has its head, but not all of its tail.
    #[test]
    fn a_part_of_a_log_has_its_head() {
        let (_, fit) = synthesize(&IBM, IBM.requests_default, 1);
        for point in &fit.points[..6] {
            let off = (point.ours / point.published - 1.0).abs();
            assert!(off < 0.05, "{}: {} for {}", point.what, point.ours, point.published);
        }
    }

    #[test]
    fn the_seed_decides() {
        let made = |seed| synthesize(&CHESS, 10_000, seed).0;
        assert_eq!(made(1).requests(), made(1).requests());
        assert_ne!(made(1).requests(), made(2).requests());
    }
}
