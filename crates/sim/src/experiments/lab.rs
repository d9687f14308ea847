//! Runs experiments: generates each trace once, uses all processors, and caches results.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::model::{Outcome, Scenario};
use crate::report::Run;
use crate::runner::Runner;
use crate::trace::{
    Bursts, Fit, HotTargets, LogStatistics, Trace, Zipf, in_bursts, synthesize, with_hot_targets,
};
use crate::trace::{CHESS, IBM, RICE};

/// A trace by name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    /// From the published statistics of the university's logs.
    Rice,
    /// From those of the company's log.
    Ibm,
    /// The chess match.
    Chess,
    /// The first, with four hot targets.
    RiceWithHot {
        /// Their share in the requests, in percent.
        percent: u32,
        /// Size of each, in kilobytes.
        kb: u32,
    },
    /// The first, with each target's requests in bursts.
    RiceInBursts(Bursts),
    /// By Zipf's law.
    Zipf(Zipf),
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rice => f.write_str("rice"),
            Self::Ibm => f.write_str("ibm"),
            Self::Chess => f.write_str("chess"),
            Self::RiceWithHot { percent, kb } => write!(f, "rice, {percent} % hot ({kb} KB)"),
            Self::RiceInBursts(bursts) => write!(f, "rice in bursts of {}", bursts.length),
            Self::Zipf(zipf) => write!(f, "zipf {} ({} targets)", zipf.alpha, zipf.targets),
        }
    }
}

/// A planned run, and its label in a report.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The requests.
    pub workload: Workload,
    /// Everything else.
    pub scenario: Scenario,
    /// In reports.
    pub variant: String,
}

/// Runs plans.
pub struct Lab<'a> {
    seed: u64,
    seeds: u64,
    scale: f64,
    runner: Runner<'a>,
    traces: HashMap<String, (Arc<Trace>, Option<Fit>)>,
    outcomes: HashMap<String, Outcome>,
}

impl<'a> Lab<'a> {
    /// A lab with a seed for all that is random, and a factor for the number of requests (1: as published).
    #[must_use]
    pub fn new(seed: u64, scale: f64, runner: Runner<'a>) -> Self {
        Self { seed, seeds: 1, scale, runner, traces: HashMap::new(), outcomes: HashMap::new() }
    }

    /// Lets claims that hang on a few per cent be judged by the median of so many seeds, from this lab's on; at least one.
    #[must_use]
    pub fn with_seeds(self, seeds: u64) -> Self {
        Self { seeds: seeds.max(1), ..self }
    }

    /// An empty lab for each seed; the median over seeds counts.
    pub fn each_seed(&self) -> impl Iterator<Item = Self> + use<'a> {
        let (first, scale, runner) = (self.seed, self.scale, self.runner);
        (0..self.seeds).map(move |number| Self::new(first.wrapping_add(number), scale, runner))
    }

    /// What all that is random starts from.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The number of seeds whose median counts.
    #[must_use]
    pub fn seeds(&self) -> u64 {
        self.seeds
    }

    /// The trace of a workload.
    pub fn trace(&mut self, workload: Workload) -> Arc<Trace> {
        self.made(workload).0.clone()
    }

    /// How closely a synthetic trace fits the published statistics.
    pub fn fit(&mut self, workload: Workload) -> Option<Fit> {
        self.made(workload).1.clone()
    }

    /// Runs new plans, several at a time, and returns all results in the order of the plans.
    pub fn run(&mut self, what: &str, plans: &[Plan]) -> Vec<Run> {
        let mut todo: Vec<(String, Arc<Trace>, &Plan)> = Vec::new();
        for plan in plans {
            let key = key(plan);
            if !self.outcomes.contains_key(&key) && !todo.iter().any(|(known, ..)| *known == key) {
                todo.push((key, self.trace(plan.workload), plan));
            }
        }
        let runs: Vec<_> = todo.iter().map(|(_, trace, plan)| (&**trace, &plan.scenario)).collect();
        let done = self.runner.run(what, &runs);
        self.outcomes.extend(todo.into_iter().map(|(key, ..)| key).zip(done));
        plans
            .iter()
            .map(|plan| Run { variant: plan.variant.clone(), outcome: self.outcomes[&key(plan)].clone() })
            .collect()
    }

    fn made(&mut self, workload: Workload) -> &(Arc<Trace>, Option<Fit>) {
        let key = format!("{workload:?}");
        if !self.traces.contains_key(&key) {
            self.runner.announce(&format!("making the trace {workload}"));
            let made = self.make(workload);
            self.traces.insert(key.clone(), made);
        }
        &self.traces[&key]
    }

    fn make(&mut self, workload: Workload) -> (Arc<Trace>, Option<Fit>) {
        let scaled = |requests: u64| ((requests as f64 * self.scale) as u64).max(1);
        let synthetic = |published: &LogStatistics| {
            let (trace, fit) = synthesize(published, scaled(published.requests_default), self.seed);
            (Arc::new(trace), Some(fit))
        };
        match workload {
            Workload::Rice => synthetic(&RICE),
            Workload::Ibm => synthetic(&IBM),
            Workload::Chess => synthetic(&CHESS),
            Workload::Zipf(zipf) => {
                let zipf = Zipf { requests: scaled(zipf.requests), ..zipf };
                (Arc::new(zipf.trace(self.seed)), None)
            }
            Workload::RiceInBursts(bursts) => {
                let rice = self.trace(Workload::Rice);
                (Arc::new(in_bursts(&rice, bursts, self.seed)), None)
            }
            Workload::RiceWithHot { percent, kb } => {
                let rice = self.trace(Workload::Rice);
                let hot =
                    HotTargets { count: 4, share: f64::from(percent) / 100.0, bytes: u64::from(kb) << 10 };
                (Arc::new(with_hot_targets(&rice, hot, self.seed)), None)
            }
        }
    }
}

fn key(plan: &Plan) -> String {
    format!("{:?} {:?}", plan.workload, plan.scenario)
}
