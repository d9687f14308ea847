//! What the ways to a node cost, as the handoff agent and the workers have measured it.
//!
//! The master writes what the agent says of itself. Each worker writes the prices by which it chooses: the last one is what an
//! operator sees.

use baton_dispatch::{HandOffSeen, WayChoice};

use super::{OriginRecord, word};

/// The prices by which a worker chooses, for the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WayPrices {
    /// CPU time to relay an answer without a body, in nanoseconds.
    pub relay_ns: u64,
    /// CPU time to relay 1,024 bytes, in nanoseconds.
    pub kb_ns: u64,
    /// CPU time to hand a connection over, at both hosts, in nanoseconds.
    pub hand_off_ns: u64,
    /// Bytes from which on the answer to the first request of a connection is worth a hand-off; `None`: none is.
    pub from_bytes: Option<u64>,
    /// The request with which a connection is handed over whose answers have the usual size; `None`: never.
    pub with_request: Option<u64>,
}

impl OriginRecord {
    /// What the agent has seen of hand-offs to the node.
    pub fn hand_off_seen(&self) -> HandOffSeen {
        HandOffSeen { agent_ns: self.load(word::AGENT_NS), delay_us: self.load(word::DELAY_US) }
    }

    /// Sets that.
    pub fn set_hand_off_seen(&self, seen: HandOffSeen) {
        self.store(word::AGENT_NS, seen.agent_ns);
        self.store(word::DELAY_US, seen.delay_us);
    }

    /// The prices of the worker that has measured last; `None`: none has.
    pub fn way_prices(&self) -> Option<WayPrices> {
        let [relay_ns, kb_ns, hand_off_ns, from_bytes, with_request] = self.load_all(word::PRICES);
        (relay_ns > 0).then_some(WayPrices {
            relay_ns,
            kb_ns,
            hand_off_ns,
            from_bytes: Some(from_bytes).filter(|bytes| *bytes != u64::MAX),
            with_request: Some(with_request).filter(|count| *count != 0),
        })
    }

    /// Tells the prices of this worker.
    pub(crate) fn set_way_prices(&self, choice: &WayChoice) {
        let prices = choice.prices();
        let words = [
            prices.relay_ns(0) as u64,
            prices.kb_ns as u64,
            prices.hand_off_ns() as u64,
            choice.handed_from_bytes().unwrap_or(u64::MAX),
            choice.handed_with_request().unwrap_or(0),
        ];
        word::PRICES.zip(words).for_each(|(word, value)| self.store(word, value));
    }
}
