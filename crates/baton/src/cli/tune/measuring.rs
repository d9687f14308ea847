//! A trial: a copy with the present settings and one with others, one after the other, under the same sessions.

use std::cell::Cell;
use std::time::{Duration, Instant};

use baton_figures::brief;
use baton_load::Script;
use baton_load::sessions::{self, SessionLoad, SessionSettings};
use baton_tune::{Candidate, Goal, Measured, Trial, TrialOutcome};

use baton_sys::signals::SignalQueue;
use rustix::process::{Resource, Signal, getrlimit};

use super::super::output::Failure;
use super::copy::Workshop;
use super::replayed::Replayed;
use super::variant::Variants;

/// What trials have in common.
pub(super) struct Measuring {
    workshop: Workshop,
    /// What asks for an end. Copies do not hear it: they end with their trial.
    stop: SignalQueue,
    replayed: Replayed,
    /// The requests of the log, with the pauses that fit what is offered.
    script: Script,
    /// Requests due per second.
    offered: f64,
    /// What the present settings answer at most.
    peak: f64,
    /// How many trials there were, and of which of them something is doubtful.
    trials: Cell<u32>,
    limited: Cell<u32>,
    present_unfair: Cell<u32>,
}

/// A pair.
pub(super) struct Pair {
    pub(super) present: Measured,
    pub(super) outcome: TrialOutcome,
    pub(super) took_s: f64,
}

/// What a server did, and whether its clients were served.
struct Found {
    measured: Measured,
    unfair: Option<String>,
}

/// What a trial takes beside its measuring.
pub(super) const START_S: f64 = WARM_UP.as_secs_f64() + 0.5;
/// Files are read and connections opened.
const WARM_UP: Duration = Duration::from_millis(500);
/// The mean pauses of a session together, at most.
const SESSION_S: f64 = 0.25;
/// The patience of clients. It is as much shorter than that of people as trials are shorter than their visits.
const TIMEOUT_S: f64 = 1.0;
/// For the rate, half as much again as is answered is asked for: servers differ in overload.
const OVERLOAD: f64 = 1.5;
/// For delay and memory, what is asked for can be answered.
const LOAD: f64 = 0.6;
/// The first rate when looking for the peak; it doubles until it is not answered any more.
const RATE_MIN: f64 = 250.0;
const RATE_MAX: f64 = 4_000_000.0;
/// A rate is answered if this share of it is.
const ANSWERED: f64 = 0.9;
/// So that a second in which the machine was busy is not taken for the peak.
const ATTEMPTS: usize = 3;
/// With more failures than this share, clients are not served.
const FAILURES: f64 = 0.01;

impl Measuring {
    /// Finds out what the present settings answer at most, and how much to ask for.
    pub(super) fn begin(variants: &Variants<'_>, replayed: Replayed, goal: Goal) -> Result<Self, Failure> {
        let mut measuring = Self {
            workshop: Workshop::new()?,
            stop: SignalQueue::new(&[Signal::INT.as_raw(), Signal::TERM.as_raw()])?,
            replayed,
            script: Script::default(),
            offered: 0.0,
            peak: 0.0,
            trials: Cell::default(),
            limited: Cell::default(),
            present_unfair: Cell::default(),
        };
        measuring.offer(RATE_MIN);
        while measuring.offered < RATE_MAX && measuring.is_answered(variants)? {
            measuring.offer(2.0 * measuring.offered);
        }
        let share = if goal == Goal::Rate { OVERLOAD } else { LOAD };
        measuring.offer(share * measuring.peak);
        measuring.limited.set(0);
        Ok(measuring)
    }

