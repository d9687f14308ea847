//! A front-end's half of the machine: connections that go to nodes, and come back.
//!
//! ```text
//!   hand-off ─► Freezing ─► Shipped ─ Ready ─► There ─ Gone ─► Lingering ─► forgotten
//!                  │           │                 │
//!                  │           ├ refused, late   ├ returned, or lost: then removed
//!                  ▼           ▼                 ▼
//!               server ◄─── Restoring ◄──────────┘
//! ```
//!
//! The packets of a flow that is neither `There` nor `Lingering` are dropped at this host: TCP repeats them.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use baton_passport::Passport;

use super::action::{Action, ForServer, HandoffFailure, NodeId, Note, Out, Peer};
use super::limits::{CONFIRM_MS, FLOWS_MAX, GATHER_MS, GATHER_QUIET_MS, LINGER_MS};
use super::link::{Link, LinkState};
use super::queue::pop_due;
use super::secret::Secret;
use super::waiting::Waiting;
use crate::flow::{FlowId, Tuple};
use crate::local::{Drain, Node, NodeStatus, ToMaster};
use crate::peer::{FromFrontEnd, FromNode, MessageRefused, RefuseReason, Shipment, VERSION};

/// The half.
#[derive(Debug)]
pub(super) struct FrontEnd<S> {
    pub(super) links: BTreeMap<NodeId, Link>,
    next_node: u32,
    pub(super) flows: BTreeMap<FlowId, Flow>,
    pub(super) by_tuple: HashMap<Tuple, FlowId>,
    /// Confirmations that are awaited, and until when.
    awaited: VecDeque<(u64, FlowId)>,
    /// Flows that are gone, and how long their packets are forwarded.
    lingering: VecDeque<(u64, FlowId)>,
    /// Connections that no server has taken yet.
    waiting: Waiting<S>,
}

/// A connection that is, was or is to be at a node.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) tuple: Tuple,
    pub(super) node: NodeId,
    pub(super) phase: Phase,
    /// When the server gave it away.
    since_ms: u64,
}

#[derive(Debug)]
pub(super) enum Phase {
    Freezing {
        passport: Box<Passport>,
    },
    Shipped {
        passport: Box<Passport>,
        tcp: Vec<u8>,
    },
    There,
    /// On its way back to the server.
    Restoring {
        passport: Box<Passport>,
        is_refused: bool,
    },
    Lingering,
}

/// A connection that a server gives away.
#[derive(Debug)]
pub struct Handoff<S> {
    /// The node's name.
    pub node: String,
    /// The client's socket.
    pub socket: S,
    /// Its ends.
    pub tuple: Tuple,
    /// What the node has to know.
    pub passport: Box<Passport>,
    /// Whether the connection comes from the server that said `Hello` last, which counts it.
    pub is_counted: bool,
}

impl<S> FrontEnd<S> {
    pub(super) fn new() -> Self {
        Self {
            links: BTreeMap::new(),
            next_node: 0,
            flows: BTreeMap::new(),
            by_tuple: HashMap::new(),
            awaited: VecDeque::new(),
            lingering: VecDeque::new(),
            waiting: Waiting::new(),
        }
    }

    /// Whether it has nothing to look after.
    pub(super) fn is_empty(&self) -> bool {
        self.flows.is_empty() && self.waiting.is_empty()
    }

    /// A server names the nodes. A node whose addresses have changed is another one.
    pub(super) fn handle_nodes(
        &mut self,
        nodes: &[Node],
        secret: &mut Secret,
        now_ms: u64,
        out: &mut Out<S>,
    ) {
        for link in self.links.values_mut() {
            let was_retired = std::mem::replace(&mut link.is_retired, !nodes.contains(&link.node));
            if was_retired && !link.is_retired {
                link.counts.begin();
                touch(link, now_ms);
            }
        }
        for node in nodes {
            if !self.links.values().any(|link| link.node == *node) {
                self.links.insert(NodeId(self.next_node), Link::new(node.clone(), secret.next(), now_ms));
                self.next_node += 1;
            }
        }
        self.end_retired(out);
        self.tell_reachable(out);
        self.connect_due(now_ms, out);
    }

