//! What a worker tells of itself: lines of access logs, counters, figures by name, and the time by which it does so.
//!
//! ```text
//!   a thread's Tally ─► Counters, FigureTable   shared memory, which the master reads and which outlives workers
//!   AccessLogs ───────► LogWriter ─► file
//! ```
//!
//! It knows nothing of sites, connections and loops.

pub mod clock;
pub mod figures;
pub mod log;
pub mod metrics;
pub mod stopwatch;
