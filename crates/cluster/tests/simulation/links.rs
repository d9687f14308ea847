//! Connections between agents: bytes arrive late, in order, or not at all.

use std::collections::BTreeMap;

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) front_end: usize,
    pub(crate) node: usize,
    /// The lives of the agents at its ends.
    pub(crate) lives: (u64, u64),
    /// When the last message to the node, or to the front-end, arrives: the next one is not earlier.
    pub(crate) arrives_us: (u64, u64),
    /// Whether the front-end, or the node, has closed it or heard of its end.
    pub(crate) is_closed: (bool, bool),
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    pub(crate) lines: BTreeMap<u64, Connection>,
    next: u64,
}

impl Connections {
    pub(crate) fn open(&mut self, line: Connection) -> u64 {
        self.next += 1;
        self.lines.insert(self.next, line);
        self.next
    }

    /// The open line of a front-end's agent to a node.
    pub(crate) fn to_node(&self, front_end: usize, node: usize) -> Option<u64> {
        let is_it = |line: &Connection| line.front_end == front_end && line.node == node && !line.is_closed.0;
        self.lines.iter().find(|(_, line)| is_it(line)).map(|(id, _)| *id)
    }

    /// Connections that end or begin at a host.
    pub(crate) fn of(&self, host: usize) -> Vec<u64> {
        let is_of = |line: &Connection| line.front_end == host || line.node == host;
        self.lines.iter().filter(|(_, line)| is_of(line)).map(|(id, _)| *id).collect()
    }
}
