//! Where a server listens, as messages between two servers have it.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where clients connect to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Address {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A path.
    Unix(PathBuf),
}
