//! The search: halving, then neighbours, then finals.

use std::collections::{BTreeMap, VecDeque};

use baton_figures::{Better, Paired, SAMPLES_MIN};

use crate::goal::{Goal, Measured, TrialOutcome};
use crate::space::{Candidate, Space};

/// The search for better settings.
///
/// Call [`Search::poll_trial`], measure, call [`Search::handle_trial`], until there is no trial any more; then ask for
/// the [choice](Search::choice) and the [map](Search::map).
#[derive(Debug)]
pub struct Search {
    pub(crate) space: Space,
    pub(crate) present: Candidate,
    pub(crate) goal: Goal,
    budget: Budget,
    stage: Stage,
    /// What is still to be measured in this round.
    queue: VecDeque<Candidate>,
    /// How long a trial of this round takes.
    seconds: f64,
    /// What is kept for the finals.
    finals_s: f64,
    pub(crate) tried: BTreeMap<Candidate, Tried>,
}

/// How much time there is.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// For everything.
    pub total_s: f64,
    /// What a trial takes beside its measuring: to start a server and fill its caches.
    pub start_s: f64,
}

/// What to measure: the present settings and these, one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The settings.
    pub candidate: Candidate,
    /// For how long each of the two is measured.
    pub seconds: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    /// The better half of the field is measured again, for longer.
    Halving(Vec<Candidate>),
    /// Neighbours of the best are tried until none becomes the first.
    Neighbours { first: Option<Candidate>, rounds: usize },
    /// The finalists are measured again and again; the last stage.
    Finals(Vec<Candidate>),
}

/// What is known of a candidate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tried {
    /// Its numbers, and those of the present settings beside it.
    pairs: (Vec<f64>, Vec<f64>),
    /// How long the trials of these numbers were: longer ones replace shorter ones.
    seconds: f64,
    /// Why it is out.
    pub(crate) excluded: Option<TrialOutcome>,
}

/// How many are left when neighbours are tried.
const SURVIVORS: usize = 8;
/// Of how many the neighbours are tried in a round.
const PARENTS: usize = 4;
/// A search that climbs further has lost its way in the noise.
const NEIGHBOUR_ROUNDS_MAX: usize = 8;
/// How many are compared in the end.
const FINALISTS: usize = 4;
/// Pairs of each finalist: enough for an interval that one outlier does not decide.
const FINAL_PAIRS: usize = SAMPLES_MIN + 3;

/// Shares of the time: for halving, and for the finals. Neighbours have the rest.
const HALVING_SHARE: f64 = 0.45;
const FINALS_SHARE: f64 = 0.3;
/// Shorter trials measure nothing but the beginning, longer ones nothing new.
const SECONDS: (f64, f64) = (1.0, 30.0);

impl Search {
    /// A search for something better than the present settings.
    #[must_use]
    pub fn new(space: Space, present: Candidate, goal: Goal, budget: Budget) -> Self {
        let halving_s = budget.total_s * HALVING_SHARE;
        let takes = |count: usize| rungs(count) as f64 * 2.0 * count as f64 * (SECONDS.0 + budget.start_s);
        let most = space.coarse_len();
        let affordable = (1..=most).rev().find(|count| takes(*count) <= halving_s).unwrap_or(1);
        let field = space.coarse(affordable);
        let mut search = Self {
            space,
            present,
            goal,
            budget,
            stage: Stage::Halving(Vec::new()),
            queue: VecDeque::new(),
            seconds: 0.0,
            finals_s: (budget.total_s * FINALS_SHARE).max(final_s(budget)),
            tried: BTreeMap::new(),
        };
        search.begin_halving(field, halving_s);
        search
    }

    /// What to measure next; `None` once everything is decided.
    pub fn poll_trial(&mut self) -> Option<Trial> {
        loop {
            if let Some(candidate) = self.queue.pop_front() {
                // Out in an earlier pair of the finals, or what is compared with.
                let is_out = self.tried.get(&candidate).is_some_and(|tried| tried.excluded.is_some());
                if is_out || candidate == self.present {
                    continue;
                }
                return Some(Trial { candidate, seconds: self.seconds });
            }
            self.advance()?;
        }
    }

    /// Tells what a trial found, and how long it took altogether.
    pub fn handle_trial(&mut self, trial: Trial, took_s: f64, present: &Measured, outcome: TrialOutcome) {
        self.budget.total_s -= took_s;
        let tried = self.tried.entry(trial.candidate).or_default();
        if tried.seconds < trial.seconds {
            *tried = Tried { seconds: trial.seconds, ..Tried::default() };
        }
        let outcome = match outcome {
            TrialOutcome::Fair(measured) => match self.goal.forfeits(present, &measured) {
                Some(why) => TrialOutcome::Unfair(why),
                None => {
                    tried.pairs.0.push(self.goal.of(&measured));
                    tried.pairs.1.push(self.goal.of(present));
                    return;
                }
            },
            other => other,
        };
        tried.excluded = Some(outcome);
    }

