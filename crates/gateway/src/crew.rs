//! How many requests an application is given at a time while it could have more, and whether it is interrupted.
//!
//! Processes that compute make nothing faster by being many: they share CPUs, and take each other's pages out of their
//! caches. Processes that wait, for a database perhaps, have to be many. Of which kind an application is nobody tells, and it
//! may change; so it is tried:
//!
//! ```text
//!   limit   8 ┌──┐  ┌──┐  ┌──┐  ┌──┐
//!           4 ┘  └──┘  └──┘  └──┘  └──┬──┐  ┌ ─        epochs of one limit and of the other
//!           2          trial          └──┘──┘          by turns; the better one is kept
//! ```
//!
//! Better is what answers more in the same time. The other limit is at most half of what there is at a time: if the
//! application waits for something, it cannot but answer less.
//!
//! In the same way it is tried whether more is answered if the loop does not interrupt the application: whatever wakes it,
//! a piece of a response or somebody's next request, it goes on only when the process at work has nothing to do, or has
//! used up its turn on the CPU.
//!
//! Nobody waits in vain. A request that is not answered within some milliseconds does not count any more, as it presumably
//! waits for something other than a CPU; and if others have waited for their turn because of it, the limit is doubled.
//! Applications that answer slower than that, or few requests, are left alone altogether.

use std::collections::VecDeque;

use crate::connections::ConnectionId;

/// How one pool's application is treated, and what is known of it.
#[derive(Debug)]
pub(crate) struct Crew {
    way: Way,
    most: usize,
    /// Requests that count, in the order in which they were given away, and since when.
    young: VecDeque<(ConnectionId, u64)>,
    epoch: Epoch,
    trial: Option<Trial>,
    next_trial_ms: u64,
    /// For how long nothing is tried after a trial that changes nothing.
    pause_ms: u64,
    /// What the next trial is of.
    change: Change,
    /// When the last answer came, and the last while somebody waited.
    answered_ms: u64,
    crowded_ms: u64,
}

/// How the application is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    /// Requests that may be with it at a time. [`Crew::most`]: there is no limit.
    limit: usize,
    /// Whether the loop lets it finish before it goes on itself.
    defers: bool,
}

/// In what a way may differ from another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// Half as many at a time.
    Fewer,
    /// Not to be interrupted, or to be so again.
    Deference,
    /// Twice as many.
    More,
}

/// What is counted while the application is treated in one way.
#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    since_ms: u64,
    answered: usize,
    /// Requests with the application, added up over all answers.
    given: usize,
    /// The same with those that wait for it.
    crowd: usize,
}

/// A comparison of the way with another one.
#[derive(Clone, Copy, Debug)]
struct Trial {
    other: Way,
    is_others_epoch: bool,
    /// Milliseconds per answer in the last epoch of the way itself.
    pace: f64,
    pairs: u32,
    /// In how many more pairs of epochs the other was better than it was not.
    lead: i32,
}

impl Crew {
    /// No limit yet for an application that has `most` connections at a time; for ever, if it is not to be looked for.
    pub(crate) fn new(most: usize, is_wanted: bool) -> Self {
        Self {
            way: Way { limit: most, defers: false },
            most,
            young: VecDeque::new(),
            epoch: Epoch::default(),
            trial: None,
            next_trial_ms: if is_wanted { 0 } else { u64::MAX },
            pause_ms: PAUSE_MIN_MS,
            change: Change::Fewer,
            answered_ms: 0,
            crowded_ms: 0,
        }
    }

    #[cfg(test)]
    pub(crate) fn with_limit(most: usize, limit: usize) -> Self {
        Self { way: Way { limit, defers: false }, ..Self::new(most, true) }
    }

    /// How many requests may be with the application at a time, if there is a limit.
    pub(crate) fn limit(&self) -> Option<usize> {
        (self.way.limit < self.most).then_some(self.way.limit)
    }

    /// Whether the loop is to let the application finish before it goes on itself, if it is known to be better.
    pub(crate) fn defers(&self) -> bool {
        self.way.defers
    }

    /// Whether it is to do so now: while there is nothing else to be done than what is waited for.
    pub(crate) fn defers_now(&self, now_ms: u64) -> bool {
        self.way_now().defers && now_ms < self.crowded_ms + IDLE_MS
    }

