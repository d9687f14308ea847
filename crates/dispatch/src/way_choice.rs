//! Whether a connection is handed over to its node, or its request relayed: the way that costs less CPU time.
//!
//! A hand-off costs the same for any answer; relaying costs with each answer, and with each byte. Which is less depends on
//! the size of the answer, on the requests that follow on the connection, and on the machines. So no constant decides:
//!
//! ```text
//!   relay     begin + answer + bytes, for this request and for each that is expected to follow
//!   hand-off  the worker's part, the agent's of this host, and what both take at the node
//! ```
//!
//! Sizes are learnt from answers that are relayed, as the first one of each target is. A connection is expected to bring as many requests as it has had here: so
//! it moves once relaying has cost as much as moving does, and never costs more than twice the better way.
//!
//! Prices are measured all the time, and change in steps: one that is measured to be a tenth off takes the place of the one
//! that decides. So ways of equal cost do not take turns.

use crate::approach::approach;

/// What the ways cost in CPU time of the hosts of a cluster, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// To send a request on to a node.
    pub begin_ns: f64,
    /// To send an answer on to the client, apart from its bytes.
    pub answer_ns: f64,
    /// To send 1,024 bytes of a body on.
    pub kb_ns: f64,
    /// To give a connection away, in this process.
    pub give_ns: f64,
    /// To move it, in the handoff agent of this host.
    pub agent_ns: f64,
}

/// What is known of hand-offs to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandOffSeen {
    /// CPU time of this host's agent for each, in nanoseconds; 0: none has been measured.
    pub agent_ns: u64,
    /// From the agent's first look at a connection to the node's `Take`, in microseconds.
    pub delay_us: u64,
}

/// Work of one turn of a loop for requests that are relayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayWork {
    /// Requests that were sent on.
    pub begun: u32,
    /// Answers that have begun.
    pub answers: u32,
    /// Bytes of bodies that have come.
    pub bytes: u64,
}

/// What speaks for a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayReason {
    /// Relaying costs less.
    RelayIsCheaper,
    /// A hand-off costs less.
    HandOffIsCheaper,
    /// The size of the answer is learnt by relaying it.
    SizeUnknown,
    /// A hand-off would delay the answer too long.
    TooLate,
}

/// Both ways of a request, compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Bytes that the answer is expected to have; `None`: that is not known.
    pub bytes: Option<u64>,
    /// What relaying costs: this request, and those that are expected to follow.
    pub relay_ns: f64,
    /// What a hand-off costs.
    pub hand_off_ns: f64,
    /// Why the way is what it is.
    pub reason: WayReason,
}

/// Chooses between relaying and handing over. One for each process; no clock, no socket.
#[derive(Debug)]
pub struct WayChoice {
    sizes: Sizes,
    measured: Prices,
    used: Prices,
    choices: u32,
}

impl Default for WayChoice {
    /// Nothing has been measured: prices are those of the machine of `docs/figures-cluster.md`.
    fn default() -> Self {
        Self { sizes: Sizes::default(), measured: Prices::GUESSED, used: Prices::GUESSED, choices: 0 }
    }
}

impl WayChoice {
    /// A choice that begins with these prices.
    pub fn with_prices(prices: Prices) -> Self {
        Self { measured: prices, used: prices, ..Self::default() }
    }
}

impl Compared {
    /// Whether the connection is to be handed over.
    pub fn hands_over(&self) -> bool {
        self.reason == WayReason::HandOffIsCheaper
    }

    /// Whether the other way may be tried.
    fn may_try(&self) -> bool {
        let (less, more) = (self.relay_ns.min(self.hand_off_ns), self.relay_ns.max(self.hand_off_ns));
        let is_possible = matches!(self.reason, WayReason::RelayIsCheaper | WayReason::HandOffIsCheaper);
        is_possible && more <= less * TRIAL_COST_MAX
    }
}

impl WayReason {
    /// The word for status and `baton ctl cluster why`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::RelayIsCheaper => "relaying costs less",
            Self::HandOffIsCheaper => "a hand-off costs less",
            Self::SizeUnknown => "the size of its answer is not known yet",
            Self::TooLate => "a hand-off takes too long now",
        }
    }
}

impl Prices {
    /// Those of the machine of `docs/figures-cluster.md`, before anything is measured.
    pub const GUESSED: Self =
        Self { begin_ns: 25e3, answer_ns: 35e3, kb_ns: 700.0, give_ns: 40e3, agent_ns: 100e3 };

