//! What sessions a load has.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What sessions to make, as a file has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionLoad {
    /// Requests due per second, if all are answered: sessions begin at this rate divided by their mean length.
    pub requests_per_second: f64,
    /// Seconds for a connection, and then again for the whole session.
    #[serde(default = "default_timeout_s")]
    pub timeout_s: f64,
    /// Whether pauses inside a session count against its timeout.
    #[serde(default)]
    pub thinking_counts: bool,
    /// Connections at the same time, at most. A session that finds none free is not begun, and the report says so.
    #[serde(default = "usual::<20_000>")]
    pub connections: usize,
    /// Clients, each with its own part of the script: fairness is judged for each of them, too.
    #[serde(default = "usual::<8>")]
    pub clients: usize,
    /// Threads of the generator.
    #[serde(default = "usual::<1>")]
    pub threads: usize,
}

/// What sessions to make, where and how long.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    /// The server.
    pub address: SocketAddr,
    /// What sessions.
    pub load: SessionLoad,
    /// The session of the script to begin with: a server has the files in memory that an earlier load at the same place
    /// asked for.
    pub first: usize,
    /// Time before the measurement. As long as the timeout, the first timeouts are in the measurement.
    pub warm_up: Duration,
    /// Time of the measurement.
    pub duration: Duration,
    /// Sleep when there is nothing to read, instead of spinning.
    pub sleep: bool,
}

/// Harji's, for whom it was the patience of users.
fn default_timeout_s() -> f64 {
    10.0
}

/// A number that a file need not say.
pub fn usual<const NUMBER: usize>() -> usize {
    NUMBER
}
