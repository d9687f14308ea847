//! Messages between a server and its successor: JSON, as between master and worker, but the two programs may be of
//! different versions. Each ignores fields that it does not know. What it cannot read ends the upgrade, with an advice.

use baton_passport::Address;
use baton_report::OperatorError;
use serde::{Deserialize, Serialize};

/// The environment variable with the descriptor of their channel.
pub(crate) const CHANNEL: &str = "BATON_PREDECESSOR";

/// A message to the new server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub(crate) enum FromPredecessor {
    /// Listening sockets: a descriptor for each.
    Sockets {
        /// What they are.
        sockets: Vec<Socket>,
    },
    /// No more sockets follow. A descriptor comes with this: a file in memory with the secrets of session tickets.
    Done {
        /// URLs of origins that are to get no requests. Servers of older versions do not say.
        #[serde(default)]
        drained_origins: Vec<String>,
    },
}

/// A listening socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Socket {
    /// What it is for.
    pub(crate) socket_use: SocketUse,
    /// The address as the old server's configuration has it.
    pub(crate) address: Address,
    /// Whether a service manager opened it.
    pub(crate) managed: bool,
}

/// What a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SocketUse {
    /// Clients of the sites.
    Clients,
    /// Monitoring.
    Admin,
}

/// A message to the old server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub(crate) enum ToPredecessor {
    /// All its workers serve. A descriptor comes with this: the way for connections, each a message of
    /// [`baton_passport`] with its socket.
    Serving {
        /// The highest version of passports that it reads. Servers of older versions do not say.
        #[serde(default = "first_passports")]
        passports: u32,
    },
    /// The successor cannot serve, and ends.
    Failed {
        /// Why.
        error: String,
    },
}

fn first_passports() -> u32 {
    1
}

/// Explains a message that this version cannot read.
pub(crate) fn of_another_version(trouble: OperatorError) -> OperatorError {
    trouble
        .cause("the two servers are of versions that cannot take over from one another")
        .remedy("stop the old server, then start the new one (`systemctl restart baton`)")
}
