//! Connections of clients, and where their requests are served.

use baton_dispatch::NodeId;

use super::front_end::GettingThere;

/// A client's connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Connection {
    pub(super) node: Option<NodeId>,
    pub(super) requests_left: u32,
}

/// Where a request is served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) node: NodeId,
    pub(crate) cost: GettingThere,
    /// What becomes of the answer, if another node has the connection.
    pub(crate) relay: Option<Relay>,
}

/// An answer that another node relays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relay {
    /// The node that has the connection.
    pub(crate) node: NodeId,
    /// Whether its home had the file in memory, as it tells.
    pub(crate) was_in_memory: bool,
}

/// Clients that have a connection.
pub(crate) const CLIENTS: usize = 1 << 10;

impl Placed {
    pub(super) fn at(node: NodeId) -> Self {
        Self { node, cost: GettingThere::default(), relay: None }
    }
}
