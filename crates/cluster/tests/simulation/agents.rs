//! The process around the machine: does what it wants, and brings it messages.

use baton_cluster::Tuple;
use baton_cluster::agent::{Action, ForServer, Handoff, HandoffAgent, HandoffFailure, NodeId, Note, Peer};
use baton_cluster::local::ToMaster;
use baton_cluster::peer::{FromFrontEnd, FromNode};

use crate::events::{Event, ToAgent};
use crate::host::{Entry, Handle, Owner};
use crate::links::Connection;
use crate::world::{FRONT_ENDS, World};

impl World {
    /// Gives an agent some input, and does what it wants.
    pub(crate) fn with_agent(&mut self, host: usize, input: impl FnOnce(&mut HandoffAgent<Handle>, u64)) {
        let now_ms = self.now_ms();
        let Some(agent) = &mut self.hosts[host].agent else { return };
        input(agent, now_ms);
        self.act(host);
        let Some(agent) = &self.hosts[host].agent else { return };
        let Some(due_ms) = agent.deadline_ms() else { return };
        if self.hosts[host].wake_ms.is_none_or(|wake_ms| due_ms < wake_ms) {
            self.hosts[host].wake_ms = Some(due_ms);
            let life = self.hosts[host].life;
            self.events.add((due_ms * 1_000).max(self.now_us), Event::Wake { host, life });
        }
    }

    pub(crate) fn wake(&mut self, host: usize, life: u64) {
        if self.hosts[host].life != life {
            return;
        }
        self.hosts[host].wake_ms = None;
        self.with_agent(host, HandoffAgent::handle_time);
        let now_ms = self.now_ms();
        if let Some(due_ms) = self.hosts[host].agent.as_ref().and_then(HandoffAgent::deadline_ms) {
            assert!(due_ms > now_ms, "{}: due again at once", self.hosts[host].name);
        }
    }

    fn act(&mut self, host: usize) {
        while let Some(action) = self.hosts[host].agent.as_mut().and_then(HandoffAgent::next_action) {
            if !matches!(action, Action::Send { .. }) {
                self.tell(|| format!("  {}: {action:?}", self.hosts[host].name));
            }
            self.act_one(host, action);
        }
    }

    fn act_one(&mut self, host: usize, action: Action<Handle>) {
        let life = self.hosts[host].life;
        match action {
            Action::Connect { node, address } => {
                let to = (FRONT_ENDS..self.hosts.len()).find(|to| Self::node(*to).agent == address).unwrap();
                self.names.insert((host, life, node), to);
                let delay_us = self.dice.range(100, 2_000);
                self.after(delay_us, Event::Connected { host, life, node, to });
            }
            Action::Disconnect { peer } => self.disconnect(host, peer),
            Action::Send { peer, bytes } => self.send(host, peer, bytes),
            Action::Freeze { flow, tuple, socket } => self.freeze(host, flow, tuple, socket),
            Action::Restore { flow, tuple, tcp } => {
                let restored = match self.dice.percent(2) {
                    // A front-end that cannot restore what was there a moment ago is a fault.
                    true if Self::is_node(host) => Err("no memory".into()),
                    _ => self.restore(host, tuple, &tcp),
                };
                self.input(host, |agent, now_ms| agent.handle_restored(flow, restored, now_ms));
            }
            Action::Hold { tuple } => _ = self.hosts[host].table.insert(tuple, Entry::Held),
            Action::Forward { tuple, next_hop } => {
                let to =
                    (FRONT_ENDS..self.hosts.len()).find(|to| Self::node(*to).next_hop == next_hop).unwrap();
                let old = self.hosts[host].table.insert(tuple, Entry::Forward(to));
                assert_eq!(old, Some(Entry::Held), "forwarded without having been held");
                let conns = self.conns.values_mut().filter(|conn| conn.tuple == tuple && !conn.is_over());
                conns.for_each(|conn| _ = conn.nodes.insert(to));
            }
            Action::End { tuple } => {
                let Some(Entry::Forward(to)) = self.hosts[host].table.get(&tuple).copied() else { return };
                self.hosts[host].table.insert(tuple, Entry::Over(to));
            }
            Action::Remove { tuple } => _ = self.hosts[host].table.remove(&tuple),
            Action::Give(connection) => {
                self.owner(host, connection.socket.conn, Owner::HandoffAgent);
                let server = &self.hosts[host].server;
                if !server.is_up || self.dice.percent(2) {
                    self.input(host, |agent, now_ms| agent.handle_not_given(connection, now_ms));
                } else {
                    let life = server.life;
                    let ForServer { socket, passport, .. } = connection;
                    self.owner(host, socket.conn, Owner::ToServer);
                    let delay_us = self.dice.range(10, 500);
                    self.after(delay_us, Event::ToServer { host, life, handle: socket, passport });
                }
            }
            Action::Discard { socket } => self.close(host, socket.conn, None),
            Action::Reset { socket } => {
                let conn = socket.conn;
                self.close(host, conn, Some(Event::Reset { conn }));
            }
            Action::Tell(message) => self.hear(host, message),
            Action::Log(note) => self.note(&note),
        }
    }

