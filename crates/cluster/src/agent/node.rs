//! A node's half of the machine: connections that front-ends have given to this host.
//!
//! ```text
//!   Ship ─► Restoring ─► Ready (inert) ─ Take ─► Taken ─ closed ─► forgotten
//!               │          │ Release, 4 s          │ returned
//!               ▼          ▼                       ▼
//!           forgotten   discarded               Freezing ─► Returning ─ Returned ─► forgotten
//! ```
//!
//! The server may refuse a connection: it goes back, too. One whose state cannot be read is given to the server again.
//!
//! Packets of a connection that has been returned may be on their way here still. They are dropped for a second: no socket
//! is left to take them, and the kernel would answer with a reset.

use std::collections::{BTreeMap, VecDeque};

use baton_passport::Passport;

use super::action::{Action, ForServer, Note, Out};
use super::drains::Drains;
use super::inbound::{Connections, Inbound};
use super::kept::{Kept, Phase};
use super::limits::{FLOWS_MAX, LEFT_MS, LINK_FORGOTTEN_MS, STRAGGLERS_MS, UNDER_WAY_MAX};
use super::queue::pop_due;
use super::waiting::Waiting;
use crate::flow::{FlowId, Tuple};
use crate::local::{Drain, Report};
use crate::peer::{FromFrontEnd, FromNode, MessageRefused, RefuseReason, Shipment};

/// The half.
#[derive(Debug)]
pub(super) struct NodeSide<S> {
    pub(super) inbound: Connections,
    /// By this agent's numbers.
    pub(super) kept: BTreeMap<FlowId, Kept<S>>,
    /// Inert sockets, and until when.
    inert: VecDeque<(u64, FlowId)>,
    /// Connections that have left, whose packets are dropped.
    stragglers: VecDeque<(u64, Tuple)>,
    /// Until when; a tuple that came again is not there any more.
    dropped: BTreeMap<Tuple, u64>,
    /// Connections that cannot go back, and that the server does not take yet.
    waiting: Waiting<S>,
    /// When front-ends are to be told how many connections are left, while this node is drained.
    left_due_ms: Option<u64>,
}

impl<S> NodeSide<S> {
    pub(super) fn new() -> Self {
        Self {
            inbound: Connections::new(),
            kept: BTreeMap::new(),
            inert: VecDeque::new(),
            stragglers: VecDeque::new(),
            dropped: BTreeMap::new(),
            waiting: Waiting::new(),
            left_due_ms: None,
        }
    }

