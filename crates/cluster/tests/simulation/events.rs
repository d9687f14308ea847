//! What is going to happen, in order of time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use baton_cluster::Tuple;
use baton_cluster::agent::NodeId;
use baton_cluster::local::Report;
use baton_passport::Passport;

use crate::host::Handle;

#[derive(Debug)]
pub(crate) enum Event {
    /// An agent's time has come.
    Wake {
        host: usize,
        life: u64,
    },
    Connected {
        host: usize,
        life: u64,
        node: NodeId,
        to: usize,
    },
    Bytes {
        line: u64,
        to_node: bool,
        bytes: Vec<u8>,
    },
    LineClosed {
        line: u64,
        at_node: bool,
    },
    /// A client begins.
    Open {
        conn: u64,
    },
    /// A packet arrives at a host.
    Packet {
        host: usize,
        packet: Packet,
    },
    /// The client repeats what was not answered.
    Repeat {
        conn: u64,
        what: What,
    },
    Response {
        conn: u64,
        request: u64,
    },
    Reset {
        conn: u64,
    },
    /// The server has closed the connection.
    Closed {
        conn: u64,
    },
    /// The client goes on after an answer.
    Next {
        conn: u64,
    },
    ToAgent {
        host: usize,
        life: u64,
        server_life: u64,
        message: ToAgent,
    },
    ToServer {
        host: usize,
        life: u64,
        handle: Handle,
        passport: Box<Passport>,
    },
    /// A worker has the answer.
    Answer {
        host: usize,
        life: u64,
        conn: u64,
        request: u64,
    },
    /// A worker looks whether the client is there still.
    Idle {
        host: usize,
        life: u64,
        conn: u64,
    },
    /// The agent looks whether the kernel has the flow still.
    Sweep {
        host: usize,
        tuple: Tuple,
    },
    KillAgent {
        host: usize,
    },
    StartAgent {
        host: usize,
    },
    KillServer {
        host: usize,
    },
    StartServer {
        host: usize,
    },
    Upgrade {
        host: usize,
    },
    Cut {
        front_end: usize,
        node: usize,
        breaks: bool,
    },
    Heal {
        front_end: usize,
        node: usize,
    },
    /// An operator says at a host that a node is drained, or is not.
    Drain {
        host: usize,
        node: usize,
        is_drained: bool,
    },
    /// A front-end's server names all nodes but this one.
    Without {
        front_end: usize,
        node: Option<usize>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Request(u64),
    Finish,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) conn: u64,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum ToAgent {
    Handoff { node: String, handle: Handle, passport: Box<Passport> },
    Return { flow: u64, handle: Handle, passport: Box<Passport> },
    Report(Report),
}

/// Events by time; those of one time in the order in which they were added.
#[derive(Default)]
pub(crate) struct Events {
    order: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, Event>,
    count: u64,
}

impl Events {
    pub(crate) fn add(&mut self, at_us: u64, event: Event) {
        self.count += 1;
        self.order.push(Reverse((at_us, self.count)));
        self.events.insert(self.count, event);
    }

    pub(crate) fn next(&mut self) -> Option<(u64, Event)> {
        let Reverse((at_us, number)) = self.order.pop()?;
        Some((at_us, self.events.remove(&number).unwrap()))
    }

    /// Takes events out, because what they are about has ended.
    pub(crate) fn take(&mut self, is_it: impl Fn(&Event) -> bool) -> Vec<Event> {
        let numbers: Vec<_> =
            self.events.iter().filter(|(_, event)| is_it(event)).map(|(number, _)| *number).collect();
        let taken = numbers.iter().filter_map(|number| self.events.remove(number)).collect();
        self.order.retain(|Reverse((_, number))| self.events.contains_key(number));
        taken
    }
}
