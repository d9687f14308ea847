//! Links of front-ends, as a node sees them.

use std::collections::{BTreeMap, BTreeSet};

use super::action::{Action, Out, Peer};
use super::kept::Phase;
use super::limits::{
    CONNECTIONS_MAX, GATHER_MS, GATHER_QUIET_MS, LINK_FORGOTTEN_MS, LINKS_MAX, NODE_LOST_MS, UNDER_WAY_MAX,
};
use crate::flow::FlowId;
use crate::peer::{FLOWS_PER_MESSAGE_MAX, FromNode, MessageRefused, VERSION};

/// All of them, and their connections.
#[derive(Debug)]
pub(super) struct Connections {
    /// Which link a connection belongs to; `None`: it has not said so yet.
    connections: BTreeMap<u64, Connection>,
    links: BTreeMap<u64, Inbound>,
}

#[derive(Debug)]
struct Connection {
    link: Option<u64>,
    since_ms: u64,
}

/// A link.
#[derive(Debug)]
pub(super) struct Inbound {
    /// `None`: the connection has ended, and another one may come.
    connection: Option<u64>,
    session: u64,
    heard_ms: u64,
    /// How the front-end names this node; `None`: no word about it was said.
    pub(super) name: Option<String>,
    /// This agent's numbers, by the front-end's.
    pub(super) flows: BTreeMap<FlowId, FlowId>,
    /// The front-end's latest number.
    pub(super) last_flow: FlowId,
    /// Sockets that are being restored, or inert.
    pub(super) under_way: usize,
    /// Connections on their way back.
    pub(super) returning: usize,
    taken: u64,
    begun_kept: u64,
    ended: u64,
    gone: Vec<FlowId>,
    /// When the front-end is to be told.
    news_due_ms: Option<u64>,
}

impl Connections {
    pub(super) fn new() -> Self {
        Self { connections: BTreeMap::new(), links: BTreeMap::new() }
    }

    /// A front-end has connected. `false`: there are too many.
    pub(super) fn accept(&mut self, connection: u64, now_ms: u64) -> bool {
        let has_room = self.connections.len() < CONNECTIONS_MAX;
        if has_room {
            self.connections.insert(connection, Connection { link: None, since_ms: now_ms });
        }
        has_room
    }

    /// A connection has ended.
    pub(super) fn handle_closed(&mut self, connection: u64) {
        let link = self.connections.remove(&connection).and_then(|connection| connection.link);
        if let Some(at) = link.and_then(|link| self.links.get_mut(&link))
            && at.connection == Some(connection)
        {
            at.connection = None;
        }
    }

    /// A front-end says which link it is.
    pub(super) fn handle_hello<S>(
        &mut self,
        connection: u64,
        (version, link, session): (u32, u64, u64),
        now_ms: u64,
        out: &mut Out<S>,
    ) -> Result<(), MessageRefused> {
        if version != VERSION {
            return Err(MessageRefused::Version(version));
        }
        match self.connections.get_mut(&connection) {
            Some(at @ Connection { link: None, .. }) => at.link = Some(link),
            _ => return Err(MessageRefused::Unexpected),
        }
        let resumed = self.links.contains_key(&link);
        if !resumed && self.links.len() >= LINKS_MAX {
            return Err(MessageRefused::Unexpected);
        }
        let at = self.links.entry(link).or_insert_with(|| Inbound::new(now_ms));
        // A connection that was made earlier may arrive later.
        if session <= at.session {
            return Err(MessageRefused::Unexpected);
        }
        (at.session, at.heard_ms) = (session, now_ms);
        if let Some(old) = at.connection.replace(connection) {
            self.connections.remove(&old);
            out.push(Action::Disconnect { peer: Peer::FrontEnd(old) });
        }
        self.send(link, &FromNode::Welcome { version: VERSION, resumed }, out);
        Ok(())
    }

    /// A front-end has said something: the link of its connection.
    pub(super) fn note_heard(&mut self, connection: u64, now_ms: u64) -> Option<u64> {
        let link = self.connections.get(&connection)?.link?;
        self.links.get_mut(&link)?.heard_ms = now_ms;
        Some(link)
    }