    /// Whether somebody who asks for it may be given to the application.
    pub(crate) fn may_begin(&mut self, now_ms: u64) -> bool {
        while let Some(&(_, since_ms)) = self.young.front()
            && since_ms + STALL_MS <= now_ms
        {
            // What began before this limit held had to share its CPU with more.
            let is_stall = self.is_full() && since_ms >= self.epoch.since_ms;
            self.young.pop_front();
            if is_stall {
                self.handle_stall(now_ms);
            }
        }
        !self.is_full()
    }

    /// Whether there are as many requests with the application as may be.
    pub(crate) fn is_full(&self) -> bool {
        self.young.len() >= self.way_now().limit
    }

    /// When somebody may begin although nobody has been answered.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        let (_, since_ms) = self.young.front().filter(|_| self.is_full())?;
        Some(since_ms + STALL_MS)
    }

    /// A request is given to the application on a connection.
    pub(crate) fn begin(&mut self, connection: ConnectionId, now_ms: u64) {
        if self.young.is_empty() && now_ms >= self.answered_ms + IDLE_MS {
            self.epoch = Epoch::begin(now_ms);
        }
        self.young.push_back((connection, now_ms));
    }

    /// It has been answered, while so many waited.
    pub(crate) fn end(&mut self, connection: ConnectionId, waiting: usize, now_ms: u64) {
        self.epoch.answered += 1;
        self.epoch.given += self.young.len();
        self.epoch.crowd += self.young.len() + waiting;
        self.forget(connection);
        self.answered_ms = now_ms;
        if waiting > 0 {
            self.crowded_ms = now_ms;
        }
        if now_ms >= self.epoch.since_ms + EPOCH_MS {
            self.end_epoch(now_ms);
        } else if self.is_much_worse(now_ms) {
            // An application that waits for something answers half as much: those who wait for it have waited long enough.
            self.reject(now_ms);
            self.epoch = Epoch::begin(now_ms);
        }
    }

    /// Nothing comes of what a connection was given.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        if let Some(at) = self.young.iter().position(|(its, _)| *its == connection) {
            self.young.remove(at);
        }
    }

    /// Whether it is to do so now and then at least, as it is being tried.
    pub(crate) fn defers_at_times(&self) -> bool {
        self.way.defers || self.trial.is_some_and(|trial| trial.other.defers)
    }

    fn way_now(&self) -> Way {
        match self.trial {
            Some(Trial { other, is_others_epoch: true, .. }) => other,
            _ => self.way,
        }
    }

    fn end_epoch(&mut self, now_ms: u64) {
        let epoch = std::mem::replace(&mut self.epoch, Epoch::begin(now_ms));
        let crowd = epoch.mean_crowd();
        match (epoch.pace(now_ms), self.trial) {
            // It may be so slow because it waits; then only more can make it faster.
            (None, _) if crowd > self.way_now().limit => self.handle_stall(now_ms),
            (None, _) => self.leave_alone(now_ms),
            (Some(pace), None) if now_ms >= self.next_trial_ms => self.begin_trial(&epoch, pace),
            (Some(_), None) => {}
            // Neither of the two limits has held anybody up.
            (Some(_), Some(trial)) if crowd <= trial.other.limit.min(self.way.limit) => {
                self.give_up_trial(now_ms);
            }
            (Some(pace), Some(trial)) => self.judge(trial, pace, now_ms),
        }
    }

    /// An epoch of a trial has come to its end.
    fn judge(&mut self, trial: Trial, pace: f64, now_ms: u64) {
        if !trial.is_others_epoch {
            self.trial = Some(Trial { pace, is_others_epoch: true, ..trial });
            return;
        }
        let pairs = trial.pairs + 1;
        let lead = trial.lead + if pace < trial.pace { 1 } else { -1 };
        if lead >= LEAD {
            self.trial = None;
            if trial.other.limit == self.way.limit {
                self.change = self.change.next();
            }
            self.way = trial.other;
            self.pause_ms = PAUSE_MIN_MS;
            self.next_trial_ms = now_ms;
        } else if lead <= -LEAD || pairs == PAIRS_MAX {
            self.reject(now_ms);
        } else {
            self.trial = Some(Trial { is_others_epoch: false, pairs, lead, ..trial });
        }
    }

    /// Whether the other way, with fewer requests at a time, answers so much less that an epoch need not come to its end.
    fn is_much_worse(&self, now_ms: u64) -> bool {
        let fewer = self.trial.filter(|trial| trial.is_others_epoch && trial.other.limit < self.way.limit);
        let elapsed_ms = now_ms.saturating_sub(self.epoch.since_ms);
        fewer.is_some_and(|trial| {
            let expected = elapsed_ms as f64 / trial.pace;
            elapsed_ms >= LOOK_MS
                && expected >= ANSWERS_MIN as f64
                && (self.epoch.answered as f64) < MUCH_WORSE * expected
        })
    }

    fn begin_trial(&mut self, epoch: &Epoch, pace: f64) {
        let Way { limit, defers } = self.way;
        let other = match self.change {
            // There may be fewer processes than the limit allows for.
            Change::Fewer => Way { limit: limit.min(epoch.mean_given()) / 2, defers },
            Change::More => Way { limit: (limit * 2).min(self.most), defers },
            Change::Deference => Way { limit, defers: !defers },
        };
        let is_another = other.limit > 0 && other != self.way;
        if is_another && epoch.mean_crowd() > other.limit.min(limit) {
            self.trial = Some(Trial { other, is_others_epoch: true, pace, pairs: 0, lead: 0 });
        } else {
            self.change = self.change.next();
        }
    }

    fn give_up_trial(&mut self, now_ms: u64) {
        if self.trial.take().is_some() {
            self.next_trial_ms = now_ms + self.pause_ms;
        }
    }

    /// The other way is no better.
    fn reject(&mut self, now_ms: u64) {
        self.trial = None;
        self.change = self.change.next();
        self.next_trial_ms = now_ms + self.pause_ms;
        self.pause_ms = (self.pause_ms * 2).min(PAUSE_MAX_MS);
    }

    /// Somebody waits for their turn because of a request that may not use a CPU at all.
    fn handle_stall(&mut self, now_ms: u64) {
        if self.trial.is_some_and(|trial| trial.is_others_epoch && trial.other.limit <= self.way.limit) {
            self.reject(now_ms);
        } else if self.way_now().limit == self.most {
            return self.leave_alone(now_ms);
        } else {
            // What was found out before holds no longer.
            self.way = Way { limit: (self.way_now().limit * 2).min(self.most), defers: false };
            self.trial = None;
            self.change = Change::More;
            self.pause_ms = PAUSE_MIN_MS;
            self.next_trial_ms = now_ms + PAUSE_MIN_MS;
        }
        self.epoch = Epoch::begin(now_ms);
    }

    /// There is too little to be told, or gained, for whatever reason.
    fn leave_alone(&mut self, now_ms: u64) {
        self.way.defers = false;
        self.give_up_trial(now_ms);
    }
}