    /// Goes on to the next round or stage.
    fn advance(&mut self) -> Option<()> {
        match self.stage.clone() {
            Stage::Halving(field) => {
                let ranked: Vec<_> =
                    self.ranked().into_iter().filter(|candidate| field.contains(candidate)).collect();
                if ranked.len() > SURVIVORS && !self.is_nearly_over() {
                    let kept = ranked.len().div_ceil(2).max(SURVIVORS);
                    let left_s = self.seconds * 2.0 * field.len() as f64;
                    self.begin_halving(ranked[..kept].to_vec(), left_s * rungs(kept) as f64);
                } else {
                    self.begin_neighbours(None, 0);
                }
            }
            Stage::Neighbours { first, rounds } => {
                let now = self.ranked().first().copied();
                if now == first || rounds == NEIGHBOUR_ROUNDS_MAX || self.is_nearly_over() {
                    self.begin_finals();
                } else {
                    self.begin_neighbours(now, rounds);
                }
            }
            Stage::Finals(_) => return None,
        }
        Some(())
    }

    /// A round of the halving, and as many more as its winners need, within so many seconds.
    fn begin_halving(&mut self, field: Vec<Candidate>, within_s: f64) {
        let for_each = within_s / rungs(field.len()) as f64 / (2.0 * field.len().max(1) as f64);
        self.seconds = (for_each - self.budget.start_s).clamp(SECONDS.0, SECONDS.1).max(self.seconds);
        self.queue = field.iter().copied().collect();
        self.stage = Stage::Halving(field);
    }

    /// A round of neighbours that were not tried yet; as many as there is time for.
    fn begin_neighbours(&mut self, first: Option<Candidate>, rounds: usize) {
        let parents = self.ranked().into_iter().take(PARENTS);
        let mut fresh: Vec<Candidate> = parents.flat_map(|parent| self.space.neighbours(parent)).collect();
        fresh.sort_unstable();
        fresh.dedup();
        fresh.retain(|candidate| !self.tried.contains_key(candidate));
        let time_s = self.budget.total_s - self.finals_s;
        let affordable = (time_s / (2.0 * (self.seconds + self.budget.start_s))).max(0.0) as usize;
        fresh.truncate(affordable);
        self.queue = fresh.into();
        let first = first.or_else(|| self.ranked().first().copied());
        self.stage = Stage::Neighbours { first, rounds: rounds + 1 };
    }

    /// Pairs of the best, in turn, so that all of them see the same weather.
    fn begin_finals(&mut self) {
        let affordable = (self.budget.total_s / final_s(self.budget)) as usize;
        let count = affordable.clamp(1, FINALISTS);
        let finalists: Vec<_> = self.ranked().into_iter().take(count).collect();
        let trials = (finalists.len() * FINAL_PAIRS).max(1) as f64;
        let for_each = self.budget.total_s / trials / 2.0 - self.budget.start_s;
        self.seconds = for_each.clamp(SECONDS.0, SECONDS.1);
        for candidate in &finalists {
            self.tried.insert(*candidate, Tried { seconds: self.seconds, ..Tried::default() });
        }
        self.queue = (0..FINAL_PAIRS).flat_map(|_| finalists.iter().copied()).collect();
        self.stage = Stage::Finals(finalists);
    }

    fn is_nearly_over(&self) -> bool {
        self.budget.total_s <= self.finals_s
    }

    /// Who is in, the best first; among equals the cheapest.
    pub(crate) fn ranked(&self) -> Vec<Candidate> {
        let mut ranked: Vec<(Candidate, f64)> = self
            .tried
            .iter()
            .filter(|(_, tried)| tried.excluded.is_none())
            .filter_map(|(candidate, tried)| Some((*candidate, tried.gain(self.goal.better())?)))
            .collect();
        ranked.sort_by(|(one, gain), (other, than)| {
            than.total_cmp(gain).then_with(|| one.cost().cmp(&other.cost()))
        });
        ranked.into_iter().map(|(candidate, _)| candidate).collect()
    }

    /// Who was compared in the end; until then, who would be.
    pub(crate) fn finalists(&self) -> Vec<Candidate> {
        let ranked = self.ranked();
        match &self.stage {
            Stage::Finals(finalists) => ranked.into_iter().filter(|one| finalists.contains(one)).collect(),
            _ => ranked.into_iter().take(FINALISTS).collect(),
        }
    }
}

impl Tried {
    /// Its numbers against the present ones.
    pub(crate) fn paired(&self, better: Better) -> Option<Paired> {
        Paired::of(&self.pairs.0, &self.pairs.1, better)
    }

    /// How many times better than the present settings.
    pub(crate) fn gain(&self, better: Better) -> Option<f64> {
        let ratio = self.paired(better)?.ratio.median;
        Some(if better == Better::More { ratio } else { 1.0 / ratio })
    }
}

/// What a finalist takes at least.
fn final_s(budget: Budget) -> f64 {
    2.0 * FINAL_PAIRS as f64 * (SECONDS.0 + budget.start_s)
}

/// How many rounds a halving has until few enough are left.
fn rungs(count: usize) -> usize {
    let mut rungs = 1;
    let mut left = count;
    while left > SURVIVORS {
        left = left.div_ceil(2).max(SURVIVORS);
        rungs += 1;
    }
    rungs
}
