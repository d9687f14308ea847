//! SURGE (Barford and Crovella, *Generating Representative Web Workloads for Network and Server Performance
//! Evaluation*, 1998): sizes with a heavy tail, and popularity by Zipf's law.
//!
//! 93 % of the files have a size whose logarithm is normal (μ 9.357, σ 1.318), the others one by Pareto's law (at least
//! 133 KB, α 1.1). SURGE also matches sizes to popularities, and has temporal locality in the order; this has neither.

use super::model::{LoadSite, SiteFile};
use super::random::{SplitMix64, Weighted};
use super::statistics::Statistic;
use super::thinking::cut_into_sessions;
use crate::script::Script;
use crate::targets::LoadRequest;

pub(super) fn make(count: usize, requests: usize, seed: u64) -> LoadSite {
    let mut random = SplitMix64(seed);
    let sizes: Vec<(u64, bool)> = (0..count).map(|_| draw_size(&mut random)).collect();
    let path = |rank: usize| format!("/surge/{rank}");
    let listed = || sizes.iter().enumerate();
    let files = listed().map(|(rank, (bytes, _))| SiteFile::text(path(rank), *bytes)).collect();
    let targets = listed().map(|(rank, (bytes, _))| LoadRequest::file(path(rank), *bytes)).collect();
    let popularity = Weighted::zipf(count);
    let order: Vec<u32> = (0..requests).map(|_| popularity.pick(&mut random) as u32).collect();
    let mut script = Script::new(targets);
    cut_into_sessions(&mut script, order, &mut random);
    let tail = sizes.iter().filter(|(_, is_tail)| *is_tail).count() as f64 / count as f64;
    let mut body: Vec<u64> = sizes.iter().filter(|(_, is_tail)| !is_tail).map(|(bytes, _)| *bytes).collect();
    body.sort_unstable();
    let median = body.get(body.len() / 2).copied().unwrap_or(0) as f64;
    let statistics = vec![
        Statistic::new("files in the tail, %", Some(100.0 * TAIL_SHARE), 100.0 * tail),
        Statistic::new("median of the others, bytes", Some(BODY_MU.exp().round()), median),
    ];
    LoadSite::new(format!("SURGE, {count} files"), files, script).with(statistics)
}

/// A size in bytes, and whether it is of the tail.
fn draw_size(random: &mut SplitMix64) -> (u64, bool) {
    if random.unit() < TAIL_SHARE {
        (random.pareto(TAIL_BYTES_MIN, 1.1).min(BYTES_MAX) as u64, true)
    } else {
        (random.lognormal(BODY_MU, 1.318).clamp(1.0, BYTES_MAX) as u64, false)
    }
}

const TAIL_SHARE: f64 = 0.07;
const BODY_MU: f64 = 9.357;
const TAIL_BYTES_MIN: f64 = 133_000.0;
/// α of 1.1 has no variance: one file of a larger site would have gigabytes.
const BYTES_MAX: f64 = 50e6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_and_the_body_are_as_published() {
        let site = make(20_000, 50_000, 5);
        for statistic in &site.statistics[..2] {
            let off = (statistic.ours / statistic.published.unwrap() - 1.0).abs();
            assert!(off < 0.05, "{}: {}", statistic.what, statistic.ours);
        }
        assert_eq!(site.script.steps().len(), 50_000);
        assert_eq!(site.files.len(), site.script.requests().len());
    }
}
