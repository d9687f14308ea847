//! How much is measured: all that a file says, its short form, or just enough to see that it works.

use std::time::Duration;

use crate::experiment::{Contender, ContenderText, Experiment, LoadText, NamedLoad};
use crate::load::sessions::SessionLoad;
use crate::meters::MeterName;

/// A load with a contender that gets it.
pub(super) type Cell<'a> = (&'a NamedLoad, &'a Contender);

/// How much is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// As the file says: figures to publish.
    #[default]
    Full,
    /// The short form of the file.
    Quick,
    /// Cells of a tenth of a second on a tiny site, each load and each contender once: figures mean nothing.
    Tenth,
}

impl Effort {
    /// What is chosen for this much.
    fn pick<T>(self, full: T, quick: T, tenth: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
            Self::Tenth => tenth,
        }
    }

    pub(super) fn rounds(self, experiment: &Experiment) -> usize {
        self.pick(experiment.head.rounds, experiment.head.quick.rounds, 1)
    }

    /// The cells that are measured: all, or just so many that each load and each contender is in one.
    pub(super) fn cells(self, experiment: &Experiment) -> Vec<Cell<'_>> {
        if self != Self::Tenth {
            return experiment.cells().collect();
        }
        let mut cells: Vec<Cell<'_>> = Vec::new();
        for (number, load) in experiment.loads.iter().enumerate() {
            let own: Vec<_> = experiment.contenders_of(load).collect();
            cells.extend(own.get(number % own.len().max(1)).map(|contender| (load, *contender)));
        }
        for (load, contender) in experiment.cells() {
            if !cells.iter().any(|(_, other)| other.name == contender.name) {
                cells.push((load, contender));
            }
        }
        cells
    }

    /// How long a cell is measured.
    pub(super) fn duration(self, experiment: &Experiment) -> Duration {
        Duration::from_secs_f64(self.pick(experiment.head.seconds, experiment.head.quick.seconds, 0.1))
    }

    /// Load in front of a cell that is not measured.
    pub(super) fn lead(self, experiment: &Experiment) -> Duration {
        let full = Duration::from_secs_f64(experiment.head.lead_seconds);
        self.pick(full, full / 2, full.min(TENTH))
    }

    /// Load after the start of a server.
    pub(super) fn warm_up(self, experiment: &Experiment) -> Duration {
        let full = Duration::from_secs_f64(experiment.head.warm_up_seconds);
        self.pick(full, full / 3, Duration::ZERO)
    }

    /// Sessions come for as long as their timeout before they are measured, so that the first timeouts are in it.
    pub(super) fn sessions_before(self, load: &SessionLoad) -> Duration {
        let full = Duration::from_secs_f64(load.timeout_s);
        self.pick(full, full, TENTH)
    }

    /// So many that a server answers all of them in a tenth of a second.
    pub(super) fn connections(self, full: usize) -> usize {
        self.pick(full, full, full.min(16))
    }

    pub(super) fn idle_connections(self, full: usize) -> usize {
        self.pick(full, full, full.min(20))
    }

    pub(super) fn slow_readers(self, full: usize) -> usize {
        self.pick(full, full / 2, full.min(20))
    }

    /// How long a node of a cluster is ill.
    pub(super) fn fault(self) -> Duration {
        Duration::from_millis(self.pick(2_500, 1_000, 500))
    }

    /// That are traced, or stepped through.
    pub(super) fn responses(self, full: u64) -> u64 {
        self.pick(full, full.min(3), 1)
    }

    /// How many disturbed cells of a run are measured again, at most. The short form ends in time on a busy machine, too.
    pub(super) fn repeats_max(self, cells: usize) -> usize {
        self.pick(cells * 2, cells / 4, 0)
    }

    /// How long a run takes, roughly: cells, what comes before them, and starts of servers. A procedure's file says it.
    pub fn estimate(self, experiment: &Experiment) -> Duration {
        if let Some([full, quick]) = experiment.head.minutes {
            return Duration::from_secs_f64(60.0 * self.pick(full, quick, quick));
        }
        let cell = |load: &LoadText| {
            let duration = self.duration(experiment);
            let own = match load {
                // Alone, while they come, and beside all.
                LoadText::SlowReaders(load) => {
                    let coming = self.slow_readers(load.readers) as f64 / load.readers_per_second;
                    duration * 2 + Duration::from_secs_f64(coming)
                }
                LoadText::Paced(_) => duration * 3 / 2 + Duration::from_millis(600),
                LoadText::Fault(_) => self.fault() * 3 + CLUSTER_START,
                LoadText::Handshakes { .. } => duration.max(Duration::from_secs(1)),
                LoadText::IdleTls { connections } => HANDSHAKE * self.idle_connections(*connections) as u32,
                LoadText::Stepped { .. } => STEPS,
                LoadText::Sessions(load) => duration + self.sessions_before(load),
                _ => duration,
            };
            own + self.lead(experiment) + BETWEEN_CELLS
        };
        let perf = |contender: &ContenderText| {
            let mut meters = experiment.head.meters.iter().chain(&contender.meters);
            if meters.any(|meter| *meter == MeterName::Copies) { PERF_REPORT } else { Duration::ZERO }
        };
        let rounds = u32::try_from(self.rounds(experiment)).unwrap_or(u32::MAX);
        let start = if experiment.has_hosts() { CLUSTER_START } else { START };
        let all = self.cells(experiment);
        let mut sum = Duration::ZERO;
        for loads in experiment.sets() {
            for contender in &experiment.contenders {
                let own: Vec<_> = loads.iter().filter(|load| gets(&all, load, contender)).collect();
                // A box is filled once.
                let fillings = if experiment.head.bounds.is_some() { own.len().min(1) } else { own.len() };
                sum += start * own.len().min(1) as u32 + self.warm_up(experiment) * fillings as u32;
                sum += own.iter().map(|load| cell(&load.what) + perf(&contender.what)).sum::<Duration>()
                    * rounds;
            }
        }
        sum
    }
}

