//! Runs experiments: all contenders interleaved within each round, one line kept for each cell.
//!
//! ```text
//!   file ─► Experiment ─► Stage (machine, site, contenders) ─► cells ─► Journal ─► Series ─► figures, verdicts
//! ```
//!
//! In every round each contender is measured once under a load, in an order that rotates, and only values of one round are
//! compared, since a machine drifts. A cell in which other processes used the CPUs is measured again. A single wrong answer
//! fails a cell. Why so: `docs/decisions/0001-measuring.md`.

mod cluster;
mod comparison;
mod crowd;
pub mod demo;
mod effort;
mod faults;
mod judge;
mod linked;
mod loads;
mod manifest;
mod measure;
mod metered;
mod page;
mod procedure;
mod programs;
mod record;
mod report;
mod series;
mod sessions;
mod settings;
mod site;
mod slow_readers;
mod stage;
mod stepped;
mod stepper;
mod traced;
mod turn;
mod visitor;
mod visits;

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

pub use effort::Effort;
use effort::{Cell, gets};
pub(crate) use manifest::commit;
pub(crate) use record::{CellRecord, Manifest, places, read};
use record::{Journal, Outcome};
pub(crate) use report::of as report_of;
pub use report::{report, shown_duration};
pub(crate) use series::{found, pairs};
pub use settings::RunSettings;
use site::Site;
use stage::{Contestant, Stage};
use turn::{Measured, Turn, Values};

use crate::experiment::{ClosedText, Contender, ContenderText, Experiment, LoadText, NamedLoad};
use crate::load::LoadRequest;
use crate::load::sessions::SessionLoad;
use crate::quantity::Quantity;
use crate::servers::set_of;

/// Runs an experiment, or goes on with it. What it finds is kept in the folder of results.
///
/// # Errors
/// If the machine lacks something for all cells, or nothing could be measured.
pub fn run(experiment: &Experiment, settings: &RunSettings) -> Result<()> {
    let Some((baton, others)) = settings.batons.split_first() else { bail!("a run needs an executable") };
    if let Some(name) = Experiment::shared_name(others) {
        bail!("two builds are in folders that are called `{name}`: figures tell builds apart by that name");
    }
    let experiment = experiment.clone().with_builds(others);
    let experiment = &if settings.effort == Effort::Tenth { experiment.thinned() } else { experiment };
    if let Some(why) = experiment.hindrance() {
        bail!("{}: {why}", experiment.name);
    }
    if let Some(procedure) = &experiment.head.procedure {
        return procedure::run(experiment, procedure, baton, settings);
    }
    let effort = settings.effort;
    let site = Site::new(&experiment.head.site, effort == Effort::Tenth)?;
    site.made.iter().for_each(|made| eprint!("{made}"));
    let folder = settings.folder.join(&experiment.name);
    let stage = Stage::prepare(experiment, &folder, site, baton, set_of(&settings.settings)?)?;
    let manifest =
        manifest::of(experiment, settings, &names_of(experiment), stage.machine.description(), |name| {
            stage.kind(name)
        })?;
    let mut journal = Journal::open(&settings.results, &manifest)?;
    let cells = effort.cells(experiment);
    eprintln!(
        "{}: {} cells, {} of them kept from before; about {}",
        experiment.name,
        cells.len() * effort.rounds(experiment),
        journal.records.len(),
        shown_duration(effort.estimate(experiment))
    );
    let repeats_left = std::cell::Cell::new(effort.repeats_max(cells.len() * effort.rounds(experiment)));
    let run = Run { experiment, stage: &stage, effort, cells, repeats_left };
    for loads in experiment.sets() {
        run.loads(loads, &mut journal)?;
    }
    if journal.records.iter().all(|record| !matches!(record.outcome, Outcome::Measured(_))) {
        bail!("{}: no cell could be measured", experiment.name);
    }
    Ok(())
}

struct Run<'a> {
    experiment: &'a Experiment,
    stage: &'a Stage,
    effort: Effort,
    cells: Vec<Cell<'a>>,
    /// Disturbed cells that may be measured again.
    repeats_left: std::cell::Cell<usize>,
}