    /// Input while actions are done: the rest of them follows.
    fn input(&mut self, host: usize, input: impl FnOnce(&mut HandoffAgent<Handle>, u64)) {
        let now_ms = self.now_ms();
        if let Some(agent) = &mut self.hosts[host].agent {
            input(agent, now_ms);
        }
    }

    fn note(&mut self, note: &Note) {
        match note {
            Note::HandoffFailed { why: HandoffFailure::Late, .. } => self.sum.late += 1,
            Note::NodeLost { .. } => self.sum.lost_nodes += 1,
            _ => {}
        }
    }

    fn freeze(&mut self, host: usize, flow: u64, tuple: Tuple, socket: Handle) {
        let at = &self.hosts[host].sockets[&socket.conn];
        if at.is_finished || self.dice.percent(2) {
            let why = "the client has closed its half".to_owned();
            return self.input(host, |agent, now_ms| agent.handle_not_frozen(flow, socket, why, now_ms));
        }
        self.hosts[host].table.insert(tuple, Entry::Held);
        let tcp = self.dump(host, socket.conn);
        self.input(host, |agent, now_ms| agent.handle_frozen(flow, tcp, now_ms));
    }

    /// A connection is there, or there is no process at the other end.
    pub(crate) fn connected(&mut self, host: usize, life: u64, node: NodeId, to: usize) {
        if self.hosts[host].life != life || self.hosts[host].agent.is_none() {
            return;
        }
        if self.cut.contains(&(host, to)) {
            return; // The agent's own patience ends.
        }
        let front_end = self.line_of(host, node);
        if front_end.is_some() {
            return;
        }
        let line = Connection {
            front_end: host,
            node: to,
            lives: (life, self.hosts[to].life),
            arrives_us: (0, 0),
            is_closed: (false, false),
        };
        let now_ms = self.now_ms();
        if self.hosts[to].agent.is_none() {
            return self.with_agent(host, |agent, now_ms| {
                agent.handle_closed(Peer::Node(node), "connection refused".into(), now_ms);
            });
        }
        let line = self.lines.open(line);
        let accepted = self.hosts[to].agent.as_mut().is_some_and(|agent| agent.handle_accepted(line, now_ms));
        assert!(accepted, "too many connections");
        self.with_agent(to, |_, _| {});
        self.with_agent(host, |agent, _| agent.handle_connected(node));
    }

    fn line_of(&self, host: usize, node: NodeId) -> Option<u64> {
        let to = *self.names.get(&(host, self.hosts[host].life, node))?;
        self.lines.to_node(host, to)
    }

    fn node_id(&self, host: usize, to: usize) -> Option<NodeId> {
        let is_it = |((of, life, _), node): &(&(usize, u64, NodeId), &usize)| {
            *of == host && *life == self.hosts[host].life && **node == to
        };
        self.names.iter().filter(is_it).map(|((_, _, node), _)| *node).next_back()
    }