/// Whether this contender gets this load in one of these cells.
pub(super) fn gets(cells: &[Cell<'_>], load: &NamedLoad, contender: &Contender) -> bool {
    cells.iter().any(|(its, other)| its.name == load.name && other.name == contender.name)
}

/// Of the smallest cells and what comes before them.
const TENTH: Duration = Duration::from_millis(100);
/// Connecting, reading clocks.
const BETWEEN_CELLS: Duration = Duration::from_millis(150);
/// Of a server.
const START: Duration = Duration::from_millis(300);
/// In which perf says what it has sampled.
const PERF_REPORT: Duration = Duration::from_millis(2_300);
/// Of a client that opens one connection after the other.
const HANDSHAKE: Duration = Duration::from_micros(1_400);
/// Of a worker that is stopped after each instruction, for one kind of request.
const STEPS: Duration = Duration::from_secs(9);
/// Of a network with its servers.
const CLUSTER_START: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// An experiment that makes it longer has to become shorter itself, or others have.
    #[test]
    fn all_experiments_in_their_short_form_take_less_than_an_hour() {
        let all = Experiment::all().unwrap();
        let estimates = all.iter().map(|experiment| (Effort::Quick.estimate(experiment), &experiment.name));
        let mut longest: Vec<_> = estimates.collect();
        longest.sort_unstable_by(|a, b| b.cmp(a));
        let sum: Duration = longest.iter().map(|(estimate, _)| *estimate).sum();
        assert!(
            sum < Duration::from_secs(3600),
            "{sum:?}, the longest are {:?}",
            &longest[..8.min(longest.len())]
        );
    }

    /// Goal: the start of a server that is kept counts once. Method: two loads.
    #[test]
    fn kept_servers_start_once() {
        let estimate = |keeps: &str| {
            let text = format!(
                "title = 'two'\n{keeps}\n[[load]]\nname = '{{kb}}'\nsweep.kb = [1, 16]\nkind = 'closed'\n\
                 ask = '/{{kb}}k.html'\n[[contender]]\nname = 'baton'\nserver = 'baton'\n"
            );
            Effort::Quick.estimate(&Experiment::parse("two", "two.toml", &text).unwrap())
        };
        assert_eq!(estimate("") - estimate("keep_servers = true"), START);
    }

    /// Goal: the short test of all experiments leaves no load and no contender out. Method: all files.
    #[test]
    fn few_cells_have_each_load_and_each_contender() {
        for experiment in Experiment::all().unwrap() {
            let cells = Effort::Tenth.cells(&experiment);
            let (loads, contenders) = (experiment.loads.len(), experiment.contenders.len());
            assert!(
                experiment.loads.iter().all(|load| cells.iter().any(|(other, _)| other.name == load.name))
            );
            for contender in &experiment.contenders {
                assert!(cells.iter().any(|(_, other)| other.name == contender.name), "{}", contender.name);
            }
            assert!(cells.len() < loads + contenders.max(1), "{}", experiment.name);
            assert_eq!(Effort::Quick.cells(&experiment).len(), experiment.cells().count());
        }
    }
}