    /// Another server takes connections: it is told everything.
    pub(super) fn handle_server(&mut self, now_ms: u64, out: &mut Out<S>) {
        for link in self.links.values_mut() {
            link.counts.begin();
            link.loads_due_ms = Some(now_ms);
            link.told_reachable = false;
        }
        self.tell_reachable(out);
        self.waiting.take().into_iter().for_each(|connection| out.push(Action::Give(connection)));
    }

    /// A server gives a connection away.
    pub(super) fn handle_handoff(&mut self, handoff: Handoff<S>, now_ms: u64, out: &mut Out<S>) {
        let Handoff { node: name, socket, tuple, passport, is_counted } = handoff;
        let named = |(_, link): &(&NodeId, &mut Link)| link.node.name == name && !link.is_retired;
        let Some((&node, link)) = self.links.iter_mut().find(named) else {
            return self.decline(name, tuple, socket, passport, HandoffFailure::Unknown, out);
        };
        // The server counts it: it ends at once, or when it is back.
        if !is_counted {
            link.counts.begun_kept += 1;
        }
        let old = self.by_tuple.get(&tuple).copied();
        let is_settled = |flow: &Flow| matches!(flow.phase, Phase::There | Phase::Lingering);
        let failure = if !link.is_reachable() {
            Some(HandoffFailure::Unreachable)
        } else if !old.and_then(|old| self.flows.get(&old)).is_none_or(is_settled) {
            Some(HandoffFailure::Moving)
        } else if !link.has_room() || self.flows.len() >= FLOWS_MAX {
            Some(HandoffFailure::TooMany)
        } else {
            None
        };
        match failure {
            // The server has counted the request itself.
            None if is_counted => touch_quietly(link, now_ms),
            _ => touch(link, now_ms),
        }
        if let Some(failure) = failure {
            link.counts.ended += 1;
            link.counts.refused += 1;
            return self.decline(name, tuple, socket, passport, failure, out);
        }
        link.counts.note_sent();
        link.under_way += 1;
        // The client uses the port for a new connection: what was known of the old one is over.
        if let Some(old) = old {
            self.release(old, now_ms, out);
        }
        let flow = out.flow();
        self.by_tuple.insert(tuple, flow);
        self.flows.insert(flow, Flow { tuple, node, phase: Phase::Freezing { passport }, since_ms: now_ms });
        out.push(Action::Freeze { flow, tuple, socket });
    }

    fn decline(
        &mut self,
        node: String,
        tuple: Tuple,
        socket: S,
        mut passport: Box<Passport>,
        why: HandoffFailure,
        out: &mut Out<S>,
    ) {
        out.log(Note::HandoffFailed { node, tuple, why });
        passport.stay = true;
        let flow = out.flow();
        out.push(Action::Give(ForServer::new(flow, socket, passport)));
    }

    /// A socket's state has been read, and the socket closed.
    pub(super) fn handle_frozen(&mut self, flow: FlowId, tcp: Vec<u8>, now_ms: u64, out: &mut Out<S>) {
        let Some(Flow { tuple, node, phase, .. }) = self.flows.get_mut(&flow) else { return };
        let Some(link) = self.links.get_mut(node) else { return };
        let Phase::Freezing { passport } = phase else { return };
        let shipment = Shipment { flow, tuple: *tuple, tcp, passport: (**passport).clone() };
        let is_open = link.is_reachable();
        let message = FromFrontEnd::Ship(Box::new(shipment));
        let bytes = if is_open { message.to_bytes() } else { None };
        let FromFrontEnd::Ship(shipment) = message else { return };
        *phase = Phase::Shipped { passport: Box::new(shipment.passport), tcp: shipment.tcp };
        match bytes {
            Some(bytes) => {
                out.push(Action::Send { peer: Peer::Node(*node), bytes });
                self.awaited.push_back((now_ms + CONFIRM_MS, flow));
            }
            None if is_open => self.take_back(flow, HandoffFailure::TooLarge, now_ms, out),
            None => self.take_back(flow, HandoffFailure::Disconnected, now_ms, out),
        }
    }

