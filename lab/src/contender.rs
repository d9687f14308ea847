//! The ways from a client to a node that are compared.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};

use crate::entry::Entry;

/// A way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    /// Clients know the node.
    Direct,
    /// Baton gives connections to nodes.
    Handoff,
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

const NAMES: [(Contender, &str); 7] = [
    (Contender::Direct, "direct"),
    (Contender::Handoff, "handoff"),
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
            Self::Direct | Self::Handoff | Self::Relay | Self::Haproxy | Self::Nginx => Self::Direct,
        }
    }

    /// Where the handoff agent of a node takes connections.
    pub(crate) fn agent_of(node: impl Into<IpAddr>) -> SocketAddr {
        SocketAddr::new(node.into(), AGENT_PORT)
    }

    /// What a node that is a Baton needs for it, at this address. Files of a member are in the folder.
    pub(crate) fn node_settings(
        self,
        baton: &Path,
        folder: &Path,
        address: SocketAddr,
    ) -> Result<Vec<String>> {
        match self {
            Self::Handoff => {
                let listen = format!("cluster.listen=\"{}\"", Self::agent_of(address.ip()));
                Ok(vec![key(baton, folder)?, listen])
            }
            _ => Ok(Vec::new()),
        }
    }

    /// How a node is started for it.
    pub(crate) fn node(self, baton: &Path, folder: &Path, address: SocketAddr) -> Result<Entry> {
        Entry::baton(baton, "auto").settings(&self.node_settings(baton, folder, address)?)
    }

    /// How the front-end is started, if there is one. `more`: settings of ours.
    pub(crate) fn front(
        self,
        baton: &Path,
        folder: &Path,
        nodes: &[SocketAddr],
        more: &[String],
    ) -> Result<Option<Entry>> {
        let other = |name| Ok(Some(Entry::other_before_nodes(name, nodes)));
        match self {
            Self::Direct | Self::Plain | Self::Moved => Ok(None),
            Self::Handoff | Self::Relay => {
                let listed = |(number, node): (usize, &SocketAddr)| {
                    let mover = match self {
                        Self::Handoff => format!(", mover=\"{}\"", Self::agent_of(node.ip())),
                        _ => String::new(),
                    };
                    format!("{{to=\"http://{node}\", name=\"node{number}\"{mover}}}")
                };
                let listed: Vec<_> = nodes.iter().enumerate().map(listed).collect();
                let mut settings = vec![
                    format!("cluster.nodes=[{}]", listed.join(", ")),
                    format!("cluster.way=\"{self}\""),
                    "site.route=[{path=\"/\", cluster=true}]".to_owned(),
                ];
                if self == Self::Handoff {
                    settings.push(key(baton, folder)?);
                }
                settings.extend_from_slice(more);
                Ok(Some(Entry::baton(baton, "auto").settings(&settings)?.named(&self.to_string())))
            }
            Self::Haproxy => other("haproxy"),
            Self::Nginx => other("nginx"),
        }
    }
}

/// The setting for the key that all members share, which is made for the first of them.
fn key(baton: &Path, folder: &Path) -> Result<String> {
    let file = folder.join("cluster.pem");
    if !file.exists() {
        let output =
            Command::new(baton).args(["cluster", "key"]).arg(&file).output().context("baton cluster key")?;
        ensure!(output.status.success(), "baton cluster key: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(format!("cluster.key=\"{}\"", file.display()))
}

/// Where handoff agents of nodes take connections.
const AGENT_PORT: u16 = 7946;