    fn send(&mut self, host: usize, peer: Peer, bytes: Vec<u8>) {
        let (line, to_node) = match peer {
            Peer::Node(node) => (self.line_of(host, node), true),
            Peer::FrontEnd(line) => (Some(line), false),
        };
        let Some(line) = line else { return };
        let slow_us = if self.faults.slow && self.dice.percent(3) { 900_000 } else { 400 };
        let delay_us = self.dice.range(20, slow_us);
        let Some(at) = self.lines.lines.get_mut(&line) else { return };
        let arrives_us = if to_node { &mut at.arrives_us.0 } else { &mut at.arrives_us.1 };
        *arrives_us = (self.now_us + delay_us).max(*arrives_us);
        self.events.add(*arrives_us, Event::Bytes { line, to_node, bytes });
    }

    pub(crate) fn bytes_arrive(&mut self, line: u64, to_node: bool, bytes: &[u8]) {
        let Some(at) = self.lines.lines.get(&line) else { return };
        let (front_end, node) = (at.front_end, at.node);
        if self.cut.contains(&(front_end, node)) {
            // TCP repeats it: it is later, and so is all that follows.
            let at = self.lines.lines.get_mut(&line).unwrap();
            let arrives_us = if to_node { &mut at.arrives_us.0 } else { &mut at.arrives_us.1 };
            *arrives_us = (*arrives_us).max(self.now_us + 200_000);
            let bytes = bytes.to_vec();
            return self.after(200_000, Event::Bytes { line, to_node, bytes });
        }
        let (host, life, is_closed) = match to_node {
            true => (node, at.lives.1, at.is_closed.1),
            false => (front_end, at.lives.0, at.is_closed.0),
        };
        if is_closed || self.hosts[host].life != life {
            return;
        }
        let peer = match to_node {
            true => Peer::FrontEnd(line),
            false => Peer::Node(self.node_id(front_end, node).expect("a node that was connected to")),
        };
        let body = &bytes[4..];
        self.tell(|| {
            let said = match to_node {
                true => format!("{:?}", FromFrontEnd::from_body(body)),
                false => format!("{:?}", FromNode::from_body(body)),
            };
            format!("  {} hears {said}", self.hosts[host].name)
        });
        if !to_node
            && matches!(FromNode::from_body(body), Ok(FromNode::Flows { ready, .. }) if !ready.is_empty())
        {
            self.sum.taken_again += 1;
        }
        self.with_agent(host, |agent, now_ms| agent.handle_body(peer, body, now_ms));
    }

    /// An agent has closed a connection: the other end hears of it behind what is on its way.
    fn disconnect(&mut self, host: usize, peer: Peer) {
        let line = match peer {
            Peer::Node(node) => self.line_of(host, node),
            Peer::FrontEnd(line) => Some(line),
        };
        if let Some(line) = line {
            self.close_line(line, host);
        }
    }

    pub(crate) fn close_line(&mut self, line: u64, by: usize) {
        let delay_us = self.dice.range(20, 2_000);
        let Some(at) = self.lines.lines.get_mut(&line) else { return };
        let is_front_end = at.front_end == by;
        if is_front_end {
            at.is_closed.0 = true;
        } else {
            at.is_closed.1 = true;
        }
        let behind_us = if is_front_end { at.arrives_us.0 } else { at.arrives_us.1 };
        let at_us = behind_us.max(self.now_us + delay_us);
        self.events.add(at_us, Event::LineClosed { line, at_node: is_front_end });
    }