    /// What relaying an answer of so many bytes costs, beyond what the node would spend if it sent them to the client.
    pub fn relay_ns(&self, bytes: u64) -> f64 {
        self.begin_ns + self.answer_ns + self.saved_kb_ns() * bytes as f64 / 1024.0
    }

    fn saved_kb_ns(&self) -> f64 {
        self.kb_ns * SAVED_SHARE
    }

    /// What a hand-off costs, at both hosts.
    pub fn hand_off_ns(&self) -> f64 {
        self.give_ns + self.agent_ns + self.node_ns()
    }

    /// The node's part of that.
    pub fn node_ns(&self) -> f64 {
        self.agent_ns * NODE_SHARE
    }

    /// Whether one of them is further off than what makes no difference.
    fn is_off(&self, other: &Self) -> bool {
        let pairs = [
            (self.begin_ns + self.answer_ns, other.begin_ns + other.answer_ns),
            (self.kb_ns, other.kb_ns),
            (self.hand_off_ns(), other.hand_off_ns()),
        ];
        pairs.into_iter().any(|(own, other)| (own - other).abs() > own * INDIFFERENCE)
    }
}

impl WayChoice {
    /// Compares the ways of a request. `requests_before`: those that the connection has had here, if it is kept; 0: it is
    /// new, or closes behind the answer.
    pub fn compare(&self, target: u64, requests_before: u64, seen: HandOffSeen) -> Compared {
        // One whose size is not known is relayed, or it would never be known.
        let bytes = self.sizes.of(target);
        let usual = self.sizes.usual().unwrap_or(0);
        let follow = requests_before.min(FOLLOW_MAX) as f64;
        let own_ns = self.used.relay_ns(bytes.unwrap_or(0));
        let relay_ns = own_ns + follow * self.used.relay_ns(usual);
        let hand_off_ns = self.used.hand_off_ns();
        let reason = if relay_ns <= hand_off_ns {
            if bytes.is_some() { WayReason::RelayIsCheaper } else { WayReason::SizeUnknown }
        } else if seen.delay_us as f64 * 1e3 > DELAY_MAX_NS.max(own_ns) {
            WayReason::TooLate
        } else {
            WayReason::HandOffIsCheaper
        };
        Compared { bytes, relay_ns, hand_off_ns, reason }
    }

    /// Whether the connection of a request is to be handed over. One in [`TRIAL_EVERY`] takes the other way, unless that is far
    /// dearer: what is never done is never measured.
    pub fn choose(&mut self, target: u64, requests_before: u64, seen: HandOffSeen) -> bool {
        if seen.agent_ns > 0 {
            self.measured.agent_ns = seen.agent_ns as f64;
            self.settle();
        }
        let compared = self.compare(target, requests_before, seen);
        self.choices = self.choices.wrapping_add(1);
        compared.hands_over() != (compared.may_try() && self.choices.is_multiple_of(TRIAL_EVERY))
    }

    /// An answer that was relayed is complete.
    pub fn note_size(&mut self, target: u64, bytes: u64) {
        self.sizes.note(target, bytes);
    }

    /// Work for relayed requests has taken so long.
    pub fn note_relayed(&mut self, work: RelayWork, ns: u64) {
        let (kb, ns) = (work.bytes as f64 / 1024.0, ns as f64);
        if work.begun > 0 && work.answers == 0 && work.bytes == 0 {
            approach(&mut self.measured.begin_ns, ns / f64::from(work.begun), RECENT);
        } else if work.begun > 0 {
            // Whose part is whose is not known.
        } else if work.answers > 0 {
            let apart_ns = (ns - self.measured.kb_ns * kb).max(0.0);
            approach(&mut self.measured.answer_ns, apart_ns / f64::from(work.answers), RECENT);
        } else if work.bytes >= PURE_BYTES_MIN {
            approach(&mut self.measured.kb_ns, ns / kb, RECENT);
        }
        self.settle();
    }

    /// This process has given a connection away in so long.
    pub fn note_given(&mut self, ns: u64) {
        approach(&mut self.measured.give_ns, ns as f64, RECENT);
        self.settle();
    }

    /// The prices that decide.
    pub fn prices(&self) -> Prices {
        self.used
    }

