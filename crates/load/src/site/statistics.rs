//! The statistics of a site beside those that its source prints.

use serde::Serialize;

use super::random::SplitMix64;
use crate::script::Script;

/// One number of a site.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistic {
    /// What is counted, with its unit.
    pub what: String,
    /// What the source prints, if it does.
    pub published: Option<f64>,
    /// What this site has.
    pub ours: f64,
}

impl Statistic {
    pub(super) fn new(what: impl Into<String>, published: Option<f64>, ours: f64) -> Self {
        Self { what: what.into(), published, ours }
    }
}

/// What a site that says nothing else of itself has.
pub(super) fn of_script(script: &Script) -> Vec<Statistic> {
    let counts = counts(script);
    let requested = || script.requests().iter().zip(&counts).filter(|(_, count)| **count > 0);
    let set: u64 = requested().filter_map(|(request, _)| request.bytes).sum();
    let mean = sent_bytes(script) as f64 / script.steps().len().max(1) as f64;
    vec![
        Statistic::new("requests", None, script.steps().len() as f64),
        Statistic::new("different requests", None, requested().count() as f64),
        Statistic::new("requests of a session", None, script.mean_session()),
        Statistic::new("requested set, MiB", None, set as f64 / MIB),
        Statistic::new("mean reply, bytes", None, mean),
    ]
}

/// Bytes of all replies.
pub(super) fn sent_bytes(script: &Script) -> u64 {
    let bytes = |request: u32| script.requests()[request as usize].bytes.unwrap_or(0);
    script.steps().iter().map(|step| bytes(step.request)).sum()
}

/// How often each request is made.
fn counts(script: &Script) -> Vec<u64> {
    let mut counts = vec![0; script.requests().len()];
    for step in script.steps() {
        counts[step.request as usize] += 1;
    }
    counts
}

/// The smallest files of a script that get some share of its requests: how much memory serves them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SmallestFiles {
    requests: u64,
    /// Bytes of all of them.
    pub(super) set_bytes: u64,
    /// The largest of them.
    pub(super) largest_bytes: u64,
}

impl SmallestFiles {
    /// For each of these shares, in per cent.
    pub(super) fn of<const COUNT: usize>(script: &Script, percents: [u32; COUNT]) -> [Self; COUNT] {
        // Files of one size in an order that does not depend on how often they are asked for.
        let scattered = |number: usize| SplitMix64(number as u64).next();
        let sizes = script.requests().iter().map(|request| request.bytes.unwrap_or(0));
        let files = sizes.zip(counts(script)).enumerate();
        let mut files: Vec<_> =
            files.map(|(number, (bytes, count))| (bytes, scattered(number), count)).collect();
        files.sort_unstable();
        let mut so_far = Self::default();
        let mut add = |(bytes, _, count): (u64, u64, u64)| {
            so_far.requests += count;
            so_far.set_bytes += bytes;
            so_far.largest_bytes = bytes;
            so_far
        };
        let steps: Vec<Self> = files.into_iter().map(&mut add).collect();
        let all = steps.last().map_or(0, |step| step.requests);
        percents.map(|percent| {
            let wanted = all * u64::from(percent) / 100;
            let place = steps.partition_point(|step| step.requests < wanted);
            steps.get(place).copied().unwrap_or_default()
        })
    }
}

/// Bytes of a mebibyte.
pub(super) const MIB: f64 = 1_048_576.0;
