//! The ways to a node that a client has.

use crate::Way;

/// By which ways a client can get to a node, besides being relayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfferedWays {
    /// It can be sent to the node's own URL.
    pub redirect: bool,
}

impl OfferedWays {
    /// The way to a node; `has_public`: clients reach it by a URL.
    pub(super) fn best(self, has_public: bool) -> Way {
        if self.redirect && has_public { Way::Redirect } else { Way::Relay }
    }
}