    /// Of answers of usual size: the request of a kept connection with which it is handed over, counted from 1.
    pub fn handed_with_request(&self) -> Option<u64> {
        let each_ns = self.used.relay_ns(self.sizes.usual()?);
        let count = (self.used.hand_off_ns() / each_ns).floor() as u64 + 1;
        (count <= FOLLOW_MAX).then_some(count)
    }

    /// Bytes from which on a new connection is handed over; `None`: none.
    pub fn handed_from_bytes(&self) -> Option<u64> {
        let rest_ns = self.used.hand_off_ns() - self.used.relay_ns(0);
        let bytes = (rest_ns.max(0.0) / self.used.saved_kb_ns() * 1024.0) as u64;
        (bytes < Sizes::BYTES_MAX).then_some(bytes)
    }

    fn settle(&mut self) {
        if self.used.is_off(&self.measured) {
            self.used = self.measured;
        }
    }
}

/// Sizes of answers by target: in each place the one that was seen last.
#[derive(Debug, Default)]
struct Sizes {
    /// A part of the hash, and the class; 0: none. Made with the first answer.
    places: Box<[u32]>,
    /// The mean class of answers, which single large ones do not distort.
    usual: Option<f64>,
}

impl Sizes {
    /// Larger ones are known to be no less.
    const BYTES_MAX: u64 = 1 << 26;

    fn note(&mut self, target: u64, bytes: u64) {
        if self.places.is_empty() {
            self.places = vec![0; PLACES].into_boxed_slice();
        }
        let class = class_of(bytes);
        self.places[place_of(target)] = tag_of(target) | class;
        let usual = self.usual.get_or_insert(f64::from(class));
        *usual += (f64::from(class) - *usual) / RECENT_ANSWERS;
    }

    fn of(&self, target: u64) -> Option<u64> {
        let place = *self.places.get(place_of(target))?;
        (place & !CLASS_BITS == tag_of(target)).then(|| bytes_of(f64::from(place & CLASS_BITS)))
    }

    fn usual(&self) -> Option<u64> {
        self.usual.map(bytes_of)
    }
}

fn place_of(target: u64) -> usize {
    target as usize % PLACES
}

/// Never 0: an empty place is no target's.
fn tag_of(target: u64) -> u32 {
    (target >> 32) as u32 & !CLASS_BITS | 1 << 31
}

/// Four classes from one power of two to the next.
fn class_of(bytes: u64) -> u32 {
    let powers = (bytes.clamp(1024, Sizes::BYTES_MAX) as f64 / 1024.0).log2();
    (powers * 4.0).round().min(f64::from(CLASS_BITS)) as u32
}

fn bytes_of(class: f64) -> u64 {
    (1024.0 * (class / 4.0).exp2()) as u64
}

/// 128 KiB.
const PLACES: usize = 1 << 15;

const CLASS_BITS: u32 = 0x7f;

/// What a hand-off costs a node, beyond a request that is relayed to it, in proportion to the agent of the front-end: its agent, and
/// its server, which begins a session. 82 to 45 µs in decision 0097.
const NODE_SHARE: f64 = 1.8;

/// The part of a relayed byte's cost that a hand-off saves. The rest the node spends on sending to the client, over a connection that
/// begins slowly, in place of one that is kept: 0.39 of 1.31 µs for each KB in decision 0097.
const SAVED_SHARE: f64 = 0.7;

/// A measured price that is this much off takes the place of the one that decides.
const INDIFFERENCE: f64 = 0.1;

/// An answer may be as late by a hand-off, or as late as relaying it takes the CPU: four times what is usual.
const DELAY_MAX_NS: f64 = 2e6;

/// Requests that are expected to follow, at the most.
const FOLLOW_MAX: u64 = 1_000;

/// One request in so many takes the other way.
const TRIAL_EVERY: u32 = 256;

/// A trial costs so many times the better way at the most: trials cost 1.2 % of all.
const TRIAL_COST_MAX: f64 = 4.0;

/// Samples that a price remembers, about.
const RECENT: f64 = 32.0;

/// Answers that the usual size remembers, about.
const RECENT_ANSWERS: f64 = 256.0;

/// A turn that brings fewer bytes than this tells of the turn, and not of bytes.
const PURE_BYTES_MIN: u64 = 16 << 10;

#[cfg(test)]
mod tests;