    /// Whether it has nothing to look after.
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.dropped.is_empty() && self.waiting.is_empty()
    }

    /// A front-end has said something. The connection is of no use after an error.
    pub(super) fn handle_message(
        &mut self,
        connection: u64,
        message: FromFrontEnd,
        has_server: bool,
        now_ms: u64,
        out: &mut Out<S>,
    ) -> Result<(), MessageRefused> {
        if let FromFrontEnd::Hello { version, link, session } = message {
            self.inbound.handle_hello(connection, (version, link, session), now_ms, out)?;
            self.list(link, now_ms, out);
            return Ok(());
        }
        let link = self.inbound.note_heard(connection, now_ms).ok_or(MessageRefused::Unexpected)?;
        match message {
            FromFrontEnd::Ship(shipment) => self.handle_ship(link, *shipment, has_server, out),
            FromFrontEnd::Take { flow } => self.handle_take(link, flow, now_ms, out),
            FromFrontEnd::Release { flow } => {
                if let Some(flow) = self.inbound.flow(link, flow) {
                    self.handle_release(flow, now_ms, out);
                }
            }
            FromFrontEnd::Returned { flow } => {
                if let Some(flow) = self.inbound.flow(link, flow) {
                    self.handle_returned(flow, now_ms);
                }
            }
            FromFrontEnd::Ping => self.inbound.send(link, &FromNode::Pong, out),
            FromFrontEnd::Drain { drain, is_yours } => {
                if is_yours {
                    self.inbound.note_name(link, drain.node, out);
                    // At once to an operator who has just said it.
                    let due_ms = if drain.reports == 0 { now_ms } else { now_ms + LEFT_MS };
                    self.left_due_ms = Some(self.left_due_ms.map_or(due_ms, |other_ms| other_ms.min(due_ms)));
                }
            }
            FromFrontEnd::Hello { .. } => return Err(MessageRefused::Unexpected),
        }
        Ok(())
    }

    /// Tells a front-end that has connected again what is left of its flows.
    fn list(&mut self, link: u64, now_ms: u64, out: &mut Out<S>) {
        let (mut ready, mut taken, mut returning) = (Vec::new(), Vec::new(), Vec::new());
        for flow in self.inbound.flows(link) {
            let Some(kept) = self.kept.get_mut(&flow) else { continue };
            match &kept.phase {
                // The front-end has given it up with the connection.
                Phase::Restoring { .. } => kept.phase = Phase::Unwanted,
                Phase::Unwanted => {}
                Phase::Ready { .. } => ready.push(kept.remote),
                Phase::Taken { .. } | Phase::Freezing { .. } => taken.push(kept.remote),
                Phase::Returning(shipment) => {
                    taken.push(kept.remote);
                    returning.push(shipment.clone());
                }
            }
        }
        self.inbound.list(link, ready, taken, out);
        for shipment in returning {
            self.inbound.send(link, &FromNode::Return(shipment), out);
        }
        self.inbound.note_news(link, now_ms);
        for drain in out.drains.list() {
            self.inbound.send(link, &FromNode::Drain(drain), out);
        }
    }

    /// Tells all front-ends what an operator has said of a node.
    pub(super) fn spread(&mut self, drain: &Drain, out: &mut Out<S>) {
        self.inbound.tell_all(&FromNode::Drain(drain.clone()), out);
    }

    /// Whether connections of front-ends are to go back: one of them knows this node by a name that is drained.
    pub(super) fn is_drained(&self, drains: &Drains) -> bool {
        self.inbound.names().iter().any(|name| drains.drained(name).is_some())
    }

    /// Says how many connections are left, if that is news.
    fn report_left(&mut self, now_ms: u64, out: &mut Out<S>) {
        let left = self.kept.len() as u64;
        for name in self.inbound.names() {
            let Some(known) = out.drains.drained(&name) else { continue };
            if (known.reports == 0 || known.left != left)
                && let Some(drain) = out.drains.report(&name, left)
            {
                self.spread(&drain, out);
            }
            self.left_due_ms = (left > 0).then_some(now_ms + LEFT_MS);
        }
    }

    fn handle_ship(&mut self, link: u64, shipment: Shipment, has_server: bool, out: &mut Out<S>) {
        let Shipment { flow: remote, tuple, tcp, passport } = shipment;
        let Some(at) = self.inbound.get_mut(link) else { return };
        let is_next = remote > at.last_flow;
        at.last_flow = remote.max(at.last_flow);
        let why = if !is_next
            || passport.peer.map(|peer| (peer.ip().to_canonical(), peer.port()))
                != Some((tuple.client.ip(), tuple.client.port()))
        {
            Some(RefuseReason::Malformed)
        } else if at.name.as_ref().is_some_and(|name| out.drains.drained(name).is_some()) {
            Some(RefuseReason::Drained)
        } else if !has_server {
            Some(RefuseReason::NoServer)
        } else if at.under_way >= UNDER_WAY_MAX || self.kept.len() >= FLOWS_MAX {
            Some(RefuseReason::Full)
        } else {
            None
        };
        if let Some(why) = why {
            return self.inbound.send(link, &FromNode::Refused { flow: remote, why }, out);
        }
        at.under_way += 1;
        let flow = out.flow();
        at.flows.insert(remote, flow);
        let phase = Phase::Restoring { passport: Box::new(passport) };
        self.kept.insert(flow, Kept { link, remote, tuple, worker: None, phase });
        out.push(Action::Restore { flow, tuple, tcp });
    }

    /// A socket has been made, or not.
    pub(super) fn handle_restored(
        &mut self,
        flow: FlowId,
        restored: Result<S, String>,
        now_ms: u64,
        out: &mut Out<S>,
    ) {
        let Some(Kept { link, remote, tuple, phase, .. }) = self.kept.get_mut(&flow) else {
            return restored.map_or((), |socket| out.push(Action::Discard { socket }));
        };
        let (link, remote, tuple) = (*link, *remote, *tuple);
        match (restored, std::mem::replace(phase, Phase::Unwanted)) {
            (Ok(socket), Phase::Restoring { passport }) => {
                *phase = Phase::Ready { passport, socket };
                self.inert.push_back((now_ms + LINK_FORGOTTEN_MS, flow));
                // It has been here before: its packets find a socket again.
                if self.dropped.remove(&tuple).is_some() {
                    out.push(Action::Remove { tuple });
                }
                self.inbound.send(link, &FromNode::Ready { flow: remote }, out);
            }
            (restored, was) => {
                self.forget(flow);
                match restored {
                    Ok(socket) => out.push(Action::Discard { socket }),
                    Err(why) => {
                        out.log(Note::NotRestored { tuple, why });
                        if matches!(was, Phase::Restoring { .. }) {
                            let why = RefuseReason::Restore;
                            self.inbound.send(link, &FromNode::Refused { flow: remote, why }, out);
                        }
                    }
                }
            }
        }
    }

    fn handle_take(&mut self, link: u64, remote: FlowId, now_ms: u64, out: &mut Out<S>) {
        let flow = self.inbound.flow(link, remote);
        let Some((flow, kept)) = flow.and_then(|flow| Some((flow, self.kept.get_mut(&flow)?))) else {
            let why = RefuseReason::TooLate;
            return self.inbound.send(link, &FromNode::Refused { flow: remote, why }, out);
        };
        let phase = std::mem::replace(&mut kept.phase, Phase::Taken { open: 1, is_back: false });
        let Phase::Ready { mut passport, socket } = phase else {
            kept.phase = phase;
            return;
        };
        passport.flow = Some(flow);
        passport.stay = false;
        self.inbound.note_taken(link, now_ms);
        out.push(Action::Give(ForServer::new(flow, socket, passport)));
    }

    /// The server does not take the connection: it goes back to its front-end. If it cannot, the server will take it later.
    pub(super) fn handle_not_given(&mut self, connection: ForServer<S>, now_ms: u64, out: &mut Out<S>) {
        let flow = connection.flow;
        match self.kept.get(&flow).map(|kept| &kept.phase) {
            Some(&Phase::Taken { open, is_back: false }) => {
                self.note_ended(flow, open, now_ms);
                let ForServer { socket, mut passport, .. } = connection;
                passport.stay = true;
                self.freeze(flow, socket, passport, out);
            }
            Some(Phase::Taken { is_back: true, .. }) => {
                if !self.waiting.add(connection, now_ms, out) {
                    self.close(flow, now_ms);
                }
            }
            _ => out.push(Action::Reset { socket: connection.socket }),
        }
    }

    /// The server gives a connection back to its front-end.
    pub(super) fn handle_return(
        &mut self,
        flow: FlowId,
        socket: S,
        passport: Box<Passport>,
        now_ms: u64,
        out: &mut Out<S>,
    ) {
        let Some(Kept { link, phase: Phase::Taken { open, .. }, .. }) = self.kept.get(&flow) else {
            // Its front-end is lost: the client's packets do not arrive here any more.
            return out.push(Action::Reset { socket });
        };
        let (link, open) = (*link, *open);
        self.note_ended(flow, open, now_ms);
        if self.inbound.may_return(link) {
            self.freeze(flow, socket, passport, out);
        } else {
            self.give_back(flow, socket, passport, now_ms, out);
        }
    }

    fn freeze(&mut self, flow: FlowId, socket: S, passport: Box<Passport>, out: &mut Out<S>) {
        let Some(kept) = self.kept.get_mut(&flow) else { return };
        kept.phase = Phase::Freezing { passport };
        if let Some(at) = self.inbound.get_mut(kept.link) {
            at.returning += 1;
        }
        out.push(Action::Freeze { flow, tuple: kept.tuple, socket });
    }

    /// The node's own server answers a request that would have gone back.
    fn give_back(
        &mut self,
        flow: FlowId,
        socket: S,
        mut passport: Box<Passport>,
        now_ms: u64,
        out: &mut Out<S>,
    ) {
        let Some(kept) = self.kept.get_mut(&flow) else { return out.push(Action::Reset { socket }) };
        kept.phase = Phase::Taken { open: 1, is_back: true };
        // Another process may take it.
        kept.worker = None;
        self.inbound.note_begun(kept.link, now_ms);
        (passport.flow, passport.stay) = (Some(flow), true);
        out.push(Action::Give(ForServer::new(flow, socket, passport)));
    }

    /// A socket's state has been read, and the socket closed.
    pub(super) fn handle_frozen(&mut self, flow: FlowId, tcp: Vec<u8>, out: &mut Out<S>) {
        let Some(Kept { link, remote, tuple, phase, .. }) = self.kept.get_mut(&flow) else { return };
        let Phase::Freezing { passport } = phase else { return };
        let mut passport = (**passport).clone();
        passport.flow = None;
        let shipment = Box::new(Shipment { flow: *remote, tuple: *tuple, tcp, passport });
        *phase = Phase::Returning(shipment.clone());
        // If it is too long, the front-end hears nothing of the flow, and resets it with the link. No worker sends that.
        self.inbound.send(*link, &FromNode::Return(shipment), out);
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
        let Some(Kept { link, tuple, phase, .. }) = self.kept.get_mut(&flow) else {
            return out.push(Action::Reset { socket });
        };
        let (link, tuple) = (*link, *tuple);
        if !matches!(phase, Phase::Freezing { .. }) {
            return;
        }
        // Outside of all counts, until it is known where it goes.
        let Phase::Freezing { passport } = std::mem::replace(phase, Phase::Taken { open: 0, is_back: true })
        else {
            return;
        };
        if let Some(at) = self.inbound.get_mut(link) {
            at.returning -= 1;
        }
        out.log(Note::NotRestored { tuple, why });
        self.give_back(flow, socket, passport, now_ms, out);
    }

    fn handle_returned(&mut self, flow: FlowId, now_ms: u64) {
        if let Some(Kept { phase: Phase::Returning(_), .. }) = self.kept.get(&flow) {
            self.forget_frozen(flow, now_ms);
        }
    }

    fn handle_release(&mut self, flow: FlowId, now_ms: u64, out: &mut Out<S>) {
        let Some(kept) = self.kept.get_mut(&flow) else { return };
        match &kept.phase {
            Phase::Restoring { .. } | Phase::Unwanted => kept.phase = Phase::Unwanted,
            Phase::Ready { .. } => self.discard(flow, out),
            Phase::Taken { open, .. } => {
                let open = *open;
                self.note_ended(flow, open, now_ms);
                self.forget(flow);
            }
            Phase::Freezing { .. } | Phase::Returning(_) => self.forget_frozen(flow, now_ms),
        }
    }

    fn discard(&mut self, flow: FlowId, out: &mut Out<S>) {
        if let Some(Kept { phase: Phase::Ready { .. }, .. }) = self.kept.get(&flow)
            && let Some(Kept { phase: Phase::Ready { socket, .. }, .. }) = self.forget(flow)
        {
            out.push(Action::Discard { socket });
        }
    }

    /// The server says what has become of requests.
    pub(super) fn handle_report(&mut self, report: &Report, now_ms: u64) {
        for flow in &report.taken {
            if let Some(kept) = self.kept.get_mut(flow) {
                kept.worker = Some(report.worker);
            }
        }
        for flow in &report.begun {
            if let Some(Kept { link, phase: Phase::Taken { open, .. }, .. }) = self.kept.get_mut(flow) {
                *open += 1;
                self.inbound.note_begun(*link, now_ms);
            }
        }
        for flow in &report.ended {
            if let Some(Kept { link, phase: Phase::Taken { open, .. }, .. }) = self.kept.get_mut(flow)
                && let Some(left) = open.checked_sub(1)
            {
                *open = left;
                self.inbound.note_ended(*link, 1, now_ms);
            }
        }
        for flow in &report.gone {
            if let Some(Kept { phase: Phase::Taken { .. }, .. }) = self.kept.get(flow) {
                self.close(*flow, now_ms);
            }
        }
    }

    /// The server has ended, with all its sockets.
    pub(super) fn handle_server_gone(&mut self, now_ms: u64) {
        self.close_taken(|_| true, now_ms);
    }

    /// A worker has ended, with the sockets that it had.
    pub(super) fn handle_worker_ended(&mut self, worker: u32, now_ms: u64) {
        self.close_taken(|kept| kept.worker == Some(worker), now_ms);
    }

    fn close_taken(&mut self, is_closed: impl Fn(&Kept<S>) -> bool, now_ms: u64) {
        let closed = self.kept.iter().filter(|(flow, kept)| {
            matches!(kept.phase, Phase::Taken { .. }) && !self.waiting.contains(**flow) && is_closed(kept)
        });
        let closed = closed.map(|(flow, _)| *flow);
        closed.collect::<Vec<_>>().into_iter().for_each(|flow| self.close(flow, now_ms));
    }

    /// A connection is closed.
    fn close(&mut self, flow: FlowId, now_ms: u64) {
        let Some(kept) = self.kept.get(&flow) else { return };
        let (link, remote) = (kept.link, kept.remote);
        if let Phase::Taken { open, .. } = kept.phase {
            self.note_ended(flow, open, now_ms);
        }
        self.forget(flow);
        self.inbound.note_gone(link, remote, now_ms);
    }

    fn note_ended(&mut self, flow: FlowId, requests: u64, now_ms: u64) {
        if let Some(kept) = self.kept.get(&flow) {
            self.inbound.note_ended(kept.link, requests, now_ms);
        }
    }

    /// Forgets a connection whose packets are dropped here.
    fn forget_frozen(&mut self, flow: FlowId, now_ms: u64) {
        if let Some(kept) = self.forget(flow) {
            self.stragglers.push_back((now_ms + STRAGGLERS_MS, kept.tuple));
            self.dropped.insert(kept.tuple, now_ms + STRAGGLERS_MS);
        }
    }

    fn forget(&mut self, flow: FlowId) -> Option<Kept<S>> {
        let kept = self.kept.remove(&flow)?;
        if let Some(at) = self.inbound.get_mut(kept.link) {
            at.forget(kept.remote, flow, &kept.phase);
        }
        Some(kept)
    }

    /// Time has passed.
    pub(super) fn handle_time(&mut self, now_ms: u64, out: &mut Out<S>) {
        while let Some(flow) = pop_due(&mut self.inert, now_ms) {
            self.discard(flow, out);
        }
        while let Some(tuple) = pop_due(&mut self.stragglers, now_ms) {
            if self.dropped.get(&tuple).is_some_and(|due_ms| *due_ms <= now_ms) {
                self.dropped.remove(&tuple);
                out.push(Action::Remove { tuple });
            }
        }
        for at in self.inbound.take_forgotten(now_ms) {
            out.log(Note::FrontEndRefused {
                why: "it has said nothing for 4 s: its connections are forgotten".into(),
            });
            self.forget_link(&at, now_ms, out);
        }
        let (again, late) = self.waiting.handle_time(now_ms, out);
        late.into_iter().for_each(|flow| self.close(flow, now_ms));
        for connection in again {
            match self.kept.contains_key(&connection.flow) {
                true => out.push(Action::Give(connection)),
                // Its front-end has released it, or is lost.
                false => out.push(Action::Reset { socket: connection.socket }),
            }
        }
        self.inbound.report(now_ms, out);
        if self.left_due_ms.take_if(|due_ms| *due_ms <= now_ms).is_some() {
            self.report_left(now_ms, out);
        }
    }

    fn forget_link(&mut self, at: &Inbound, now_ms: u64, out: &mut Out<S>) {
        out.drains.is_news |= at.name.is_some();
        for flow in at.flows.values() {
            match self.kept.get(flow).map(|kept| &kept.phase) {
                Some(Phase::Ready { .. }) => self.discard(*flow, out),
                Some(Phase::Freezing { .. } | Phase::Returning(_)) => self.forget_frozen(*flow, now_ms),
                _ => _ = self.forget(*flow),
            }
        }
    }

    /// When time alone changes something.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        let queues = [
            self.inert.front().map(|(due_ms, _)| *due_ms),
            self.stragglers.front().map(|(due_ms, _)| *due_ms),
            self.waiting.deadline_ms(),
            self.inbound.deadline_ms(),
            self.left_due_ms,
        ];
        queues.into_iter().flatten().min()
    }
}
