//! What the process is to ask, and what it is to say of this host.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The settings of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MembersSettings {
    /// The etcd to ask, if any.
    pub etcd: Option<Etcd>,
    /// Hosts of which each address is a node.
    pub dns: Vec<DnsNodes>,
    /// DNS servers to ask instead of the system's; none: the system's.
    pub dns_servers: Vec<std::net::SocketAddr>,
    /// The file that keeps the last view.
    pub state_file: PathBuf,
}

/// A cluster of etcd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Etcd {
    /// URLs of its members: at least one.
    pub endpoints: Vec<String>,
    /// What the keys begin with.
    pub prefix: String,
    /// Seconds after which a node counts as gone that does not say that it is there.
    pub ttl_s: u64,
    /// Seconds that nodes are held that vanish together.
    pub hold_s: u64,
    /// PEM file with the authorities of etcd's certificates; `None`: those that the system trusts.
    pub ca: Option<PathBuf>,
    /// Who asks, if etcd wants to know.
    pub login: Option<EtcdUser>,
    /// What this host registers as, if it is a node.
    pub register: Option<Register>,
}

/// A user of etcd.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EtcdUser {
    /// Its name.
    pub user: String,
    /// Its password.
    pub password: String,
}

impl std::fmt::Debug for EtcdUser {
    /// Never shows the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// A node, as it registers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Register {
    /// Its name.
    pub name: String,
    /// Its URL for front-ends.
    pub to: String,
    /// How much it takes: 1 to 100.
    pub weight: u32,
    /// Where its handoff agent takes connections.
    pub mover: Option<String>,
    /// Its URL for clients.
    pub public: Option<String>,
    /// Whether it says what it has left while it is drained: connections of front-ends, or requests if it has no handoff agent.
    pub tells_left: bool,
}

/// A host of which each address is a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DnsNodes {
    /// The host.
    pub host: String,
    /// `http` or `https`.
    pub scheme: String,
    /// The port of each.
    pub port: u16,
    /// How much each takes: 1 to 100.
    pub weight: u32,
}