    pub(crate) fn line_closed(&mut self, line: u64, at_node: bool) {
        let Some(at) = self.lines.lines.get_mut(&line) else { return };
        let (front_end, node, lives) = (at.front_end, at.node, at.lives);
        if self.cut.contains(&(front_end, node)) {
            return self.after(200_000, Event::LineClosed { line, at_node });
        }
        let is_closed = if at_node { &mut at.is_closed.1 } else { &mut at.is_closed.0 };
        if std::mem::replace(is_closed, true) {
            return;
        }
        let (host, life) = if at_node { (node, lives.1) } else { (front_end, lives.0) };
        if self.hosts[host].life != life {
            return;
        }
        let peer = match at_node {
            true => Peer::FrontEnd(line),
            false => Peer::Node(self.node_id(front_end, node).expect("a node that was connected to")),
        };
        self.with_agent(host, |agent, now_ms| agent.handle_closed(peer, "closed".into(), now_ms));
    }

    /// What comes from workers.
    pub(crate) fn worker_says(&mut self, host: usize, life: u64, server_life: u64, message: ToAgent) {
        if self.hosts[host].life != life {
            return;
        }
        let is_counted = self.hosts[host].server.life == server_life;
        match message {
            ToAgent::Handoff { node, handle, passport } => {
                self.owner(host, handle.conn, Owner::HandoffAgent);
                let tuple = self.conns[&handle.conn].tuple;
                let handoff = Handoff { node, socket: handle, tuple, passport, is_counted };
                self.with_agent(host, |agent, now_ms| agent.handle_handoff(handoff, now_ms));
            }
            ToAgent::Return { flow, handle, passport } => {
                self.owner(host, handle.conn, Owner::HandoffAgent);
                self.with_agent(host, |agent, now_ms| agent.handle_return(flow, handle, passport, now_ms));
            }
            ToAgent::Report(report) => {
                self.with_agent(host, |agent, now_ms| agent.handle_report(&report, now_ms));
            }
        }
    }

    pub(crate) fn sweep(&mut self, host: usize, tuple: Tuple) {
        if !self.hosts[host].table.contains_key(&tuple) {
            self.with_agent(host, |agent, now_ms| agent.handle_idle(tuple, now_ms));
        }
    }

    pub(crate) fn kill_agent(&mut self, host: usize) {
        if self.hosts[host].agent.take().is_none() {
            return;
        }
        let at = &mut self.hosts[host];
        at.life += 1;
        at.is_hurt = true;
        at.wake_ms = None;
        at.table.clear();
        at.server.nodes.clear();
        let lines = self.lines.of(host);
        lines.into_iter().for_each(|line| self.close_line(line, host));
        self.close_all(host, &[Owner::HandoffAgent, Owner::Inert, Owner::ToAgent]);
    }

    pub(crate) fn cut(&mut self, front_end: usize, node: usize, breaks: bool) {
        self.cut.insert((front_end, node));
        self.was_cut.insert((front_end, node));
        if breaks && let Some(line) = self.lines.to_node(front_end, node) {
            // What is on its way is lost, and both ends hear of the end, some time.
            self.events.take(|event| matches!(event, Event::Bytes { line: of, .. } if *of == line));
            for at_node in [false, true] {
                let longest_us = if self.dice.percent(50) { 4_000_000 } else { 5_000 };
                let delay_us = self.dice.range(10, longest_us);
                self.after(delay_us, Event::LineClosed { line, at_node });
            }
        }
    }

    pub(crate) fn heal(&mut self, front_end: usize, node: usize) {
        self.cut.remove(&(front_end, node));
    }

    pub(crate) fn hear(&mut self, host: usize, message: ToMaster) {
        let name = self.hosts[host].name.clone();
        let server = &mut self.hosts[host].server;
        if !server.is_up {
            return;
        }
        match message {
            ToMaster::Reachable { node, reachable } => {
                server.nodes.entry(node).or_default().is_reachable = reachable;
            }
            ToMaster::Loads(loads) => {
                let view = server.nodes.entry(loads.node.clone()).or_default();
                view.loads = loads;
                assert!(view.load().is_some(), "{name}: more requests have ended than begun: {view:?}");
            }
            ToMaster::Drains { drains, here } => (server.drains, server.gives_back) = (drains, here),
            ToMaster::Refused { .. } | ToMaster::Status(_) => panic!("not by the machine"),
        }
    }
}
