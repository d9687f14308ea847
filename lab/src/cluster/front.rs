//! The front-ends that are compared: ours with each policy, and those of the distribution.

use std::net::SocketAddr;
use std::path::Path;

use baton_dispatch::PolicyName;

use crate::rig::Entry;

/// A front-end in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Front<'a> {
    /// Ours, relaying, with this policy.
    Relay(&'a str),
    /// `haproxy` or `nginx`.
    Other(&'a str),
}

impl<'a> Front<'a> {
    pub(super) fn name(self) -> &'a str {
        match self {
            Self::Relay(name) | Self::Other(name) => name,
        }
    }

    /// How it is started before these nodes; `None` if it is not known.
    pub(super) fn entry(self, baton: &Path, nodes: &[SocketAddr]) -> Option<Entry> {
        match self {
            Self::Relay(policy) => Some(relay(baton, policy, nodes).named(policy)),
            Self::Other(name) => Entry::other_before_nodes(name, nodes),
        }
    }

    /// The policy that the simulator has for it.
    pub(super) fn simulated_as(self) -> Option<PolicyName> {
        let name = match self {
            Self::Relay(policy) => policy,
            Self::Other("haproxy") => "bounded-hash",
            Self::Other(_) => "consistent-hash",
        };
        name.parse().ok()
    }
}

/// Baton in front of nodes.
pub(super) fn relay(baton: &Path, policy: &str, nodes: &[SocketAddr]) -> Entry {
    let to: Vec<_> = nodes.iter().map(|node| format!("\"http://{node}\"")).collect();
    let to = to.join(", ");
    let route = format!("site.route=[{{path=\"/\", proxy={{to=[{to}], policy=\"{policy}\"}}}}]");
    Entry::baton(baton, "auto").workers(1).settings(&[route])
}