    /// Whether the present settings answer what is offered, in one of a few attempts.
    fn is_answered(&mut self, variants: &Variants<'_>) -> Result<bool, Failure> {
        for _ in 0..ATTEMPTS {
            self.go_on()?;
            let found = self.found(variants, variants.present(), 1.0).map_err(Failure)?;
            self.peak = self.peak.max(found.measured.rate);
            if found.measured.rate >= ANSWERED * self.offered {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// # Errors
    /// The search is to end.
    fn go_on(&self) -> Result<(), Failure> {
        match self.stop.next()? {
            Some(_) => Err(Failure("stopped before the search was over: nothing is advised".into())),
            None => Ok(()),
        }
    }

    /// Time runs faster in the replay than in the log, and so do the pauses of clients. They run faster still if sessions
    /// would not fit into a trial: its first second would see nothing but beginnings.
    fn offer(&mut self, rate: f64) {
        let script = &self.replayed.script;
        let pauses_ms: u64 = script.steps().iter().map(|step| u64::from(step.pause_ms)).sum();
        let session_s = pauses_ms as f64 / 1e3 / script.session_count() as f64;
        let faster = (self.replayed.rate / rate).min(SESSION_S / session_s.max(SESSION_S));
        self.script = script.clone().with_pauses(faster);
        self.offered = rate;
    }

    /// What is offered, and why.
    pub(super) fn words(&self) -> String {
        format!(
            "The present settings answer up to {} requests/s on this machine. Trials ask for {}, as sessions of the log.",
            brief(self.peak.round()),
            brief(self.offered.round())
        )
    }

    /// What makes the result doubtful.
    pub(super) fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let (trials, limited) = (self.trials.get(), self.limited.get());
        if 2 * limited > trials {
            doubts.push(format!(
                "In {limited} of {trials} measurements the load generator was the limit: differences between servers may \
                 be larger than shown."
            ));
        }
        if self.present_unfair.get() > 0 {
            doubts.push(format!(
                "With the present settings some clients were not served in {} trials.",
                self.present_unfair.get()
            ));
        }
        doubts
    }

    /// Measures a pair; which of the two comes first changes from trial to trial.
    ///
    /// # Errors
    /// The present settings cannot be measured, or the search is to end.
    pub(super) fn pair(&self, variants: &Variants<'_>, trial: &Trial) -> Result<Pair, Failure> {
        self.go_on()?;
        let begin = Instant::now();
        let found = |candidate: Candidate| self.found(variants, candidate, trial.seconds);
        let is_present_first = self.trials.get() % 4 < 2;
        let (present, other) = if is_present_first {
            let present = found(variants.present());
            (present, found(trial.candidate))
        } else {
            let other = found(trial.candidate);
            (found(variants.present()), other)
        };
        let present = present.map_err(Failure)?;
        if present.unfair.is_some() {
            self.present_unfair.set(self.present_unfair.get() + 1);
        }
        let outcome = match other {
            Ok(Found { unfair: Some(why), .. }) => TrialOutcome::Unfair(why),
            Ok(Found { measured, .. }) => TrialOutcome::Fair(measured),
            Err(why) => TrialOutcome::Failed(why),
        };
        Ok(Pair { present: present.measured, outcome, took_s: begin.elapsed().as_secs_f64() })
    }

    fn found(&self, variants: &Variants<'_>, candidate: Candidate, seconds: f64) -> Result<Found, String> {
        let copy = self.workshop.start(&variants.toml(candidate, &self.workshop.control_socket()))?;
        let settings = SessionSettings {
            address: copy.address,
            load: SessionLoad {
                requests_per_second: self.offered,
                timeout_s: TIMEOUT_S,
                thinking_counts: false,
                connections: connections_max(),
                clients: CLIENTS,
                threads: 1,
            },
            first: 0,
            warm_up: WARM_UP,
            duration: Duration::from_secs_f64(seconds),
            sleep: true,
        };
        let report = sessions::run(&settings, &self.script).map_err(|error| format!("{error:#}"))?;
        self.trials.set(self.trials.get() + 1);
        if report.client_limited() {
            self.limited.set(self.limited.get() + 1);
        }
        let first = || report.first_failure.as_deref().unwrap_or("no answer came in time");
        if report.requests == 0 {
            return Err(format!("a copy answered nothing: {}", first()));
        }
        let failed = report.failed() as f64 / (report.failed() + report.requests) as f64;
        let refused = (failed > FAILURES)
            .then(|| format!("{:.0} % of the requests failed, the first: {}", 100.0 * failed, first()));
        let measured = Measured {
            rate: report.rate(),
            p99_ms: report.latencies.us(0.99) / 1e3,
            memory_mib: copy.memory_mib(),
        };
        let unfair = || report.unfair().first().map(ToString::to_string);
        Ok(Found { measured, unfair: refused.or_else(unfair) })
    }
}

/// Connections of the generator at a time: as many as its descriptors allow, up to two thirds of the ports.
fn connections_max() -> usize {
    const CONNECTIONS_MAX: u64 = 20_000;
    const OTHER_DESCRIPTORS: u64 = 1_000;
    let descriptors = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    descriptors.saturating_sub(OTHER_DESCRIPTORS).clamp(1, CONNECTIONS_MAX) as usize
}

/// As in Harji's fairness: each has its own part of the sessions.
const CLIENTS: usize = 8;

impl Pair {
    /// What was found, for the terminal.
    pub(super) fn words(&self, goal: Goal) -> String {
        match &self.outcome {
            TrialOutcome::Fair(measured) => {
                let (ours, present) = (goal.of(measured), goal.of(&self.present));
                format!("{:.0} % of the present settings", 100.0 * ours / present)
            }
            TrialOutcome::Unfair(why) => format!("unfair: {why}"),
            TrialOutcome::Failed(why) => format!("failed: {why}"),
        }
    }
}
