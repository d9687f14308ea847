//! Sessions: clients that come at a rate which does not depend on the server, ask for several files on one connection,
//! think in between, and leave when it takes too long. So a server can be overloaded, as by the world.
//!
//! ```text
//!            ┌────────── 10 s ──────────┐┌─────────────── 10 s, without the thinking ───────────────┐
//!  due ──► Connecting ─────────────────► Asking ──► Thinking ──► Asking ──► … ──► complete
//!            └─► timed out, unread        └─► timed out: the rest of the session is lost
//! ```
//!
//! The rules are those of Harji (2010), sections 3.1 to 3.3. His text can be read so that thinking counts against the
//! ten seconds; but then most sessions of a perfect server time out, with any of the usual laws of thinking.
//! [`SessionLoad::thinking_counts`] is for that reading.

mod crowd;
mod timers;
mod unread;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::closed::allow_descriptors;
use super::report::LoadReport;
use super::script::Script;
use crowd::Crowd;

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
    #[serde(default = "default_connections")]
    pub connections: usize,
    /// Clients, each with its own part of the script: fairness is judged for each of them, too.
    #[serde(default = "default_clients")]
    pub clients: usize,
    /// Threads of the generator.
    #[serde(default = "default_threads")]
    pub threads: usize,
}

/// What sessions to make, where and how long.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    /// The server.
    pub address: SocketAddr,
    /// What sessions.
    pub load: SessionLoad,
    /// Time before the measurement. As long as the timeout, the first timeouts are in the measurement.
    pub warm_up: Duration,
    /// Time of the measurement.
    pub duration: Duration,
    /// Sleep when there is nothing to read, instead of spinning.
    pub sleep: bool,
    /// Read and check every body.
    pub verify: bool,
}

/// Makes the sessions of a script, over and over.
///
/// # Errors
/// If a setting or the script is empty, or descriptors run out.
pub fn run(settings: &SessionSettings, script: &Script) -> Result<LoadReport> {
    ensure!(script.session_count() > 0, "the script has no session");
    let load = &settings.load;
    ensure!(load.requests_per_second > 0.0, "sessions need a rate above 0");
    ensure!(Duration::try_from_secs_f64(load.timeout_s).is_ok(), "{} s are no timeout", load.timeout_s);
    ensure!(load.clients > 0 && load.connections > 0, "sessions need a client and a connection");
    allow_descriptors(load.connections)?;
    let threads = load.threads.clamp(1, load.clients);
    LoadReport::sum(std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || Crowd::new(settings, script, thread, threads)?.run()))
            .collect();
        running.into_iter().map(|thread| thread.join().expect("a load does not panic")).collect::<Vec<_>>()
    }))
}

/// Harji's, for whom it was the patience of users.
fn default_timeout_s() -> f64 {
    10.0
}

/// Two thirds of the ports that Linux gives to connections to one address.
fn default_connections() -> usize {
    20_000
}

/// Harji's, for one processor.
fn default_clients() -> usize {
    8
}

fn default_threads() -> usize {
    1
}