    /// A socket's state could not be read: all is as before.
    pub(super) fn handle_not_frozen(
        &mut self,
        flow: FlowId,
        socket: S,
        why: String,
        now_ms: u64,
        out: &mut Out<S>,
    ) {
        let Some(Flow { tuple, node, phase, .. }) = self.forget(flow) else {
            return out.push(Action::Reset { socket });
        };
        let Phase::Freezing { passport } = phase else { return out.push(Action::Reset { socket }) };
        let Some(link) = self.links.get_mut(&node) else { return };
        touch(link, now_ms);
        link.under_way -= 1;
        link.counts.active -= 1;
        link.counts.note_given_back();
        let name = link.node.name.clone();
        self.decline(name, tuple, socket, passport, HandoffFailure::NotFrozen(why), out);
    }

    /// A hand-off has failed: the connection comes back.
    fn take_back(&mut self, flow: FlowId, why: HandoffFailure, now_ms: u64, out: &mut Out<S>) {
        let Some(Flow { tuple, node, phase, .. }) = self.flows.get_mut(&flow) else { return };
        let Some(link) = self.links.get_mut(node) else { return };
        let old = std::mem::replace(phase, Phase::There);
        let Phase::Shipped { mut passport, tcp } = old else {
            *phase = old;
            return;
        };
        passport.stay = true;
        *phase = Phase::Restoring { passport, is_refused: true };
        touch(link, now_ms);
        link.under_way -= 1;
        link.counts.active -= 1;
        out.log(Note::HandoffFailed { node: link.node.name.clone(), tuple: *tuple, why });
        out.push(Action::Restore { flow, tuple: *tuple, tcp });
    }

    /// A socket has been made, or not.
    pub(super) fn handle_restored(
        &mut self,
        flow: FlowId,
        restored: Result<S, String>,
        now_ms: u64,
        out: &mut Out<S>,
    ) {
        let Some(Flow { tuple, node, phase, .. }) = self.forget(flow) else {
            return restored.map_or((), |socket| out.push(Action::Discard { socket }));
        };
        // Packets that arrive from now on find the socket, or are answered by a reset.
        out.push(Action::Remove { tuple });
        let Phase::Restoring { passport, is_refused } = phase else { return };
        let Some(link) = self.links.get_mut(&node) else { return };
        touch(link, now_ms);
        if is_refused {
            link.counts.note_given_back();
        }
        match restored {
            Ok(socket) => out.push(Action::Give(ForServer::new(flow, socket, passport))),
            Err(why) => {
                link.counts.lost += 1;
                out.log(Note::NotRestored { tuple, why });
            }
        }
        self.end_retired(out);
    }

    /// No server has taken a connection: one will, or it is reset.
    pub(super) fn handle_not_given(&mut self, connection: ForServer<S>, now_ms: u64, out: &mut Out<S>) {
        self.waiting.add(connection, now_ms, out);
    }

    /// A node's agent has accepted the connection.
    pub(super) fn handle_connected(&mut self, node: NodeId, out: &mut Out<S>) {
        let Some(link) = self.links.get_mut(&node) else { return };
        link.session += 1;
        link.state = LinkState::Greeting;
        send(node, &FromFrontEnd::Hello { version: VERSION, link: link.id, session: link.session }, out);
    }

    /// The connection has ended, or could not be made.
    pub(super) fn handle_closed(&mut self, node: NodeId, why: String, now_ms: u64, out: &mut Out<S>) {
        let Some(link) = self.links.get_mut(&node) else { return };
        link.note_closed(now_ms);
        if link.told_reachable {
            out.log(Note::NodeUnreachable { node: link.node.name.clone(), why: why.clone() });
        }
        link.error = Some(why);
        self.take_back_shipped(node, &HandoffFailure::Disconnected, now_ms, out);
        self.tell_reachable(out);
    }

