//! The ways to a node that a client has.

/// By which ways a client can get to a node, besides being relayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfferedWays {
    /// It can be sent to the node's own URL.
    pub redirect: bool,
    /// Its connection can be handed over to the node.
    pub hand_off: OfferedHandOff,
}

/// Whether a connection may be handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OfferedHandOff {
    /// It cannot be.
    #[default]
    No,
    /// It is to be, whatever that costs.
    Always,
    /// If that costs less than relaying.
    IfCheaper {
        /// Requests that the connection has had here before this one; 0, too, if it closes behind the answer.
        requests_before: u64,
    },
}