    /// A front-end knows this node by a name.
    pub(super) fn note_name<S>(&mut self, link: u64, name: String, out: &mut Out<S>) {
        if let Some(at) = self.links.get_mut(&link) {
            out.drains.is_news |= at.name.as_ref() != Some(&name);
            at.name = Some(name);
        }
    }

    /// By which names front-ends know this node.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.links.values().filter_map(|at| at.name.clone()).collect()
    }

    pub(super) fn get_mut(&mut self, link: u64) -> Option<&mut Inbound> {
        self.links.get_mut(&link)
    }

    /// This agent's number of a flow.
    pub(super) fn flow(&self, link: u64, remote: FlowId) -> Option<FlowId> {
        self.links.get(&link)?.flows.get(&remote).copied()
    }

    pub(super) fn flows(&self, link: u64) -> Vec<FlowId> {
        self.links.get(&link).map(|at| at.flows.values().copied().collect()).unwrap_or_default()
    }

    /// Whether one more connection may go back to the front-end now.
    pub(super) fn may_return(&self, link: u64) -> bool {
        self.links.get(&link).is_some_and(|at| at.connection.is_some() && at.returning < UNDER_WAY_MAX)
    }

    /// An inert socket is given to the server.
    pub(super) fn note_taken(&mut self, link: u64, now_ms: u64) {
        if let Some(at) = self.links.get_mut(&link) {
            at.under_way -= 1;
            at.taken += 1;
            // The front-end has counted it itself, and is told with what becomes of it.
            at.note_due(now_ms + GATHER_QUIET_MS);
        }
    }

    pub(super) fn note_begun(&mut self, link: u64, now_ms: u64) {
        if let Some(at) = self.links.get_mut(&link) {
            at.begun_kept += 1;
            at.note_news(now_ms);
        }
    }

    pub(super) fn note_ended(&mut self, link: u64, requests: u64, now_ms: u64) {
        if let Some(at) = self.links.get_mut(&link) {
            at.ended += requests;
            at.note_news(now_ms);
        }
    }

    pub(super) fn note_gone(&mut self, link: u64, remote: FlowId, now_ms: u64) {
        if let Some(at) = self.links.get_mut(&link) {
            at.gone.push(remote);
            at.note_news(now_ms);
        }
    }

    pub(super) fn note_news(&mut self, link: u64, now_ms: u64) {
        if let Some(at) = self.links.get_mut(&link) {
            at.note_news(now_ms);
        }
    }

    /// Lists flows behind a welcome. Those that are gone since come first: otherwise the front-end would reset them. So do
    /// totals: the front-end learns how many connections it told the node in vain to take.
    pub(super) fn list<S>(&mut self, link: u64, ready: Vec<FlowId>, taken: Vec<FlowId>, out: &mut Out<S>) {
        self.send_gone(link, out);
        self.send_totals(link, out);
        let mut lists: Vec<(Vec<FlowId>, Vec<FlowId>)> = Vec::new();
        lists.extend(ready.chunks(FLOWS_PER_MESSAGE_MAX).map(|ready| (ready.to_vec(), Vec::new())));
        lists.extend(taken.chunks(FLOWS_PER_MESSAGE_MAX).map(|taken| (Vec::new(), taken.to_vec())));
        for (ready, taken) in lists {
            self.send(link, &FromNode::Flows { ready, taken, last: false }, out);
        }
        self.send(link, &FromNode::Flows { ready: Vec::new(), taken: Vec::new(), last: true }, out);
    }

    fn send_totals<S>(&mut self, link: u64, out: &mut Out<S>) {
        let Some(at) = self.links.get(&link) else { return };
        let totals = FromNode::Totals { taken: at.taken, begun_kept: at.begun_kept, ended: at.ended };
        self.send(link, &totals, out);
    }

    fn send_gone<S>(&mut self, link: u64, out: &mut Out<S>) {
        let Some(at) = self.links.get_mut(&link) else { return };
        let gone = std::mem::take(&mut at.gone);
        for flows in gone.chunks(FLOWS_PER_MESSAGE_MAX) {
            self.send(link, &FromNode::Gone { flows: flows.to_vec() }, out);
        }
    }

    /// Tells front-ends what is due.
    pub(super) fn report<S>(&mut self, now_ms: u64, out: &mut Out<S>) {
        let due = |(link, at): (&u64, &mut Inbound)| {
            let is_due =
                at.connection.is_some() && at.news_due_ms.take_if(|due_ms| *due_ms <= now_ms).is_some();
            is_due.then_some(*link)
        };
        let due: Vec<_> = self.links.iter_mut().filter_map(due).collect();
        for link in due {
            self.send_gone(link, out);
            self.send_totals(link, out);
        }
        self.close_silent(now_ms, out);
    }

    /// Closes connections over which nothing has come.
    fn close_silent<S>(&mut self, now_ms: u64, out: &mut Out<S>) {
        let links = &mut self.links;
        self.connections.retain(|id, connection| {
            let at = connection.link.and_then(|link| links.get_mut(&link));
            let heard_ms = at.as_ref().map_or(connection.since_ms, |at| at.heard_ms);
            let stays = now_ms < heard_ms + NODE_LOST_MS;
            if !stays {
                out.push(Action::Disconnect { peer: Peer::FrontEnd(*id) });
                if let Some(at) = at {
                    at.connection = None;
                }
            }
            stays
        });
    }

    /// Links of which nothing has been heard for too long.
    pub(super) fn take_forgotten(&mut self, now_ms: u64) -> Vec<Inbound> {
        let is_forgotten =
            |at: &Inbound| at.connection.is_none() && now_ms >= at.heard_ms + LINK_FORGOTTEN_MS;
        let forgotten: Vec<_> =
            self.links.iter().filter(|(_, at)| is_forgotten(at)).map(|(link, _)| *link).collect();
        forgotten.into_iter().filter_map(|link| self.links.remove(&link)).collect()
    }

    pub(super) fn deadline_ms(&self) -> Option<u64> {
        let links = self.links.values().map(|at| match at.connection {
            Some(_) => at.news_due_ms.unwrap_or(u64::MAX).min(at.heard_ms + NODE_LOST_MS),
            None => at.heard_ms + LINK_FORGOTTEN_MS,
        });
        let silent = self.connections.values().filter(|connection| connection.link.is_none());
        links.chain(silent.map(|connection| connection.since_ms + NODE_LOST_MS)).min()
    }

    /// Front-ends that are connected.
    pub(super) fn connected(&self) -> usize {
        self.links.values().filter(|at| at.connection.is_some()).count()
    }

    pub(super) fn links(&self) -> usize {
        self.links.len()
    }

    /// Tells all front-ends that are connected.
    pub(super) fn tell_all<S>(&mut self, message: &FromNode, out: &mut Out<S>) {
        for link in self.links.keys().copied().collect::<Vec<_>>() {
            self.send(link, message, out);
        }
    }

    pub(super) fn send<S>(&mut self, link: u64, message: &FromNode, out: &mut Out<S>) {
        let connection = self.links.get(&link).and_then(|at| at.connection);
        if let (Some(connection), Some(bytes)) = (connection, message.to_bytes()) {
            out.push(Action::Send { peer: Peer::FrontEnd(connection), bytes });
        }
    }
}

impl Inbound {
    fn new(now_ms: u64) -> Self {
        Self {
            connection: None,
            session: 0,
            heard_ms: now_ms,
            name: None,
            flows: BTreeMap::new(),
            last_flow: 0,
            under_way: 0,
            returning: 0,
            taken: 0,
            begun_kept: 0,
            ended: 0,
            gone: Vec::new(),
            news_due_ms: None,
        }
    }

    fn note_news(&mut self, now_ms: u64) {
        self.note_due(now_ms + GATHER_MS);
    }

    fn note_due(&mut self, due_ms: u64) {
        self.news_due_ms = Some(self.news_due_ms.map_or(due_ms, |earlier| earlier.min(due_ms)));
    }

    /// A flow is over.
    pub(super) fn forget<S>(&mut self, remote: FlowId, flow: FlowId, phase: &Phase<S>) {
        if self.flows.get(&remote) == Some(&flow) {
            self.flows.remove(&remote);
        }
        match phase {
            Phase::Restoring { .. } | Phase::Unwanted | Phase::Ready { .. } => self.under_way -= 1,
            Phase::Freezing { .. } | Phase::Returning(_) => self.returning -= 1,
            Phase::Taken { .. } => {}
        }
    }
}
