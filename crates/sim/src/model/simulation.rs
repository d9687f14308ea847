//! A run: events in the order of time, from the first arrival to the last answer.
//!
//! ```text
//!  trace ─► front-end queue ─► policy ─► node: establish ─► in memory? ─yes─► send, tear down ─► answered
//!             ▲     (waits: admission limit)      │                no
//!             │                                   └► disk queue: read a block ─► send it ─┐
//!             └── all that was on a failed node              ▲────────────────────────────┘
//! ```
//!
//! This file contains the cluster; [`super::serving`] the steps of a request on its node.

use std::collections::VecDeque;

use baton_dispatch::{NodeId, PolicyName, Target};

use super::connection::{CLIENTS, Connection, Placed, Relay};
use super::front_end::{Completion, FrontEnds, Waiting};
use super::node::{Job, Node, RequestId, StationId, weighted};
use super::outcome::{Measures, Outcome};
use super::scenario::{Arrivals, Change, NODES_MAX, NodeChange, Scenario};
use crate::queueing::{EventQueue, Work};
use crate::trace::{Trace, TraceRequest};

/// Runs a scenario. `progress` is called now and then with the number of answers so far.
#[must_use]
pub fn simulate(scenario: &Scenario, trace: &Trace, progress: &mut dyn FnMut(u64)) -> Outcome {
    let mut simulation = Simulation::new(scenario, trace);
    let mut steps: u64 = 0;
    while simulation.step() {
        steps += 1;
        if steps.is_multiple_of(PROGRESS_STEPS) {
            progress(simulation.answered);
        }
    }
    progress(simulation.answered);
    simulation.finish()
}

const PROGRESS_STEPS: u64 = 1 << 17;

pub(crate) struct Simulation<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) trace: &'a Trace,
    pub(crate) nodes: Vec<Node>,
    pub(crate) front_ends: FrontEnds,
    pub(crate) measures: Measures,
    events: EventQueue<Event>,
    pub(crate) now_ns: u64,
    random: fastrand::Rng,

    /// Requests in the cluster, by [`RequestId`]; free places are used again.
    pub(crate) active: Vec<Active>,
    free: Vec<RequestId>,

    /// How many requests of the trace have arrived.
    pub(crate) arrived: usize,
    pub(crate) answered: u64,
    /// Not yet happened, the next one first.
    changes: VecDeque<Change>,
    /// The front-end that takes the next request.
    turn: usize,
    timeout_is_foreseen: bool,
    pub(crate) loans: u64,
    /// Of clients whose connections are kept, and the requests that they have sent.
    pub(crate) connections: Vec<Connection>,
    pub(crate) dispatched: usize,
}

/// A request in the cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Active {
    pub(crate) request: TraceRequest,
    /// Its node; none if this slot is free.
    pub(crate) node: Option<u32>,
    front_end: u32,
    arrived_ns: u64,
    pub(crate) admitted_ns: u64,
    /// Blocks that were sent, or are being sent.
    pub(crate) blocks_sent: u32,
    /// Whether the node sends for it now.
    pub(crate) is_sending: bool,
    /// The file that another node sends it out of its memory.
    pub(crate) loan: Option<Loan>,
    /// What becomes of the answer, if another one than `node` has the connection.
    pub(crate) relay: Option<Relay>,
    /// Work of the node's processor to take the connection, besides that of any connection.
    pub(crate) arrival_ns: u64,
}

/// A file that is sent from one node's memory to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loan {
    pub(crate) lender: u32,
    /// No other loan has it.
    pub(crate) number: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The next request comes.
    Arrival,
    /// A front-end is done with handing a request over to its node.
    HandedOff { node: u32, life: u32, request: RequestId },
    /// A node did something.
    Done { node: u32, life: u32, place: StationId, job: Job },
    /// A step of a slow start.
    Timeout,
}

