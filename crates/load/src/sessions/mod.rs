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
mod settings;
mod timers;
mod unread;

use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::closed::allow_descriptors;
use super::report::LoadReport;
use super::script::Script;
use crowd::Crowd;
pub use settings::{SessionLoad, SessionSettings, usual};

/// Makes the sessions of a script, over and over.
///
/// # Errors
/// If a setting or the script is empty, or descriptors run out.
pub fn run(settings: &SessionSettings, script: &Script) -> Result<LoadReport> {
    ensure!(script.session_count() > 0, "the script has no session");
    let load = &settings.load;
    ensure!(
        RATES.contains(&load.requests_per_second),
        "{} is no rate of requests: {} to {} a second",
        load.requests_per_second,
        RATES.start(),
        RATES.end()
    );
    ensure!(Duration::try_from_secs_f64(load.timeout_s).is_ok(), "{} s are no timeout", load.timeout_s);
    ensure!(load.clients > 0 && load.connections > 0, "sessions need a client and a connection");
    allow_descriptors(load.connections)?;
    let threads = load.threads.clamp(1, load.clients);
    let crowd = |thread| Crowd::new(settings, script, thread, threads)?.run();
    if threads == 1 {
        return crowd(0);
    }
    LoadReport::sum(std::thread::scope(|scope| {
        let crowd = &crowd;
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || crowd(thread))).collect();
        running.into_iter().map(|thread| thread.join().expect("a load does not panic")).collect::<Vec<_>>()
    }))
}

/// Beyond these, the interval between two sessions has no duration.
const RATES: RangeInclusive<f64> = 0.001..=1e7;
