//! Messages of the master and to it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Drain, NAME_BYTES_MAX, NODES_MAX};

/// A message of the master to its agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum FromMaster {
    /// The first message on a connection; another one, after a reload, replaces it. Two descriptors come with it, sockets that
    /// keep message boundaries: `requests`, over which all workers send [`FromWorker`](super::FromWorker), then `arrivals`, over
    /// which they get passports and clients' sockets.
    Hello {
        /// [`VERSION`](super::VERSION).
        version: u32,
        /// What the agent needs to know.
        settings: AgentSettings,
    },
    /// A worker has ended before its time, and with it the connections that it had.
    WorkerEnded {
        /// Its process.
        worker: u32,
    },
    /// Other nodes from now on. Flows of a node that is not named any more live on.
    Nodes {
        /// All of them.
        nodes: Vec<Node>,
    },
    /// An operator says of a node that it is drained, or is not any more. All members of the cluster are to know. Only for an
    /// agent that says [`spreads_drains`](AgentStatus::spreads_drains).
    Drain {
        /// The node's name.
        node: String,
        /// Whether it is.
        is_drained: bool,
    },
}

/// What an agent needs to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSettings {
    /// The nodes to which this front-end hands connections over; none: it is no front-end.
    pub nodes: Vec<Node>,
    /// Where agents of front-ends connect to; `None`: it is no node.
    pub listen: Option<SocketAddr>,
    /// The file with its certificate and key, which the agent reads.
    pub key: PathBuf,
    /// Members of the cluster's authority that are none any more, by their names.
    #[serde(default)]
    pub revoked: Vec<String>,
    /// Network interfaces on which packets of clients arrive; none are named: all but the loopback interface.
    #[serde(default)]
    pub interfaces: Vec<String>,
}

/// A node, as a front-end knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its name, by which workers hand over to it.
    pub name: String,
    /// Where its agent listens. Messages have the older word: an agent may be older than its server.
    #[serde(rename = "mover")]
    pub agent: SocketAddr,
    /// Its address in the network that it shares with the front-end: packets of its clients are forwarded to it.
    pub next_hop: IpAddr,
}

/// A message of the agent to the master.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum ToMaster {
    /// The agent is of no use as things are; it goes on with what it has. The remedy is in the text, which is in its log, too.
    Refused {
        /// What is wrong.
        trouble: String,
    },
    /// A node can be handed connections, or not. Until the first such message it cannot.
    Reachable {
        /// The node's name.
        node: String,
        /// Whether it can.
        reachable: bool,
    },
    /// Counts of a node, whenever they have changed.
    Loads(Loads),
    /// What operators have said of nodes, at this member or another, whenever it has changed.
    Drains {
        /// All that is known.
        drains: Vec<Drain>,
        /// Whether this host's server is to give back the connections that it has from front-ends.
        here: bool,
    },
    /// After [`FromMaster::Hello`], and at most once a second when something has changed.
    Status(AgentStatus),
}

/// Counts of a node.
///
/// Requests that the node has taken over and not answered are hand-offs that the workers have sent since
/// [`Hello`](FromMaster::Hello), plus `begun_kept`, minus `ended`. When the agent ends, all of them have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loads {
    /// The node's name.
    pub node: String,
    /// Requests that have begun without a hand-off since `Hello`: further ones on connections that the node has kept, and those
    /// that were under way when the server said `Hello`.
    pub begun_kept: u64,
    /// Requests that have ended since `Hello`: answered, cut off, or given back to this server.
    pub ended: u64,
    /// Connections that are at the node now, or on their way there.
    pub active: u64,
}

/// What an agent says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// Its process.
    pub pid: u32,
    /// CPU time that it has used, in microseconds.
    #[serde(default)]
    pub cpu_us: u64,
    /// Connections that this host has given to nodes.
    pub flows: u64,
    /// Connections that this host has from front-ends.
    pub kept: u64,
    /// Front-ends that are connected.
    pub front_ends: u64,
    /// The nodes.
    pub nodes: Vec<NodeStatus>,
    /// Whether it understands [`FromMaster::Drain`]: it may be older than its server.
    #[serde(default)]
    pub spreads_drains: bool,
}

/// What a front-end's agent says about a node, as totals since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// The node's name.
    pub node: String,
    /// Whether connections can be handed over to it.
    pub reachable: bool,
    /// Why not.
    pub error: Option<String>,
    /// Connections that are there.
    pub active: u64,
    /// Connections that were handed over.
    pub handed: u64,
    /// Milliseconds that these took together, from the server to the moment at which the node was told to take them.
    #[serde(default)]
    pub took_ms: u64,
    /// Hand-offs that failed, and whose connections went back to the server.
    pub refused: u64,
    /// Connections that the node has returned.
    pub returned: u64,
    /// Connections that were reset because the node was lost, or because they could not be restored.
    pub lost: u64,
}

/// Why settings are refused: the server should have checked them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsRefused {
    /// There are too many nodes.
    TooMany,
    /// A name is empty, too long, or there twice.
    Name(String),
}

impl fmt::Display for SettingsRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "more than {NODES_MAX} nodes"),
            Self::Name(name) => {
                write!(
                    f,
                    "the node name {name:?} is empty, longer than {NAME_BYTES_MAX} bytes, or there twice"
                )
            }
        }
    }
}

impl std::error::Error for SettingsRefused {}

impl Node {
    /// Whether nodes are within the bounds.
    ///
    /// # Errors
    /// [`SettingsRefused`].
    pub fn check(nodes: &[Self]) -> Result<(), SettingsRefused> {
        if nodes.len() > NODES_MAX {
            return Err(SettingsRefused::TooMany);
        }
        for (index, node) in nodes.iter().enumerate() {
            let is_twice = nodes[..index].iter().any(|other| other.name == node.name);
            if node.name.is_empty() || node.name.len() > NAME_BYTES_MAX || is_twice {
                return Err(SettingsRefused::Name(node.name.clone()));
            }
        }
        Ok(())
    }
}
