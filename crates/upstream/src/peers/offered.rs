//! The ways to a node that a client has.

use crate::Way;

/// By which ways a client can get to a node, besides being relayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfferedWays {
    /// It can be sent to the node's own URL.
    pub redirect: bool,
    /// Its connection can be handed over to the node.
    pub hand_off: bool,
}

impl OfferedWays {
    /// The way to a peer.
    pub(super) fn best(self, takes_connections: bool, has_public: bool) -> Way {
        if self.hand_off && takes_connections {
            Way::HandOff
        } else if self.redirect && has_public {
            Way::Redirect
        } else {
            Way::Relay
        }
    }
}
