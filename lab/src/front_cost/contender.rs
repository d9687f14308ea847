//! The ways from a client to a node that are compared.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail};

use crate::rig::Entry;

/// A way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    /// Clients know the node.
    Direct,
    /// Baton relays.
    Relay,
    /// HAProxy relays.
    Haproxy,
    /// nginx relays.
    Nginx,
    /// Clients know the node, which has a server of this process.
    Plain,
    /// This process moves connections to that server.
    Moved,
}

const NAMES: [(Contender, &str); 6] = [
    (Contender::Direct, "direct"),
    (Contender::Relay, "relay"),
    (Contender::Haproxy, "haproxy"),
    (Contender::Nginx, "nginx"),
    (Contender::Plain, "plain"),
    (Contender::Moved, "moved"),
];

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(contender, _)| contender == self).map_or("", |(_, name)| name);
        f.pad(name)
    }
}

impl FromStr for Contender {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match NAMES.iter().find(|(_, name)| *name == text) {
            Some((contender, _)) => Ok(*contender),
            None => {
                bail!("there is no front-end {text:?}; there are {}", NAMES.map(|(_, name)| name).join(", "))
            }
        }
    }
}

impl Contender {
    /// What the front-end is compared with: the same node without one.
    pub(crate) fn without_front(self) -> Self {
        match self {
            Self::Plain | Self::Moved => Self::Plain,
            Self::Direct | Self::Relay | Self::Haproxy | Self::Nginx => Self::Direct,
        }
    }

    /// How the front-end is started, if there is one. `relay`: more settings of Baton's relay, as in a table.
    pub(crate) fn front(self, baton: &Path, nodes: &[SocketAddr], relay: &str) -> Result<Option<Entry>> {
        let other = |name| Entry::other_before_nodes(name, nodes).context("it is not known").map(Some);
        match self {
            Self::Direct | Self::Plain | Self::Moved => Ok(None),
            Self::Relay => {
                let to: Vec<_> = nodes.iter().map(|node| format!("\"http://{node}\"")).collect();
                let to = to.join(", ");
                let proxy = format!("{{to=[{to}], policy=\"lard-h\"{relay}}}");
                let route = format!("site.route=[{{path=\"/\", proxy={proxy}}}]");
                Ok(Some(Entry::baton(baton, "auto").workers(1).settings(&[route]).named(&self.to_string())))
            }
            Self::Haproxy => other("haproxy"),
            Self::Nginx => other("nginx"),
        }
    }
}
