//! Thresholds that fit the nodes: T_low and T_high, learnt from what the nodes answer.
//!
//! The source names a training phase for T_low, and derives T_high from a tolerated difference in delay, D, and the mean
//! service time, R (Pai, 1999, section 3.1.4). Here training goes on for as long as requests wait for the admission limit S.
//! The limit *breathes*: a round is four quarters with thresholds that are a little lower, higher, higher, lower. Both halves
//! see the same requests, and a drift, such as caches that fill, cancels out.
//!
//! ```text
//!   elasticity = how much more is answered / how much more is under way, both as logarithms
//!     near 1    nothing queues at the nodes: they take more
//!     near 0    more load only waits longer: they need less
//! ```
//!
//! Only loads and the time are looked at. So it makes no difference whether a node waits for its disk, for an application or for
//! slow clients, nor whether requests are relayed or handed over. While no request waits, nothing is learnt, and nothing depends
//! on it.

use crate::thresholds::{Fit, Fits, Seen, Thresholds};
use crate::{Cluster, Decision, NodeId, Policy, PolicySettings, Target, Time, admission_limit};

/// Gives a policy under [`crate::Admission`] thresholds that fit the nodes.
pub struct Fitted {
    inner: Box<dyn Policy + Send>,
    fits: Fits,
    /// Those around which the limit breathes.
    base: Thresholds,
    seen: Option<Seen>,
    quarter: Quarter,
    round: Round,
    elasticity_sum: f32,
    rounds: u32,
    /// The shortest mean time that an answer took, in seconds; it rises slowly, so that it is forgotten.
    shortest_s: f32,
}

/// A quarter of a round, as far as it has come.
#[derive(Clone, Copy, Debug, Default)]
struct Quarter {
    epoch: u64,
    since: Time,
    load_before: u64,
    begun: u64,
    load_sum: u64,
    looks: u64,
    /// Whether all that had begun under former thresholds has ended.
    is_settled: bool,
}

/// The quarters of a round, by [`Round::HALF`]: sums of logarithms.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    quarters: usize,
    loads: [f32; 2],
    rates: [f32; 2],
    is_spoilt: bool,
}

impl Fitted {
    /// This policy, which obeys [`Policy::handle_thresholds`].
    pub fn new(inner: Box<dyn Policy + Send>, settings: &PolicySettings, fits: Fits) -> Self {
        Self {
            inner,
            fits,
            base: settings.thresholds(),
            seen: None,
            quarter: Quarter::default(),
            round: Round::default(),
            elasticity_sum: 0.0,
            rounds: 0,
            shortest_s: f32::INFINITY,
        }
    }

    /// The thresholds of the current quarter.
    fn used(&self) -> Thresholds {
        let factor = if self.round.is_high() { BREATH } else { 1.0 / BREATH };
        self.scaled(self.base.t_high * factor)
    }

    /// Both thresholds, by the higher one.
    fn scaled(&self, t_high: f32) -> Thresholds {
        let t_low = self.fits.t_low.map_or(t_high / APART, |t_low| t_low as f32);
        Thresholds { t_low: t_low.min(t_high - 1.0), t_high }
    }

    fn look(&mut self, cluster: &Cluster, now: Time) {
        let (load, quarter) = (cluster.total_load(), &mut self.quarter);
        let ended = quarter.look(load);
        if quarter.epoch != cluster.epoch() {
            *quarter = Quarter { epoch: cluster.epoch(), ..Quarter::new(load, now) };
            self.round.is_spoilt = true;
        } else if !quarter.is_settled && ended >= quarter.load_before {
            *quarter = Quarter { epoch: quarter.epoch, is_settled: true, ..Quarter::new(load, now) };
        } else if quarter.is_settled && quarter.is_long_enough(ended, now) {
            let quarter = *quarter;
            self.quarter = Quarter { epoch: quarter.epoch, ..Quarter::new(load, now) };
            self.handle_quarter(&quarter, ended, cluster, now);
        }
    }

    fn handle_quarter(&mut self, quarter: &Quarter, ended: u64, cluster: &Cluster, now: Time) {
        let load = quarter.load_sum as f32 / quarter.looks as f32;
        let rate = ended as f32 * 1e6 / (now - quarter.since) as f32;
        self.shortest_s = self.shortest_s.min(load / rate);
        // Where the limit does not bind, load comes and goes as clients do.
        self.round.is_spoilt |= load < admission_limit(self.used(), cluster) as f32 * FULL;
        self.round.add(load, rate);
        if self.round.quarters == Round::HALF.len() {
            let round = std::mem::take(&mut self.round);
            self.handle_round(&round, cluster.total_capacity());
        }
        self.inner.handle_thresholds(self.used());
    }

