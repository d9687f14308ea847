//! What the process does next, and when: a machine without I/O.
//!
//! ```text
//!   configure, handle_… ──► Planner ──next──► Order(which)            a certificate is missing, or due for renewal
//!        (the time is passed in)              AskRenewalInfo(which)   when the authority wants it renewed
//!                                             Wait(until)
//! ```
//!
//! An authority that does not answer makes everything wait, from a minute to an hour. A certificate that it refuses
//! waits alone, from five minutes to a day, or as long as the authority says. Of two certificates that are due, the one
//! that expires earlier comes first, and a missing one before both.

mod backoff;
mod renewal;
#[cfg(test)]
mod simulation;

use std::collections::BTreeMap;
use std::time::Duration;

use self::backoff::Backoff;
use self::renewal::Renewal;
pub use self::renewal::{Validity, Window};
use crate::time::UnixTime;

/// The next thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlannerAction {
    /// Order a certificate. After that, call [`Planner::handle_issued`] or [`Planner::handle_failure`].
    Order {
        /// Which one.
        name: String,
        /// How often this has failed since the last success.
        failures: u32,
    },
    /// Ask when to renew a certificate. After that, call [`Planner::handle_renewal_info`] or
    /// [`Planner::handle_failure`].
    AskRenewalInfo {
        /// Which one.
        name: String,
    },
    /// Nothing is due before that moment.
    Wait {
        /// At most [`LONGEST_SLEEP`] away.
        until: UnixTime,
    },
}

/// Whom a failure makes wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureScope {
    /// The authority does not work, or cannot be reached: all wait.
    Authority,
    /// The authority works, but did not issue this certificate.
    Certificate,
    /// A rate limit was exceeded. The others wait for a moment only: their limits may be different ones.
    RateLimit,
}

/// Plans for all certificates of one authority. Each is known by the first of its names.
///
/// Methods: `configure` and `handle_*` for input, `next` for output; `status` asks.
#[derive(Debug)]
pub struct Planner {
    plans: BTreeMap<String, Plan>,
    authority: Backoff,
    random: fastrand::Rng,
}

#[derive(Debug)]
struct Plan {
    /// `None` as long as no certificate with all the names is there.
    renewal: Option<(Validity, Renewal)>,
    /// When to ask for the window again.
    ask_at: UnixTime,
    /// A wrong clock, here or there, must not make each certificate due as soon as it is issued.
    rest_until: UnixTime,
    /// Of orders.
    backoff: Backoff,
}

/// What is planned for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanStatus {
    /// When it is ordered, if nothing changes before.
    pub order_at: UnixTime,
    /// How often the order has failed since the last success.
    pub failures: u32,
}

impl Planner {
    /// Plans nothing yet. `seed` spreads the moments of different servers.
    pub fn new(seed: u64) -> Self {
        Self { plans: BTreeMap::new(), authority: Backoff::default(), random: fastrand::Rng::with_seed(seed) }
    }

    /// These certificates are wanted from now on: the name of each, and the validity of the stored one if it has all the
    /// names. What is known about others is forgotten; waits after failures go on.
    pub fn configure(&mut self, wanted: impl IntoIterator<Item = (String, Option<Validity>)>) {
        let mut old = std::mem::take(&mut self.plans);
        for (name, stored) in wanted {
            let plan = match (old.remove(&name), stored) {
                (Some(plan), stored) if plan.renewal.map(|(validity, _)| validity) == stored => plan,
                (Some(plan), _) => Plan { backoff: plan.backoff, ..self.plan(stored) },
                (None, _) => self.plan(stored),
            };
            self.plans.insert(name, plan);
        }
    }

    fn plan(&mut self, stored: Option<Validity>) -> Plan {
        let renewal = stored.map(|validity| (validity, Renewal::by_age(validity, &mut self.random)));
        Plan { renewal, ask_at: UnixTime(0), rest_until: UnixTime(0), backoff: Backoff::default() }
    }

    /// The authority issued a certificate.
    pub fn handle_issued(&mut self, name: &str, validity: Validity, now: UnixTime) {
        self.authority.note_success();
        let renewal = Renewal::by_age(validity, &mut self.random);
        if let Some(plan) = self.plans.get_mut(name) {
            plan.renewal = Some((validity, renewal));
            plan.ask_at = now;
            plan.backoff.note_success();
            plan.rest_until = now.plus((validity.life() / 6).min(REST_MAX));
        }
    }

    /// The authority suggests when to renew a certificate, and wants to be asked again after `ask_after`.
    pub fn handle_renewal_info(&mut self, name: &str, window: Window, ask_after: Duration, now: UnixTime) {
        self.authority.note_success();
        if let Some(plan) = self.plans.get_mut(name) {
            plan.ask_at = now.plus(ask_after.clamp(ASK_AFTER_MIN, ASK_AFTER_MAX));
            if let Some((_, renewal)) = &mut plan.renewal {
                renewal.suggest(window, &mut self.random);
            }
        }
    }