    /// What a node was sent and has not confirmed it will not be told to take.
    fn take_back_shipped(&mut self, node: NodeId, why: &HandoffFailure, now_ms: u64, out: &mut Out<S>) {
        let shipped = |(id, flow): (&FlowId, &Flow)| {
            (flow.node == node && matches!(flow.phase, Phase::Shipped { .. })).then_some(*id)
        };
        let flows: Vec<_> = self.flows.iter().filter_map(shipped).collect();
        flows.into_iter().for_each(|flow| self.take_back(flow, why.clone(), now_ms, out));
    }

    /// A node has said something. The connection is of no use after an error.
    pub(super) fn handle_message(
        &mut self,
        node: NodeId,
        message: FromNode,
        secret: &mut Secret,
        now_ms: u64,
        out: &mut Out<S>,
    ) -> Result<(), MessageRefused> {
        let Some(link) = self.links.get_mut(&node) else { return Ok(()) };
        if !link.is_connected() {
            return Ok(());
        }
        link.note_heard(now_ms);
        match (message, &mut link.state) {
            (FromNode::Welcome { version, .. }, LinkState::Greeting) if version != VERSION => {
                return Err(MessageRefused::Version(version));
            }
            (FromNode::Welcome { resumed, .. }, LinkState::Greeting) => {
                link.state = LinkState::Syncing { listed: BTreeSet::new(), again: 0 };
                if !resumed {
                    self.lose(node, None, now_ms, out);
                }
            }
            (_, LinkState::Greeting) => return Err(MessageRefused::Unexpected),
            (FromNode::Flows { ready, taken, last }, LinkState::Syncing { listed, .. }) => {
                if listed.len() + ready.len() + taken.len() > FLOWS_MAX {
                    return Err(MessageRefused::TooLong);
                }
                listed.extend(ready.iter().chain(&taken));
                for flow in ready {
                    self.settle_ready(node, flow, out);
                }
                for flow in taken {
                    if !self.is_there(node, flow) {
                        send(node, &FromFrontEnd::Release { flow }, out);
                    }
                }
                if last {
                    self.note_synced(node, now_ms, out);
                }
            }
            (FromNode::Flows { .. } | FromNode::Welcome { .. }, _) => return Err(MessageRefused::Unexpected),
            (FromNode::Ready { flow }, _) => self.handle_ready(node, flow, now_ms, out),
            (FromNode::Refused { flow, why }, _) => self.handle_node_refused(node, flow, why, now_ms, out),
            (FromNode::Return(shipment), _) => self.handle_return(node, *shipment, now_ms, out),
            (FromNode::Gone { flows }, _) => {
                for flow in flows {
                    self.handle_gone(node, flow, now_ms, out);
                }
            }
            (FromNode::Totals { taken, begun_kept, ended }, _) => {
                touch(link, now_ms);
                if !link.counts.handle_totals(taken, begun_kept, ended) {
                    // Such a node cannot be balanced. Its flows are removed, and it begins anew.
                    self.lose(node, Some(secret), now_ms, out);
                    return Err(MessageRefused::Unexpected);
                }
            }
            // The machine has taken what a drain says.
            (FromNode::Pong | FromNode::Drain(_), _) => {}
        }
        self.tell_reachable(out);
        Ok(())
    }

    fn is_at(&self, node: NodeId, flow: FlowId, is_in: impl FnOnce(&Phase) -> bool) -> bool {
        self.flows.get(&flow).is_some_and(|flow| flow.node == node && is_in(&flow.phase))
    }

    fn is_there(&self, node: NodeId, flow: FlowId) -> bool {
        self.is_at(node, flow, |phase| matches!(phase, Phase::There))
    }

    fn is_shipped(&self, node: NodeId, flow: FlowId) -> bool {
        self.is_at(node, flow, |phase| matches!(phase, Phase::Shipped { .. }))
    }

    /// A node has an inert socket since an earlier connection: either it was told to take it, or it never will be.
    fn settle_ready(&mut self, node: NodeId, flow: FlowId, out: &mut Out<S>) {
        if !self.is_there(node, flow) {
            return send(node, &FromFrontEnd::Release { flow }, out);
        }
        if let Some(Link { state: LinkState::Syncing { again, .. }, .. }) = self.links.get_mut(&node) {
            *again += 1;
        }
        send(node, &FromFrontEnd::Take { flow }, out);
    }