impl Run<'_> {
    /// All rounds of these loads, on contenders that are started for them.
    fn loads(&self, loads: &[NamedLoad], journal: &mut Journal) -> Result<()> {
        let rounds = self.effort.rounds(self.experiment);
        let mut contestants: Vec<(&Contender, Option<Contestant>)> = Vec::new();
        for contender in &self.experiment.contenders {
            let own: Vec<_> = loads.iter().filter(|load| gets(&self.cells, load, contender)).collect();
            let is_done =
                |load: &&NamedLoad| (0..rounds).all(|round| journal.has(&load.name, &contender.name, round));
            if own.is_empty() || own.iter().all(is_done) {
                continue;
            }
            if own.iter().all(|load| self.wants_fresh_server(load)) {
                contestants.push((contender, None));
                continue;
            }
            match self.start(contender, &own) {
                Ok(contestant) => contestants.push((contender, Some(contestant))),
                Err(outcome) => self.leave_out(contender, &own, &outcome, journal)?,
            }
        }
        for (number, load) in loads.iter().enumerate() {
            // A box is filled once.
            if number == 0 || self.experiment.head.bounds.is_none() {
                self.fill(&mut contestants, load)?;
            }
            for round in 0..rounds {
                for position in 0..contestants.len() {
                    let next = (round + position) % contestants.len();
                    let (contender, contestant) = &mut contestants[next];
                    if !gets(&self.cells, load, contender) || journal.has(&load.name, &contender.name, round)
                    {
                        continue;
                    }
                    let measured = match contestant {
                        Some(contestant) => self.cell(contender, contestant, load, round)?,
                        None => match self.start(contender, &[load]) {
                            Ok(mut contestant) => {
                                let measured = self.cell(contender, &mut contestant, load, round)?;
                                self.stage.stop(contestant)?;
                                measured
                            }
                            Err(outcome) => Measured { outcome, disturbed: false },
                        },
                    };
                    journal.keep(self.record(contender, load, round, measured))?;
                }
            }
        }
        contestants
            .into_iter()
            .filter_map(|(_, contestant)| contestant)
            .try_for_each(|contestant| self.stage.stop(contestant))
    }

    /// Warms up the servers that get this load; those in boxes rest from then on.
    fn fill(&self, contestants: &mut [(&Contender, Option<Contestant>)], load: &NamedLoad) -> Result<()> {
        let is_in_box = self.experiment.head.bounds.is_some();
        for (contender, contestant) in contestants {
            let Some(contestant) =
                contestant.as_mut().filter(|_| is_in_box || gets(&self.cells, load, contender))
            else {
                continue;
            };
            let warm_up = self.effort.warm_up(self.experiment);
            self.unmeasured(contestant, &self.filling(load), WARM_UP_TURN, warm_up)?;
            contestant.rest();
        }
        Ok(())
    }

    /// Where a load begins in the script; a new server has read none of it.
    fn place(&self, load: &NamedLoad, round: usize) -> f64 {
        if self.wants_fresh_server(load) {
            return 0.0;
        }
        let loads = &self.experiment.loads;
        let number = loads.iter().position(|other| other.name == load.name).unwrap_or_default();
        (round * loads.len() + number) as f64 / (self.effort.rounds(self.experiment) * loads.len()) as f64
    }

    /// One cell, again if others disturbed it.
    fn cell(
        &self,
        contender: &Contender,
        contestant: &mut Contestant,
        load: &NamedLoad,
        round: usize,
    ) -> Result<Measured> {
        contestant.wake();
        let lead = self.effort.lead(self.experiment);
        let kills = contestant.memory_kills();
        // Another part of the mix, so that it does not load just the measured files.
        self.unmeasured(contestant, &load.what, self.effort.rounds(self.experiment) + round, lead)?;
        let turn = Turn {
            number: round + 1,
            place: self.place(load, round),
            duration: self.effort.duration(self.experiment),
            is_first: round == 0,
            effort: self.effort,
        };
        let mut measured = measure::cell(self.stage, contestant, &load.what, turn);
        for _ in 0..REPEATS_MAX {
            if !measured.disturbed || self.repeats_left.get() == 0 {
                break;
            }
            self.repeats_left.set(self.repeats_left.get() - 1);
            sleep(PAUSE);
            let again = Turn { is_first: false, ..turn };
            measured = measure::cell(self.stage, contestant, &load.what, again).with_memory_of(measured);
        }
        if contestant.memory_kills() > kills {
            measured.outcome =
                Outcome::Failed("the kernel killed a process of it for want of memory".to_owned());
        }
        contestant.rest();
        if let Outcome::Measured(values) = &mut measured.outcome {
            match self.predicted(&contender.what, &load.what, turn, values) {
                Ok(predicted) => values.extend(predicted),
                Err(why) => measured.outcome = Outcome::Failed(format!("the simulator: {why:#}")),
            }
        }
        Ok(measured)
    }

    /// What the simulator says of a cell: nothing unless its contender asks for that.
    fn predicted(
        &self,
        contender: &ContenderText,
        load: &LoadText,
        turn: Turn,
        values: &Values,
    ) -> Result<Values> {
        match load {
            LoadText::Closed(load) => self.predict_cluster(contender, load, turn, values),
            LoadText::Sessions(load) => self.predict_cache(contender, load, turn),
            LoadText::Visits { visitors } => predict_documents(contender, *visitors, turn),
            _ => Ok(Values::new()),
        }
    }

    /// A cluster, with the requests that warmed it up.
    fn predict_cluster(
        &self,
        contender: &ContenderText,
        load: &ClosedText,
        turn: Turn,
        values: &Values,
    ) -> Result<Values> {
        let (Some(policy), Some(nodes)) = (contender.simulated, &contender.nodes) else {
            return Ok(Values::new());
        };
        let rate = values.get(&Quantity::Rate).copied().unwrap_or_default();
        let requests = |number: usize, duration: Duration| -> Result<Vec<LoadRequest>> {
            let count = (rate * duration.as_secs_f64()) as usize;
            Ok(self.stage.site.requests(&load.ask, number)?.into_iter().cycle().take(count).collect())
        };
        let rounds = self.effort.rounds(self.experiment);
        let warm_up = requests(turn.number - 1 + rounds, self.effort.lead(self.experiment))?;
        let measured = requests(turn.number, turn.duration)?;
        let bounds = self.experiment.head.bounds.unwrap_or_default();
        let sizes = (nodes.count, load.connections);
        let rate = cluster::predict(policy, sizes, &bounds, values, (&warm_up, &measured))?;
        Ok([(Quantity::SimulatedRate, rate)].into())
    }

    /// A cache before an origin.
    fn predict_cache(&self, contender: &ContenderText, load: &SessionLoad, turn: Turn) -> Result<Values> {
        let Some(policy) = contender.simulated_cache else { return Ok(Values::new()) };
        let setting = |name: &str| {
            let value = contender.set.get(name).and_then(toml::Value::as_integer);
            value
                .and_then(|value| u64::try_from(value).ok())
                .with_context(|| format!("`{name}` is no number"))
        };
        let sizes = (setting("shared_cache.memory_bytes_max")?, setting("shared_cache.block_bytes")?);
        let script = self.stage.site.script()?;
        let per_second = load.requests_per_second / script.mean_session();
        let warm_up = turn.effort.sessions_before(load);
        let all = warm_up + turn.duration;
        let sessions = (all.as_secs_f64() * per_second) as usize;
        let warm_up = warm_up.as_secs_f64() / all.as_secs_f64();
        cluster::predict_media(policy, sizes, script, (sessions, per_second, warm_up))
    }

    /// A crowd of slow readers leaves its traces in a server, and so does a fault in a cluster; nodes with little memory
    /// begin with none in use, and caches empty.
    fn wants_fresh_server(&self, load: &NamedLoad) -> bool {
        matches!(load.what, LoadText::SlowReaders(_) | LoadText::Fault(_) | LoadText::Visits { .. })
            || (self.experiment.has_hosts()
                && (self.experiment.head.bounds.is_some() || matches!(load.what, LoadText::Sessions(_))))
    }

    /// The load that fills memory and caches of a new server: the one that it gets, or for sessions, which are slow, what they
    /// ask for without pauses.
    fn filling(&self, load: &NamedLoad) -> LoadText {
        match &load.what {
            LoadText::Sessions(_) if self.experiment.head.bounds.is_some() => LoadText::of_script(),
            other => other.clone(),
        }
    }

    /// Load that fills memory and caches; in a box with all of disk and CPU, for a small disk fills a large memory for minutes.
    /// What goes wrong shows in the cells.
    fn unmeasured(
        &self,
        contestant: &mut Contestant,
        load: &LoadText,
        number: usize,
        duration: Duration,
    ) -> Result<()> {
        let fills = matches!(load, LoadText::Closed(_) | LoadText::Paced(_) | LoadText::H2load(_));
        if !fills || duration == Duration::ZERO {
            return Ok(());
        }
        let turn = Turn { number, place: 0.0, duration, is_first: false, effort: self.effort };
        contestant.unbounded(|contestant| drop(measure::cell(self.stage, contestant, load, turn)))
    }

    /// Starts a contender; what is written as the outcome of its cells if it does not take part.
    fn start(&self, contender: &Contender, loads: &[&NamedLoad]) -> Result<Contestant, Outcome> {
        let contestant = self.stage.start(contender, loads)?;
        for load in loads.iter().filter(|load| programs::makes(&load.what)) {
            programs::check(&load.what, &contestant.server, &self.stage.certificate, &self.stage.root)
                .map_err(|error| Outcome::of(Err(error)))?;
        }
        Ok(contestant)
    }

    /// One line for each load says why there is no figure.
    fn leave_out(
        &self,
        contender: &Contender,
        loads: &[&NamedLoad],
        outcome: &Outcome,
        journal: &mut Journal,
    ) -> Result<()> {
        for load in loads {
            if !journal.has(&load.name, &contender.name, 0) {
                let measured = Measured { outcome: outcome.clone(), disturbed: false };
                journal.keep(self.record(contender, load, 0, measured))?;
            }
        }
        Ok(())
    }

    fn record(
        &self,
        contender: &Contender,
        load: &NamedLoad,
        round: usize,
        measured: Measured,
    ) -> CellRecord {
        let mut parameters = load.parameters.clone();
        parameters.extend(contender.parameters.clone());
        CellRecord {
            load: load.name.clone(),
            contender: contender.name.clone(),
            parameters,
            round,
            outcome: measured.outcome,
            disturbed: measured.disturbed,
            load_average: manifest::load_average(),
        }
    }
}

