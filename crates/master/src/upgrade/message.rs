//! What a server and its successor say to each other: messages of JSON as between master and worker, but between two
//! programs that may be of different versions. Fields that one of them does not know are passed over.

use std::net::SocketAddr;
use std::path::PathBuf;

use baton_engine::listen::ListenAddress;
use serde::{Deserialize, Serialize};

/// The name in the environment of the descriptor over which they speak.
pub(crate) const CHANNEL: &str = "BATON_PREDECESSOR";

/// What the old server tells the new one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "bequest", rename_all = "kebab-case")]
pub(crate) enum Bequest {
    /// Here are listening sockets: a descriptor for each.
    Sockets {
        /// What they are.
        sockets: Vec<Socket>,
    },
    /// That was all.
    Done,
}

/// A listening socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Socket {
    /// Who comes in by it.
    pub(crate) visitors: Visitors,
    /// The address as the old server's configuration has it.
    pub(crate) address: Address,
    /// Whether a service manager opened it.
    pub(crate) managed: bool,
}

/// Who comes in by a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Visitors {
    /// Clients of the sites.
    Clients,
    /// Monitoring.
    Admin,
}

/// A [`ListenAddress`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Address {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A path.
    Unix(PathBuf),
}

impl From<&ListenAddress> for Address {
    fn from(address: &ListenAddress) -> Self {
        match address {
            ListenAddress::Tcp(tcp) => Self::Tcp(*tcp),
            ListenAddress::Unix(path) => Self::Unix(path.clone()),
        }
    }
}

impl From<Address> for ListenAddress {
    fn from(address: Address) -> Self {
        match address {
            Address::Tcp(tcp) => Self::Tcp(tcp),
            Address::Unix(path) => Self::Unix(path),
        }
    }
}

/// What the new server tells the old one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "kebab-case")]
pub(crate) enum Word {
    /// All its workers serve.
    Serving,
    /// It cannot serve, and ends.
    Failed {
        /// Why.
        error: String,
    },
}