impl<'a> Simulation<'a> {
    pub(crate) fn new(scenario: &'a Scenario, trace: &'a Trace) -> Self {
        // 40 % of T_low: below, a node's processor and disk were both seen idle at times (section 3.2.3).
        let idle_below = 0.4 * f64::from(scenario.settings.t_low);
        let mut changes = scenario.changes.clone();
        changes.sort_by(|a, b| a.at.total_cmp(&b.at));
        let mut simulation = Self {
            scenario,
            trace,
            nodes: Vec::new(),
            front_ends: FrontEnds::new(scenario),
            measures: Measures::new(idle_below, scenario.series_ms),
            events: EventQueue::new(),
            // Requests of the past took a nanosecond each.
            now_ns: trace.past().len() as u64,
            random: fastrand::Rng::with_seed(scenario.seed),
            active: Vec::new(),
            free: Vec::new(),
            arrived: 0,
            answered: 0,
            changes: changes.into(),
            turn: 0,
            timeout_is_foreseen: false,
            loans: 0,
            connections: vec![Connection::default(); CLIENTS],
            dispatched: 0,
        };
        for &weight in &scenario.weights {
            simulation.add_node(weight);
        }
        simulation.warm();
        match scenario.arrivals {
            Arrivals::Saturating | Arrivals::Closed { .. } => simulation.dispatch(),
            Arrivals::Random { .. } => simulation.foresee_arrival(),
        }
        simulation
    }