    fn handle_ready(&mut self, node: NodeId, flow: FlowId, now_ms: u64, out: &mut Out<S>) {
        if !self.is_shipped(node, flow) {
            return send(node, &FromFrontEnd::Release { flow }, out);
        }
        let Some(link) = self.links.get_mut(&node) else { return };
        let Some(at) = self.flows.get_mut(&flow) else { return };
        at.phase = Phase::There;
        touch_quietly(link, now_ms);
        link.under_way -= 1;
        link.counts.note_taken(now_ms - at.since_ms);
        out.push(Action::Forward { tuple: at.tuple, next_hop: link.node.next_hop });
        send(node, &FromFrontEnd::Take { flow }, out);
    }

    fn handle_node_refused(
        &mut self,
        node: NodeId,
        flow: FlowId,
        why: RefuseReason,
        now_ms: u64,
        out: &mut Out<S>,
    ) {
        if self.is_shipped(node, flow) {
            self.take_back(flow, HandoffFailure::Refused(why), now_ms, out);
        } else if self.is_there(node, flow) {
            // It was told to take what it has discarded.
            if let Some(link) = self.links.get_mut(&node) {
                link.counts.note_not_taken(1);
            }
            self.reset(&[flow], now_ms, out);
        }
    }

    /// A node has given a connection back.
    fn handle_return(&mut self, node: NodeId, shipment: Shipment, now_ms: u64, out: &mut Out<S>) {
        let Shipment { flow, tuple, tcp, mut passport } = shipment;
        send(node, &FromFrontEnd::Returned { flow }, out);
        if !self.is_there(node, flow) {
            return;
        }
        let (Some(at), Some(link)) = (self.flows.get_mut(&flow), self.links.get_mut(&node)) else { return };
        touch(link, now_ms);
        link.counts.active -= 1;
        // The client is the one that this front-end has handed over, whatever the node says.
        if tuple != at.tuple {
            link.counts.lost += 1;
            out.log(Note::NotRestored {
                tuple: at.tuple,
                why: "the node returned another connection".into(),
            });
            out.push(Action::Remove { tuple: at.tuple });
            self.forget(flow);
            return;
        }
        link.counts.returned += 1;
        passport.flow = None;
        passport.peer = passport.peer.map(|_| tuple.client);
        at.phase = Phase::Restoring { passport: Box::new(passport), is_refused: false };
        out.push(Action::Hold { tuple });
        out.push(Action::Restore { flow, tuple, tcp });
    }

    fn handle_gone(&mut self, node: NodeId, flow: FlowId, now_ms: u64, out: &mut Out<S>) {
        if !self.is_there(node, flow) {
            return;
        }
        let (Some(at), Some(link)) = (self.flows.get_mut(&flow), self.links.get_mut(&node)) else { return };
        touch(link, now_ms);
        link.counts.active -= 1;
        at.phase = Phase::Lingering;
        out.push(Action::End { tuple: at.tuple });
        self.lingering.push_back((now_ms + LINGER_MS, flow));
    }

    /// The node has listed what it has: the rest is reset.
    fn note_synced(&mut self, node: NodeId, now_ms: u64, out: &mut Out<S>) {
        let Some(link) = self.links.get_mut(&node) else { return };
        let old = std::mem::replace(&mut link.state, LinkState::Open);
        let LinkState::Syncing { listed, again } = old else { return };
        link.note_open();
        link.counts.note_synced(again);
        touch(link, now_ms);
        for drain in out.drains.list() {
            tell_drain(node, link, drain, out);
        }
        let missing = |(id, flow): (&FlowId, &Flow)| {
            (flow.node == node && matches!(flow.phase, Phase::There) && !listed.contains(id)).then_some(*id)
        };
        let missing: Vec<_> = self.flows.iter().filter_map(missing).collect();
        self.reset(&missing, now_ms, out);
    }

