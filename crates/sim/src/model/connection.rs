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
    /// The node that relays the answer.
    pub(crate) relayed_by: Option<NodeId>,
}

/// Clients that have a connection.
pub(crate) const CLIENTS: usize = 1 << 10;

impl Placed {
    pub(super) fn at(node: NodeId) -> Self {
        Self { node, cost: GettingThere::default(), relayed_by: None }
    }
}