    /// Lets the next event happen; false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        let Some((at_ns, event)) = self.events.pop() else { return false };
        debug_assert!(at_ns >= self.now_ns);
        let is_over = self.answered == self.trace.requests().len() as u64;
        if is_over && matches!(event, Event::Timeout) {
            // Slow starts that outlast the requests take no time of the run.
            return true;
        }
        self.now_ns = at_ns;
        match event {
            Event::Arrival => {
                self.arrive();
                self.dispatch();
                self.foresee_arrival();
            }
            Event::HandedOff { node, life, request } if self.nodes[node as usize].life == life => {
                self.establish(node, request);
            }
            Event::Done { node, life, place, job } if self.nodes[node as usize].life == life => {
                if let Some(next) = self.nodes[node as usize].station(place).handle_done() {
                    self.foresee_done(node, place, next);
                }
                self.handle_done(node, job);
            }
            Event::HandedOff { .. } | Event::Done { .. } => {}
            Event::Timeout => {
                self.timeout_is_foreseen = false;
                self.front_ends.handle_timeout(self.now_us());
                self.foresee_timeout();
                self.dispatch();
            }
        }
        true
    }

    pub(crate) fn finish(self) -> Outcome {
        let worked: Vec<u64> = self.front_ends.each.iter().map(|front_end| front_end.worked_ns).collect();
        Outcome {
            policy: self.scenario.policy.to_string(),
            trace: self.trace.name.clone(),
            thresholds: self.front_ends.thresholds().map_or([0.0; 2], |both| [both.t_low, both.t_high]),
            unanswered: self.trace.requests().len() as u64 - self.answered,
            ..self.measures.finish(&self.nodes, &worked, self.now_ns)
        }
    }

    /// Gives a node work to do.
    pub(crate) fn offer(&mut self, node: u32, place: StationId, work: Work<Job>) {
        if let Some(begun) = self.nodes[node as usize].station(place).offer(work) {
            self.foresee_done(node, place, begun);
        }
    }

    /// A request has its answer.
    pub(crate) fn handle_answered(&mut self, id: RequestId) {
        let active = self.active[id as usize];
        let Some(node) = active.node else { return };
        let bytes = self.bytes_of(active.request);
        self.leave(id);

        let answer = Completion {
            target: target_of(self.trace, active.request),
            bytes,
            service_us: (self.now_ns - active.admitted_ns) / 1000,
        };
        let now_us = self.now_us();
        self.front_ends.complete(active.front_end as usize, NodeId(node), &answer, now_us);
        let delay_us = (self.now_ns - active.arrived_ns) / 1000;
        self.measures.handle_answer(node as usize, bytes, delay_us, self.now_ns);
        self.answered += 1;
        let measured_from = (self.scenario.measured_from * self.trace.requests().len() as f64) as u64;
        if self.answered == measured_from {
            let worked_ns = self.front_ends.each.iter().map(|front_end| front_end.worked_ns).sum();
            self.measures.begin(&self.nodes, worked_ns, self.now_ns);
        }
        self.turn = active.front_end as usize;
        self.dispatch();
    }

    /// Lets front-ends, in turn, hand requests over until none may.
    fn dispatch(&mut self) {
        let front_ends = self.front_ends.each.len();
        let mut refused = 0;
        while refused < front_ends {
            let front_end = self.turn % front_ends;
            self.turn = front_end + 1;
            refused = if self.dispatch_one(front_end) { 0 } else { refused + 1 };
        }
    }

    /// Hands over the next request of a front-end; false if there is none, or it has to wait.
    fn dispatch_one(&mut self, front_end: usize) -> bool {
        if self.front_ends.each[front_end].queue.is_empty() {
            if !self.has_eager_client() || self.arrived == self.trace.requests().len() {
                return false;
            }
            let request = self.trace.requests()[self.arrived];
            self.front_ends.each[front_end].queue.push_back(Waiting { request, arrived_ns: None });
            self.arrived += 1;
            self.handle_changes();
        }
        let Some(waiting) = self.front_ends.each[front_end].queue.front().copied() else { return false };
        let Some(placed) = self.place(front_end, waiting.request) else { return false };
        self.front_ends.each[front_end].queue.pop_front();
        self.handoff(front_end, placed, waiting);
        true
    }

    /// Asks the policy.
    pub(crate) fn choose(&mut self, front_end: usize, request: TraceRequest) -> Option<NodeId> {
        let decision = self.front_ends.choose(front_end, target_of(self.trace, request), self.now_us());
        self.measures.handle_decision(decision.why);
        decision.node
    }

    /// Bytes of an answer.
    pub(crate) fn bytes_of(&self, request: TraceRequest) -> u64 {
        if request.has_body() { self.trace.target(request.target()).bytes } else { 0 }
    }

    /// Whether a request comes as soon as it is wanted.
    fn has_eager_client(&self) -> bool {
        match self.scenario.arrivals {
            Arrivals::Saturating => true,
            Arrivals::Closed { clients } => (self.arrived as u64 - self.answered) < u64::from(clients),
            Arrivals::Random { .. } => false,
        }
    }

    fn handoff(&mut self, front_end: usize, placed: Placed, waiting: Waiting) {
        let Placed { node, cost, relay } = placed;
        self.front_ends.begin(front_end, node);
        let active = Active {
            request: waiting.request,
            node: Some(node.0),
            front_end: front_end as u32,
            arrived_ns: waiting.arrived_ns.unwrap_or(self.now_ns),
            admitted_ns: self.now_ns,
            blocks_sent: 0,
            is_sending: false,
            loan: None,
            relay,
            arrival_ns: cost.node_ns,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.active[id as usize] = active;
                id
            }
            None => {
                self.active.push(active);
                (self.active.len() - 1) as RequestId
            }
        };
        let known = &mut self.nodes[node.index()];
        known.load += 1;
        let (load, life) = (known.load, known.life);
        self.measures.handle_load(node.index(), load, self.now_ns);

        let cost_ns = cost.front_end_ns;
        if cost_ns == 0 {
            self.establish(node.0, id);
            return;
        }
        let each = &mut self.front_ends.each[front_end];
        each.busy_until_ns = each.busy_until_ns.max(self.now_ns) + cost_ns;
        each.worked_ns += cost_ns;
        self.events.push(each.busy_until_ns, Event::HandedOff { node: node.0, life, request: id });
    }

    /// A request is no longer on its node.
    fn leave(&mut self, id: RequestId) {
        let active = &mut self.active[id as usize];
        let Some(node) = active.node.take() else { return };
        self.free.push(id);
        let known = &mut self.nodes[node as usize];
        known.load -= 1;
        let load = known.load;
        self.measures.handle_load(node as usize, load, self.now_ns);
    }

    /// The next request of the trace arrives at a front-end.
    fn arrive(&mut self) {
        let front_end = self.arrived % self.front_ends.each.len();
        let request = self.trace.requests()[self.arrived];
        self.front_ends.each[front_end].queue.push_back(Waiting { request, arrived_ns: Some(self.now_ns) });
        self.arrived += 1;
        self.handle_changes();
    }

    fn foresee_arrival(&mut self) {
        let Arrivals::Random { per_s } = self.scenario.arrivals else { return };
        if self.arrived < self.trace.requests().len() {
            let wait_s = -(1.0 - self.random.f64()).ln() / per_s;
            self.events.push(self.now_ns + (wait_s * 1e9) as u64, Event::Arrival);
        }
    }

    fn foresee_done(&mut self, node: u32, place: StationId, work: Work<Job>) {
        let life = self.nodes[node as usize].life;
        self.events.push(self.now_ns + work.ns, Event::Done { node, life, place, job: work.job });
    }

    fn foresee_timeout(&mut self) {
        if let Some(at_us) = self.front_ends.poll_timeout()
            && !self.timeout_is_foreseen
        {
            self.timeout_is_foreseen = true;
            self.events.push((at_us * 1000).max(self.now_ns), Event::Timeout);
        }
    }

    /// Applies changes to nodes that are due by the number of requests.
    fn handle_changes(&mut self) {
        let share = self.arrived as f64 / self.trace.requests().len() as f64;
        while self.changes.front().is_some_and(|change| change.at <= share)
            && let Some(change) = self.changes.pop_front()
        {
            self.handle_change(change.what);
        }
    }

    fn handle_change(&mut self, change: NodeChange) {
        let known = |node: u32| (node as usize) < self.nodes.len();
        match change {
            NodeChange::Fail(node) if known(node) => self.fail(node),
            NodeChange::Recover(node) if known(node) => {
                self.nodes[node as usize].is_up = true;
                self.measures.handle_up(node as usize, self.now_ns);
            }
            NodeChange::Drain(node) if known(node) => self.measures.handle_down(node as usize, self.now_ns),
            NodeChange::Join(weight) if self.nodes.len() < NODES_MAX => self.add_node(weight),
            NodeChange::LosePart { node, parts } if known(node) => self.lose_part(node, parts),
            NodeChange::RegainParts(node) if known(node) => self.regain_parts(node),
            _ => return,
        }
        self.front_ends.handle_change(change, self.now_us());
        self.foresee_timeout();
    }

    fn add_node(&mut self, weight: u32) {
        self.nodes.push(Node::new(weighted(&self.scenario.profile, weight)));
        self.measures.handle_join(weight, self.now_ns);
    }

    /// A hash distributes files over the parts of a node.
    fn lose_part(&mut self, node: u32, parts: u32) {
        let is_kept = |target| !self.trace.target(target).hash.is_multiple_of(u64::from(parts.max(2)));
        let known = &mut self.nodes[node as usize];
        known.lose_part(parts, is_kept);
        self.measures.handle_parts(node as usize, known.parts, self.now_ns);
    }

    fn regain_parts(&mut self, node: u32) {
        let known = &mut self.nodes[node as usize];
        let begun = known.regain_parts();
        self.measures.handle_parts(node as usize, known.parts, self.now_ns);
        for (place, work) in begun {
            self.foresee_done(node, place, work);
        }
    }

    /// A node is gone: its requests go back to their front-ends, before all others, in the order of their arrival.
    fn fail(&mut self, node: u32) {
        let mut lost: Vec<RequestId> = (0..self.active.len() as RequestId)
            .filter(|&id| self.active[id as usize].node == Some(node))
            .collect();
        lost.sort_by_key(|&id| (self.active[id as usize].admitted_ns, id));
        for &id in lost.iter().rev() {
            let active = self.active[id as usize];
            self.leave(id);
            self.front_ends.end(active.front_end as usize, NodeId(node));
            let waiting = Waiting { request: active.request, arrived_ns: Some(active.arrived_ns) };
            self.front_ends.each[active.front_end as usize].queue.push_front(waiting);
            self.measures.retried += 1;
        }
        self.nodes[node as usize].fail();
        self.measures.handle_down(node as usize, self.now_ns);
        self.handle_lender_failed(node);
    }

    pub(crate) fn policy(&self) -> PolicyName {
        self.scenario.policy
    }

    fn now_us(&self) -> u64 {
        self.now_ns / 1000
    }
}

/// What policies know of a request.
pub(crate) fn target_of(trace: &Trace, request: TraceRequest) -> Target {
    let target = trace.target(request.target());
    Target { hash: target.hash, bytes_hint: Some(target.bytes), dynamic: target.dynamic }
}