    /// Removes flows that are of no use any more: their clients are answered by resets.
    fn reset(&mut self, flows: &[FlowId], now_ms: u64, out: &mut Out<S>) {
        for flow in flows {
            let node = self.flows.get(flow).map(|flow| flow.node);
            self.remove(*flow, now_ms, out);
            if let Some(link) = node.and_then(|node| self.links.get_mut(&node)) {
                link.counts.lost += 1;
            }
        }
    }

    /// A node is lost: what is there is reset, what is on its way comes back. `secret`: its link ends with it.
    fn lose(&mut self, node: NodeId, secret: Option<&mut Secret>, now_ms: u64, out: &mut Out<S>) {
        self.take_back_shipped(node, &HandoffFailure::Unreachable, now_ms, out);
        let there = |(id, flow): (&FlowId, &Flow)| {
            let is_there = matches!(flow.phase, Phase::There | Phase::Lingering);
            (flow.node == node && is_there).then_some(*id)
        };
        let there: Vec<_> = self.flows.iter().filter_map(there).collect();
        let lost = there.iter().filter(|flow| self.is_there(node, **flow)).count();
        for flow in there {
            self.remove(flow, now_ms, out);
        }
        let Some(link) = self.links.get_mut(&node) else { return };
        touch(link, now_ms);
        link.counts.note_lost();
        link.counts.lost += lost as u64;
        if lost > 0 {
            out.log(Note::NodeLost { node: link.node.name.clone(), flows: lost });
        }
        if let Some(secret) = secret {
            (link.id, link.session) = (secret.next(), 0);
        }
    }

    /// Forwards the packets of a flow no longer. It is not told to the node.
    fn remove(&mut self, flow: FlowId, now_ms: u64, out: &mut Out<S>) {
        let Some(Flow { tuple, node, phase, .. }) = self.forget(flow) else { return };
        out.push(Action::Remove { tuple });
        if let (Phase::There, Some(link)) = (phase, self.links.get_mut(&node)) {
            touch(link, now_ms);
            link.counts.active -= 1;
        }
    }

    /// A flow is over for the kernel: it is idle, or its client has begun another connection. One that is being moved stays.
    pub(super) fn release(&mut self, flow: FlowId, now_ms: u64, out: &mut Out<S>) {
        let Some(at) = self.flows.get(&flow) else { return };
        let node = at.node;
        match at.phase {
            Phase::There => send(node, &FromFrontEnd::Release { flow }, out),
            Phase::Lingering => {}
            _ => return,
        }
        self.remove(flow, now_ms, out);
        self.end_retired(out);
    }

    fn forget(&mut self, flow: FlowId) -> Option<Flow> {
        let at = self.flows.remove(&flow)?;
        if self.by_tuple.get(&at.tuple) == Some(&flow) {
            self.by_tuple.remove(&at.tuple);
        }
        Some(at)
    }

    /// Time has passed.
    pub(super) fn handle_time(&mut self, secret: &mut Secret, now_ms: u64, out: &mut Out<S>) {
        while let Some(flow) = pop_due(&mut self.awaited, now_ms) {
            let Some(node) = self.flows.get(&flow).map(|flow| flow.node) else { continue };
            if self.is_shipped(node, flow) {
                send(node, &FromFrontEnd::Release { flow }, out);
                self.take_back(flow, HandoffFailure::Late, now_ms, out);
                if let Some(link) = self.links.get_mut(&node) {
                    link.is_suspect = true;
                }
            }
        }
        while let Some(flow) = pop_due(&mut self.lingering, now_ms) {
            self.remove(flow, now_ms, out);
        }
        let (again, _) = self.waiting.handle_time(now_ms, out);
        again.into_iter().for_each(|connection| out.push(Action::Give(connection)));
        let nodes: Vec<_> = self.links.keys().copied().collect();
        for node in nodes {
            self.look_after(node, secret, now_ms, out);
        }
        self.connect_due(now_ms, out);
        self.end_retired(out);
        self.tell_reachable(out);
    }