/// What the simulator says of servers that lend each other documents; nothing unless this is asked for.
fn predict_documents(contender: &ContenderText, visitors: usize, turn: Turn) -> Result<Values> {
    let (Some(documents), Some(nodes)) = (&contender.simulated_documents, &contender.nodes) else {
        return Ok(Values::new());
    };
    let size = (nodes.count + 1, visitors);
    let rate = cluster::predict_documents(documents, size, turn.duration.as_secs())?;
    Ok([(Quantity::SimulatedRate, rate)].into())
}

/// The servers that take part.
fn names_of(experiment: &Experiment) -> Vec<&str> {
    let contenders = || experiment.contenders.iter().map(|contender| &contender.what);
    let mut names: Vec<&str> = contenders().map(|contender| contender.server.as_str()).collect();
    names.extend(contenders().filter_map(|contender| Some(&*contender.application.as_ref()?.server)));
    names.extend(contenders().filter_map(|contender| Some(&*contender.nodes.as_ref()?.server)));
    names.extend(experiment.head.origin.as_deref());
    names.sort_unstable();
    names.dedup();
    names
}

/// Warming up begins where no measured turn does.
const WARM_UP_TURN: usize = 997;
/// So often a cell is measured again.
const REPEATS_MAX: usize = 2;
/// What disturbed a cell gets this long to pass.
const PAUSE: Duration = Duration::from_millis(500);
