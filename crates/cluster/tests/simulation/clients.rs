//! Clients: each asks for something again and again on its connection, and counts the answers.

use std::collections::BTreeSet;

use baton_cluster::Tuple;

use crate::events::{Event, Packet, What};
use crate::host::Entry;
use crate::world::{FRONT_ENDS, World};

/// A connection, as its client sees it.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) tuple: Tuple,
    pub(crate) front_end: usize,
    pub(crate) state: State,
    /// Requests that it will make.
    total: u64,
    pub(crate) answered: u64,
    /// A server has closed it.
    pub(crate) has_ended: bool,
    /// Nodes to which its packets were ever forwarded.
    pub(crate) nodes: BTreeSet<usize>,
    /// The next connection of the client, from the same port.
    next: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    New,
    Asking,
    Thinking,
    Finishing,
    Closed,
    Reset,
}

impl Conn {
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Closed | State::Reset)
    }
}

impl World {
    pub(crate) fn plan_clients(&mut self) {
        let count = self.dice.range(3, 12);
        for conn in 0..count {
            let front_end = self.dice.range(0, FRONT_ENDS as u64) as usize;
            let client = format!("192.0.2.{}:{}", conn % 3 + 1, 40_000 + conn).parse().unwrap();
            let tuple = Tuple::new(client, "10.0.0.1:80".parse().unwrap()).unwrap();
            // Some ports are used twice.
            let next = self.dice.percent(40).then_some(conn + 1_000);
            for id in [Some(conn), next].into_iter().flatten() {
                let new = Conn {
                    tuple,
                    front_end,
                    state: State::New,
                    total: self.dice.range(1, 12),
                    answered: 0,
                    has_ended: false,
                    nodes: BTreeSet::new(),
                    next: next.filter(|_| id == conn),
                };
                self.conns.insert(id, new);
            }
            let at_us = self.dice.range(10_000, 8_000_000);
            self.events.add(at_us, Event::Open { conn });
        }
    }

    /// A connection is made. A SYN on a known pair of ends deletes the flow in the kernel, if that is over. Else the node asks back,
    /// and the client, which knows of no connection there, ends it and sends its SYN again.
    pub(crate) fn open(&mut self, conn: u64) {
        let Conn { front_end, tuple, .. } = self.conns[&conn];
        match self.hosts[front_end].table.get(&tuple).copied() {
            Some(Entry::Over(_)) => {
                self.hosts[front_end].table.remove(&tuple);
                let delay_us = self.dice.range(0, 3_000_000);
                self.after(delay_us, Event::Sweep { host: front_end, tuple });
            }
            Some(entry) => {
                if let Entry::Forward(node) = entry {
                    self.end_at_node(node, tuple);
                }
                self.sum.asked_back += 1;
                return self.after(1_000_000, Event::Open { conn });
            }
            None => {}
        }
        self.conns.get_mut(&conn).unwrap().state = State::Thinking;
        if !self.accept(front_end, conn) {
            return self.reset_arrives(conn);
        }
        self.go_on(conn);
    }

    /// A reset that fits arrives at a node's socket, if its worker has it.
    fn end_at_node(&mut self, node: usize, tuple: Tuple) {
        let is_it = |conn: &&u64| self.conns[*conn].tuple == tuple;
        if let Some(conn) = self.hosts[node].server.clients.keys().find(is_it).copied() {
            self.close_client(node, conn);
        }
    }

    /// Asks, or ends.
    pub(crate) fn go_on(&mut self, conn: u64) {
        let at = self.conns.get_mut(&conn).unwrap();
        if at.state != State::Thinking {
            return;
        }
        let what = if at.answered < at.total {
            at.state = State::Asking;
            What::Request(at.answered)
        } else {
            at.state = State::Finishing;
            What::Finish
        };
        self.repeat(conn, what);
    }

    /// Sends a packet, and again until it is answered.
    pub(crate) fn repeat(&mut self, conn: u64, what: What) {
        let at = &self.conns[&conn];
        let is_awaited = match what {
            What::Request(request) => at.state == State::Asking && at.answered == request,
            What::Finish => at.state == State::Finishing,
        };
        if is_awaited {
            let host = at.front_end;
            let delay_us = self.dice.range(20, 3_000);
            self.after(delay_us, Event::Packet { host, packet: Packet { conn, what } });
            self.after(200_000, Event::Repeat { conn, what });
        }
    }

    pub(crate) fn response_arrives(&mut self, conn: u64, request: u64) {
        let at = self.conns.get_mut(&conn).unwrap();
        if at.state == State::Reset {
            return;
        }
        assert_eq!(
            (at.state, at.answered),
            (State::Asking, request),
            "connection {conn}: an answer too many"
        );
        at.answered += 1;
        at.state = State::Thinking;
        self.sum.answered += 1;
        let think_us = if self.dice.percent(20) { 4_000_000 } else { 50_000 };
        let think_us = self.dice.range(10, think_us);
        self.after(think_us, Event::Next { conn });
    }

    /// A connection is cut off: only a fault may do that.
    pub(crate) fn reset_arrives(&mut self, conn: u64) {
        let at = &self.conns[&conn];
        if at.is_over() {
            return;
        }
        let front_end = at.front_end;
        let is_hurt = |node: &usize| self.hosts[*node].is_hurt || self.was_cut.contains(&(front_end, *node));
        let is_excused = self.hosts[front_end].is_hurt || at.nodes.iter().any(is_hurt);
        assert!(is_excused, "connection {conn} is reset without a fault: {at:?}");
        self.sum.resets += 1;
        self.end_client(conn, State::Reset);
    }

    pub(crate) fn closed_arrives(&mut self, conn: u64) {
        if self.conns[&conn].state == State::Finishing {
            self.end_client(conn, State::Closed);
        }
    }

    fn end_client(&mut self, conn: u64, state: State) {
        let at = self.conns.get_mut(&conn).unwrap();
        at.state = state;
        if let Some(next) = at.next {
            let delay_us = self.dice.range(1_000, 4_000_000);
            self.after(delay_us, Event::Open { conn: next });
        }
    }
}
