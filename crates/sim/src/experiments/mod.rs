//! Experiments by name: each published figure of the LARD study, and the claims about our own policy.
//!
//! An experiment is a function from a [`Lab`] to a [`SimulationReport`]: it plans runs, draws figures, and holds each published
//! statement against the numbers.

mod clusters;
mod fitted;
mod kept;
mod lab;
mod machines;
mod ours;
mod sites;
mod sweep;

pub use lab::{Lab, Plan, Workload};
pub use sweep::Sweep;

use baton_figures::Report;

use crate::report::SimulationReport;

/// An experiment.
#[derive(Clone, Copy)]
pub struct Experiment {
    /// On the command line.
    pub name: &'static str,
    /// A line.
    pub title: &'static str,
    /// The source.
    pub source: &'static str,
    run: fn(&mut Lab<'_>, SimulationReport) -> SimulationReport,
}

impl Experiment {
    /// All experiments.
    pub const ALL: [Self; 24] = [
        Self::new("traces", "How synthetic traces fit the published ones", "Fig. 3.5, 3.6", sites::traces),
        Self::new("rice-throughput", "Throughput on the Rice trace", "Fig. 3.7", sites::rice_throughput),
        Self::new("rice-misses", "Cache misses on the Rice trace", "Fig. 3.8", sites::rice_misses),
        Self::new("rice-idle", "Idle time on the Rice trace", "Fig. 3.9", sites::rice_idle),
        Self::new("ibm-throughput", "Throughput on the IBM trace", "Fig. 3.10", sites::ibm_throughput),
        Self::new("hot-targets", "Hot targets: LARD/R against LARD", "section 3.3.2", sites::hot_targets),
        Self::new("chess", "The chess match: the best case of WRR", "section 3.3.2", sites::chess),
        Self::new("cpu-wrr", "WRR and the speed of processors", "Fig. 3.11", machines::cpu_wrr),
        Self::new("cpu-lard", "LARD/R and the speed of processors", "Fig. 3.12", machines::cpu_lard),
        Self::new("disks-wrr", "WRR and the number of disks", "Fig. 3.13", machines::disks_wrr),
        Self::new("disks-lard", "LARD/R and the number of disks", "Fig. 3.14", machines::disks_lard),
        Self::new("cache-tenfold", "WRR with more memory", "section 3.3.1", machines::cache_tenfold),
        Self::new("cache-lru", "Node caches by LRU instead of GDS", "section 3.2.1", machines::cache_lru),
        Self::new("delay", "Delay", "section 3.3.4", clusters::delay),
        Self::new(
            "thresholds",
            "T_high: throughput and the spread of delays",
            "section 3.1.4",
            clusters::thresholds,
        ),
        Self::new(
            "prototype",
            "Six nodes with 84 MB and a front-end at a cost",
            "Fig. 3.17",
            clusters::prototype,
        ),
        Self::new("thresholds-fitted", "Thresholds that fit the nodes", "our own", fitted::thresholds),
        Self::new("kept", "Kept connections: relay, stay, return, fetch", "our own", kept::ways),
        Self::new("bursts", "Requests that come in bursts", "our own", fitted::bursts),
        Self::new("today", "Processors and drives of today", "our own", machines::today),
        Self::new("ours", "Our policy against LARD/R and bounded hashing", "our own", ours::traces),
        Self::new("ours-limit", "What distribution leaves to be gained", "our own", ours::limit),
        Self::new("ours-failure", "Through the failure of a node", "our own", ours::failure),
        Self::new("front-ends", "Several front-ends, and what they share", "our own", ours::sharing),
    ];

    const fn new(
        name: &'static str,
        title: &'static str,
        source: &'static str,
        run: fn(&mut Lab<'_>, SimulationReport) -> SimulationReport,
    ) -> Self {
        Self { name, title, source, run }
    }

    /// The experiment of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|experiment| experiment.name == name)
    }

    /// Runs it.
    #[must_use]
    pub fn run(&self, lab: &mut Lab<'_>) -> SimulationReport {
        let title = format!("{} ({})", self.title, self.source);
        let findings = Report { name: self.name.into(), title, ..Report::default() };
        (self.run)(lab, SimulationReport { findings, ..SimulationReport::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::Runner;

    /// With few requests no claim need hold, but each experiment makes its complete report.
    #[test]
    fn every_experiment_makes_a_report() {
        let mut lab = Lab::new(1, 0.0004, Runner::new(2, &|_, _| ()));
        for experiment in Experiment::ALL {
            let report = experiment.run(&mut lab);
            assert!(!report.findings.figures.is_empty(), "{}", experiment.name);
            assert!(report.findings.figures.iter().all(|figure| !figure.lines.is_empty()));
            let finite =
                |line: &baton_figures::Line| line.numbers().all(|(_, interval)| interval.median.is_finite());
            assert!(
                report.findings.figures.iter().flat_map(|figure| &figure.lines).all(finite),
                "{}",
                experiment.name
            );
            let is_published = !experiment.source.starts_with("our own");
            assert!(
                !is_published || !report.findings.claims.is_empty(),
                "{} claims nothing",
                experiment.name
            );
        }
    }

    #[test]
    fn names_are_unique() {
        for experiment in Experiment::ALL {
            assert_eq!(Experiment::named(experiment.name).map(|found| found.title), Some(experiment.title));
        }
    }
}
