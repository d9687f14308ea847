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
    let bytes = |request: usize| script.requests()[request].bytes.unwrap_or(0);
    let sent: u64 = script.steps().iter().map(|step| bytes(step.request as usize)).sum();
    let counts = counts(script);
    let requested = || counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let set: u64 = requested().map(|(request, _)| bytes(request)).sum();
    vec![
        Statistic::new("requests", None, script.steps().len() as f64),
        Statistic::new("different requests", None, requested().count() as f64),
        Statistic::new("requests of a session", None, script.mean_session()),
        Statistic::new("requested set, MiB", None, set as f64 / MIB),
        Statistic::new("mean reply, bytes", None, sent as f64 / script.steps().len().max(1) as f64),
    ]
}

/// How often each request is made.
fn counts(script: &Script) -> Vec<u64> {
    let mut counts = vec![0; script.requests().len()];
    for step in script.steps() {
        counts[step.request as usize] += 1;
    }
    counts
}

/// The requests of a script by rising size of their files: how much memory serves which share of them.
#[derive(Debug)]
pub(super) struct SizeLadder {
    /// For each size: how many requests up to it, bytes of different files up to it, the size.
    steps: Vec<(u64, SizeStep)>,
}

/// A step of the ladder.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SizeStep {
    /// Bytes of all different files up to here.
    pub(super) set_bytes: u64,
    /// The largest file up to here.
    pub(super) largest_bytes: u64,
}

impl SizeLadder {
    pub(super) fn of(script: &Script) -> Self {
        // Files of one size in an order that does not depend on how often they are asked for.
        let scattered = |number: usize| SplitMix64(number as u64).next();
        let sizes = script.requests().iter().map(|request| request.bytes.unwrap_or(0));
        let mut files: Vec<(u64, u64, u64)> = sizes
            .zip(counts(script))
            .enumerate()
            .map(|(number, (bytes, count))| (bytes, scattered(number), count))
            .collect();
        files.sort_unstable();
        let (mut requests, mut step) = (0, SizeStep::default());
        let mut climb = |(bytes, _, count): (u64, u64, u64)| {
            requests += count;
            step = SizeStep { set_bytes: step.set_bytes + bytes, largest_bytes: bytes };
            (requests, step)
        };
        Self { steps: files.into_iter().map(&mut climb).collect() }
    }

    /// The smallest files that get so many per cent of the requests.
    pub(super) fn step(&self, percent: u32) -> SizeStep {
        let Some((all, _)) = self.steps.last() else { return SizeStep::default() };
        let wanted = all * u64::from(percent) / 100;
        self.steps[self.steps.partition_point(|(requests, _)| *requests < wanted)].1
    }
}

/// Bytes of a mebibyte.
pub(super) const MIB: f64 = 1_048_576.0;