    fn handle_round(&mut self, round: &Round, capacity: f32) {
        let [[low, high], [rate_low, rate_high]] = [round.loads, round.rates];
        if round.is_spoilt || high - low < LOAD_APART_MIN {
            return;
        }
        self.rounds += 1;
        self.elasticity_sum += (rate_high - rate_low) / (high - low);
        let elasticity = self.elasticity_sum / self.rounds as f32;
        let is_clear = self.rounds >= ROUNDS_CLEAR && elasticity > CLEAR;
        if is_clear || self.rounds >= ROUNDS {
            let delay_s = ((low + high - rate_low - rate_high) / 4.0).exp();
            let answers_per_s = ((rate_low + rate_high) / 4.0).exp() / capacity;
            self.decide(Seen { elasticity, answers_per_s }, delay_s);
        }
    }

    /// Takes a step, or none. `delay_s`: the mean time of an answer.
    fn decide(&mut self, seen: Seen, delay_s: f32) {
        (self.rounds, self.elasticity_sum) = (0, 0.0);
        // Of several front-ends, each gains by a longer queue, at the others' cost. Delay tells: nodes that take more need no longer.
        let step = match seen.elasticity {
            ..FLAT => 1.0 / STEP,
            STEEP.. if delay_s <= self.shortest_s * DELAY_TIMES_MAX => STEP,
            _ => 1.0,
        };
        self.shortest_s *= FORGETTING;
        // T_high = (T_low + D / R) / 2, with T_low in T_high.
        let services = self.fits.delay_us as f32 / 1e6 * seen.answers_per_s;
        let t_high_max = services / (2.0 - 1.0 / APART);
        let t_high_min = self.fits.t_low.map_or(T_HIGH_MIN, |t_low| t_low as f32 + 1.0);
        let t_high = (self.base.t_high * step).min(t_high_max).max(t_high_min);
        (self.base, self.seen) = (self.scaled(t_high), Some(seen));
    }
}

impl Quarter {
    fn new(load: u64, now: Time) -> Self {
        Self { since: now, load_before: load, ..Self::default() }
    }

    /// How many requests have ended so far.
    fn look(&mut self, load: u64) -> u64 {
        self.looks += 1;
        self.load_sum += load;
        (self.load_before + self.begun).saturating_sub(load)
    }

    fn is_long_enough(&self, ended: u64, now: Time) -> bool {
        ended >= (2 * self.load_before).max(ANSWERS_MIN) && now >= self.since + QUARTER_US
    }
}

impl Round {
    /// Which quarters are low (0) and high (1).
    const HALF: [usize; 4] = [0, 1, 1, 0];

    fn is_high(&self) -> bool {
        Self::HALF[self.quarters] == 1
    }

    fn add(&mut self, load: f32, rate: f32) {
        let half = Self::HALF[self.quarters];
        self.loads[half] += load.ln();
        self.rates[half] += rate.ln();
        self.quarters += 1;
    }
}

impl Policy for Fitted {
    fn choose(&mut self, target: Target, cluster: &Cluster, now: Time) -> Decision {
        self.look(cluster, now);
        let decision = self.inner.choose(target, cluster, now);
        self.quarter.begun += u64::from(decision.node.is_some());
        decision
    }

    fn completed(&mut self, target: Target, node: NodeId, bytes: u64, service_us: u64, now: Time) {
        self.inner.completed(target, node, bytes, service_us, now);
    }

    fn handle_membership(&mut self, cluster: &Cluster, now: Time) {
        self.inner.handle_membership(cluster, now);
    }

    fn fit(&self) -> Option<Fit> {
        Some(Fit { thresholds: self.base, seen: self.seen })
    }
}

/// T_high in T_low: published are 65 and 25.
pub(crate) const APART: f32 = 2.6;
/// How far a quarter is from the middle: high ones are half as much again as low ones.
const BREATH: f32 = 1.22;
/// The same is the step of a decision.
const STEP: f32 = 1.5;
/// Below this elasticity, less load answers as much.
const FLAT: f32 = 0.05;
/// From this elasticity on, nodes take more. (At a half, answers divided by their delay are at their most: Kleinrock's knee.)
const STEEP: f32 = 0.3;
/// The rounds of a decision, and the fewest if it is clear.
const ROUNDS: u32 = 4;
const ROUNDS_CLEAR: u32 = 2;
const CLEAR: f32 = 0.6;
/// A queue that doubles the delay of answers is long enough, whatever it brings.
const DELAY_TIMES_MAX: f32 = 2.0;
const FORGETTING: f32 = 1.01;
/// The part of the limit that is under way while requests wait for it.
const FULL: f32 = 0.9;
/// The least difference of loads, as a sum of two logarithms, that says something; `BREATH` makes 0.8.
const LOAD_APART_MIN: f32 = 0.3;
/// Answers of a quarter at the least: a rate is known to a twentieth.
const ANSWERS_MIN: u64 = 512;
/// Loops of a server report in batches.
const QUARTER_US: Time = 100_000;
/// Below a T_low of 8, paths are moved for chance alone.
const T_HIGH_MIN: f32 = 8.0 * APART;