    /// The authority has no suggestion for a certificate, or cannot make any.
    pub fn handle_no_renewal_info(&mut self, name: &str, now: UnixTime) {
        if let Some(plan) = self.plans.get_mut(name) {
            plan.ask_at = now.plus(ASK_AFTER_FAILURE);
        }
    }

    /// An order or a question failed, and the authority wants no other for `retry_after` (zero if it did not say).
    pub fn handle_failure(&mut self, name: &str, scope: FailureScope, retry_after: Duration, now: UnixTime) {
        if scope != FailureScope::Certificate {
            let all = if scope == FailureScope::Authority { retry_after } else { Duration::ZERO };
            let all = all.min(PAUSE_MAX);
            self.authority.note_failure(now, AUTHORITY_WAITS, all, &mut self.random);
        }
        if scope != FailureScope::Authority
            && let Some(plan) = self.plans.get_mut(name)
        {
            let life = plan.renewal.map_or(Duration::MAX, |(validity, _)| validity.life());
            // With a life of six days, a wait of a day would let few attempts happen before the end.
            let longest = (life / 20).clamp(SHORTEST_BACKOFF, LONGEST_BACKOFF);
            let retry_after = retry_after.min(RETRY_AFTER_MAX);
            plan.backoff.note_failure(now, (SHORTEST_BACKOFF, longest), retry_after, &mut self.random);
        }
    }

    /// What to do now.
    pub fn next(&mut self, now: UnixTime) -> PlannerAction {
        self.authority.clamp(now, PAUSE_MAX);
        for plan in self.plans.values_mut() {
            plan.backoff.clamp(now, RETRY_AFTER_MAX);
            plan.ask_at = plan.ask_at.min(now.plus(ASK_AFTER_MAX));
            plan.rest_until = plan.rest_until.min(now.plus(REST_MAX));
        }
        let paused = self.authority.until();
        let due = |(_, plan): &(&String, &Plan)| plan.order_at().max(paused) <= now;
        let expires = |plan: &Plan| plan.renewal.map_or(UnixTime(0), |(validity, _)| validity.not_after);
        if let Some((name, plan)) = self.plans.iter().filter(due).min_by_key(|(_, plan)| expires(plan)) {
            return PlannerAction::Order { name: name.clone(), failures: plan.backoff.failures() };
        }
        let asks = |plan: &Plan| plan.renewal.map(|_| plan.ask_at.max(paused));
        if let Some((name, _)) = self.plans.iter().find(|(_, plan)| asks(plan).is_some_and(|at| at <= now)) {
            return PlannerAction::AskRenewalInfo { name: name.clone() };
        }
        let moments = self
            .plans
            .values()
            .flat_map(|plan| [Some(plan.order_at().max(paused)), asks(plan)].into_iter().flatten());
        PlannerAction::Wait {
            until: moments.min().unwrap_or(UnixTime(u64::MAX)).min(now.plus(LONGEST_SLEEP)),
        }
    }

    /// What is planned for a certificate.
    pub fn status(&self, name: &str) -> Option<PlanStatus> {
        let plan = self.plans.get(name)?;
        let order_at = plan.order_at().max(self.authority.until());
        Some(PlanStatus { order_at, failures: plan.backoff.failures() })
    }
}

impl Plan {
    fn order_at(&self) -> UnixTime {
        let due = self.renewal.map_or(UnixTime(0), |(_, renewal)| renewal.at());
        due.max(self.rest_until).max(self.backoff.until())
    }
}

/// The waits while the authority does not work: it should not take a day to notice that it works again.
const AUTHORITY_WAITS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(3600));
/// The longest `Retry-After` of an authority that does not work.
const PAUSE_MAX: Duration = Duration::from_secs(86_400);

/// The first wait after a refusal: Let's Encrypt allows five failed validations per name and hour.
const SHORTEST_BACKOFF: Duration = Duration::from_secs(5 * 60);
/// The longest wait after refusals without `Retry-After`.
const LONGEST_BACKOFF: Duration = Duration::from_secs(86_400);
/// The longest `Retry-After` that is believed: Let's Encrypt's limits are refilled within a week.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(7 * 86_400);

/// The longest time for which a new certificate is not renewed, whatever the authority suggests.
const REST_MAX: Duration = Duration::from_secs(86_400);

/// RFC 9773, 4.3.2: an answer that wants to be fetched again sooner or later than that is wrong.
const ASK_AFTER_MIN: Duration = Duration::from_secs(60);
const ASK_AFTER_MAX: Duration = Duration::from_secs(86_400);
/// RFC 9773, 4.3.3: the wait after an error that is not temporary.
const ASK_AFTER_FAILURE: Duration = Duration::from_secs(6 * 3600);

/// The clock may be set at any time: the planner is asked again after an hour, whatever it said.
pub const LONGEST_SLEEP: Duration = Duration::from_secs(3600);
