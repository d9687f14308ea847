//! Kept connections: where requests behind the first one are served, and what getting there costs.
//!
//! Requests are dealt to clients in turn, so that each has one at a time; a client's connection ends behind so many. Prices are
//! those with which a server begins. A connection without a request costs nothing, and nodes that fail are not modelled.

use baton_dispatch::{FetchRule, NodeId, Prices};

use super::connection::{CLIENTS, Connection, Placed, Relay};
use super::front_end::GettingThere;
use super::node::{Job, RequestId, StationId};
use super::scenario::KeptWay;
use super::simulation::{Simulation, target_of};
use crate::queueing::Work;
use crate::trace::TraceRequest;

impl Simulation<'_> {
    /// The place of a front-end's next request; `None`: it has to wait.
    pub(crate) fn place(&mut self, front_end: usize, request: TraceRequest) -> Option<Placed> {
        let Some(kept) = self.scenario.kept else {
            let node = self.choose(front_end, request)?;
            let target = self.trace.target(request.target());
            let cost = self.front_ends.get_there(front_end, target.hash, self.bytes_of(request));
            return Some(Placed { cost, ..Placed::at(node) });
        };
        let client = self.dispatched % CLIENTS;
        let connection = self.connections[client];
        let here = connection.node.filter(|_| connection.requests_left > 0);
        let placed = match here {
            Some(here) => self.place_further(kept.way, here, front_end, request)?,
            None => self.place_first(kept.way, front_end, request)?,
        };
        let before = here.map_or(kept.requests, |_| connection.requests_left);
        let node = Some(placed.relay.map_or(placed.node, |relay| relay.node));
        self.connections[client] = Connection { node, requests_left: before - 1 };
        self.dispatched += 1;
        Some(placed)
    }

    fn place_first(&mut self, way: KeptWay, front_end: usize, request: TraceRequest) -> Option<Placed> {
        let (prices, node) = (Prices::GUESSED, self.choose(front_end, request)?);
        let (front_end_ns, node_ns) = match way {
            KeptWay::Relay => (prices.relay_ns(self.bytes_of(request)), 0.0),
            _ => (prices.hand_off_ns() - prices.node_ns(), prices.node_ns()),
        };
        let cost = GettingThere { front_end_ns: front_end_ns as u64, node_ns: node_ns as u64 };
        Some(Placed { cost, ..Placed::at(node) })
    }

    fn place_further(
        &mut self,
        way: KeptWay,
        here: NodeId,
        front_end: usize,
        request: TraceRequest,
    ) -> Option<Placed> {
        if way == KeptWay::Relay {
            return self.place_first(way, front_end, request);
        }
        if way == KeptWay::Stay || self.has(here.0, request.target()) {
            return Some(Placed::at(here));
        }
        let fetches = match way {
            KeptWay::Fetch => Some(FetchRule::Always),
            KeptWay::Auto => Some(FetchRule::IfFaster),
            KeptWay::Relay | KeptWay::Stay | KeptWay::Return => None,
        };
        if let Some(rule) = fetches {
            let (target, cluster) = (target_of(self.trace, request), self.front_ends.cluster(front_end));
            let home = self.nodes[here.index()].fetches.source(rule, here, target, cluster);
            return Some(match home {
                Some(home) => {
                    let relay = Relay { node: here, was_in_memory: false };
                    Placed { relay: Some(relay), ..Placed::at(home) }
                }
                None => Placed::at(here),
            });
        }
        let placed = self.place_first(way, front_end, request)?;
        let ns = Prices::GUESSED.node_ns() as u64;
        self.offer(here.0, StationId::Cpu, Work { job: Job::GiveBack, ns });
        Some(placed)
    }

    /// A node has answered: the client has that, or another node relays it.
    pub(crate) fn handle_finished(&mut self, id: RequestId) {
        let active = &mut self.active[id as usize];
        let Some(relay) = active.relay.take() else { return self.handle_answered(id) };
        if relay.was_in_memory {
            let us = (self.now_ns - active.admitted_ns) / 1_000;
            self.nodes[relay.node.index()].fetches.note_fetched(us);
        }
        let ns = Prices::GUESSED.relay_ns(self.bytes_of(self.active[id as usize].request)) as u64;
        self.offer(relay.node.0, StationId::Cpu, Work { job: Job::Relay(id), ns });
    }
}

#[cfg(test)]
mod tests {
    use baton_dispatch::PolicyName;

    use crate::model::{Kept, KeptWay, NodeProfile, Outcome, Scenario, simulate};
    use crate::trace::Zipf;

    /// Goal: fetching keeps each file at its home, as relaying does, while connections that stay read it everywhere; and connections
    /// that move cost the front-end less than relaying, once they bring enough requests.
    #[test]
    fn fetching_misses_as_relaying_does_and_spares_the_front_end() {
        let trace = Zipf { targets: 6_000, alpha: 0.8, kb: 16.0, requests: 40_000 }.trace(1);
        let run = |way| -> Outcome {
            let kept = Some(Kept { requests: 32, way });
            let scenario = Scenario { kept, measured_from: 0.5, ..Scenario::published(PolicyName::LardH, 4) };
            simulate(&scenario, &trace, &mut |_| ())
        };
        let [relay, stay, back, fetch] =
            [KeptWay::Relay, KeptWay::Stay, KeptWay::Return, KeptWay::Fetch].map(run);
        assert!([&relay, &stay, &back, &fetch].iter().all(|outcome| outcome.unanswered == 0));
        assert!(fetch.miss_ratio < 1.3 * relay.miss_ratio, "{} and {}", fetch.miss_ratio, relay.miss_ratio);
        assert!(stay.miss_ratio > 2.0 * fetch.miss_ratio, "{} and {}", stay.miss_ratio, fetch.miss_ratio);
        let per_answer = |outcome: &Outcome| outcome.front_end_busy / outcome.throughput;
        assert!(per_answer(&fetch) < 0.2 * per_answer(&relay));
        assert!(per_answer(&back) > per_answer(&relay), "a hand-off for nearly each request");
    }

    /// Goal: `auto` is as good as the better of both ways, where disks are slow and where they are fast.
    #[test]
    fn the_faster_way_is_found() {
        let trace = Zipf { targets: 6_000, alpha: 0.8, kb: 16.0, requests: 80_000 }.trace(1);
        let short_of_memory = NodeProfile { cache_bytes: 24 << 20, ..NodeProfile::nvme() };
        let slow = NodeProfile { disk_latency_us: 8_000.0, reads_per_disk: 4, ..short_of_memory };
        for (profile, fetching_is_better) in [(slow, true), (short_of_memory, false)] {
            let run = |way| {
                let kept = Some(Kept { requests: 256, way });
                let published = Scenario::published(PolicyName::LardH, 4);
                let scenario = Scenario { profile, kept, measured_from: 0.5, ..published };
                simulate(&scenario, &trace, &mut |_| ()).throughput
            };
            let [stay, fetch, auto] = [KeptWay::Stay, KeptWay::Fetch, KeptWay::Auto].map(run);
            assert_eq!(fetch > 1.2 * stay, fetching_is_better, "stay {stay}, fetch {fetch}");
            assert!(auto > 0.85 * stay.max(fetch), "stay {stay}, fetch {fetch}, auto {auto}");
        }
    }
}