    /// Pings a node, or gives it up.
    fn look_after(&mut self, node: NodeId, secret: &mut Secret, now_ms: u64, out: &mut Out<S>) {
        let Some(link) = self.links.get_mut(&node) else { return };
        if link.is_lost(now_ms) {
            if link.is_connected() || link.state == LinkState::Connecting {
                out.push(Action::Disconnect { peer: Peer::Node(node) });
                let why = "it has said nothing for 3 s".to_owned();
                self.handle_closed(node, why, now_ms, out);
            }
            self.lose(node, Some(secret), now_ms, out);
            if let Some(link) = self.links.get_mut(&node) {
                link.heard_ms = now_ms;
            }
        } else if link.take_ping(now_ms) {
            send(node, &FromFrontEnd::Ping, out);
        }
        let Some(link) = self.links.get_mut(&node) else { return };
        if link.loads_due_ms.take_if(|due_ms| *due_ms <= now_ms).is_some() && !link.is_retired {
            out.push(Action::Tell(ToMaster::Loads(link.loads())));
        }
    }

    fn connect_due(&mut self, now_ms: u64, out: &mut Out<S>) {
        for (node, link) in &mut self.links {
            if matches!(link.state, LinkState::Idle { retry_at_ms } if retry_at_ms <= now_ms) {
                link.state = LinkState::Connecting;
                out.push(Action::Connect { node: *node, address: link.node.agent });
            }
        }
    }

    /// Ends links to nodes that no server names, and that have no flow.
    fn end_retired(&mut self, out: &mut Out<S>) {
        if !self.links.values().any(|link| link.is_retired) {
            return;
        }
        let used: BTreeSet<_> = self.flows.values().map(|flow| flow.node).collect();
        self.links.retain(|node, link| {
            let stays = !link.is_retired || used.contains(node);
            if !stays && !matches!(link.state, LinkState::Idle { .. }) {
                out.push(Action::Disconnect { peer: Peer::Node(*node) });
            }
            stays
        });
    }

    /// Tells the server which nodes can be handed connections, where that has changed.
    fn tell_reachable(&mut self, out: &mut Out<S>) {
        for link in self.links.values_mut() {
            let reachable = link.is_reachable();
            if std::mem::replace(&mut link.told_reachable, reachable) != reachable {
                let node = link.node.name.clone();
                if reachable {
                    out.log(Note::NodeReachable { node: node.clone() });
                }
                out.push(Action::Tell(ToMaster::Reachable { node, reachable }));
            }
        }
    }

    /// When time alone changes something.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        let links = self.links.values().map(Link::deadline_ms);
        let queues = [
            self.awaited.front().map(|(due_ms, _)| *due_ms),
            self.lingering.front().map(|(due_ms, _)| *due_ms),
            self.waiting.deadline_ms(),
        ];
        links.chain(queues.into_iter().flatten()).min()
    }

    /// Tells all nodes what an operator has said of one.
    pub(super) fn spread(&self, drain: &Drain, out: &mut Out<S>) {
        for (node, link) in self.links.iter().filter(|(_, link)| link.state == LinkState::Open) {
            tell_drain(*node, link, drain.clone(), out);
        }
    }

    pub(super) fn status(&self) -> Vec<NodeStatus> {
        self.links.values().filter(|link| !link.is_retired).map(Link::status).collect()
    }
}

/// The server is told of the node's counts soon.
/// The node's load has changed.
fn touch(link: &mut Link, now_ms: u64) {
    link.note_due(now_ms + GATHER_MS);
}

/// What is at the node has changed, but not its load: to tell the server of that alone would wake it for nothing.
fn touch_quietly(link: &mut Link, now_ms: u64) {
    link.note_due(now_ms + GATHER_QUIET_MS);
}

fn tell_drain<S>(node: NodeId, link: &Link, drain: Drain, out: &mut Out<S>) {
    let is_yours = drain.node == link.node.name;
    send(node, &FromFrontEnd::Drain { drain, is_yours }, out);
}

fn send<S>(node: NodeId, message: &FromFrontEnd, out: &mut Out<S>) {
    // Only a shipment can be too long.
    if let Some(bytes) = message.to_bytes() {
        out.push(Action::Send { peer: Peer::Node(node), bytes });
    }
}