impl Change {
    fn next(self) -> Self {
        match self {
            Self::Fewer => Self::Deference,
            Self::Deference => Self::More,
            Self::More => Self::Fewer,
        }
    }
}

impl Epoch {
    fn begin(now_ms: u64) -> Self {
        Self { since_ms: now_ms, ..Self::default() }
    }

    /// Milliseconds per answer. `None` if there were too few to tell.
    fn pace(&self, now_ms: u64) -> Option<f64> {
        (self.answered >= ANSWERS_MIN).then(|| (now_ms - self.since_ms) as f64 / self.answered as f64)
    }

    fn mean_given(&self) -> usize {
        self.given / self.answered.max(1)
    }

    fn mean_crowd(&self) -> usize {
        self.crowd / self.answered.max(1)
    }
}

/// A request that takes longer presumably waits for something; one that computes for longer has been switched away from
/// by the kernel, and its pages are no longer in the caches anyway. Clocks of loops advance in steps of up to 10 ms.
const STALL_MS: u64 = 12;

/// After how long an epoch may end because far less is answered in it, and how much less that is. What was under way when it
/// began is answered in it, too.
const LOOK_MS: u64 = 10;
const MUCH_WORSE: f64 = 0.7;

/// How long an epoch is at the least. As each ends with a step of the clock, its length is known well enough.
const EPOCH_MS: u64 = 50;

/// After how long without a request what was counted before is forgotten; and after how long without anybody in the queue
/// there may be something else to be done.
const IDLE_MS: u64 = 20;

/// How many answers an epoch must have: with fewer requests nothing can be told, or gained.
const ANSWERS_MIN: usize = 16;

/// By how many pairs of epochs more one of the ways has to be better, and after how many pairs it is not.
const LEAD: i32 = 4;
const PAIRS_MAX: u32 = 12;

/// How long nothing is tried after a trial that has changed nothing: each in a row doubles it.
const PAUSE_MIN_MS: u64 = 1_000;
const PAUSE_MAX_MS: u64 = 16_000;

#[cfg(test)]
mod tests;
