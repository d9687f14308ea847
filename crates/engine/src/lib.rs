//! The server architectures, and what they are made of.
//!
//! An architecture decides which thread or process runs a step of a session, and which may block: see [`arch`]. A loop lends
//! the session a context for the step, does what the session needs then, and wakes it.

mod acceptor;
pub mod arch;
mod architecture_name;
mod arrivals;
mod blocked_time;
mod cache_status;
mod client;
mod clients;
mod connection_count;
mod event_loop;
mod eviction;
pub mod heartbeat;
mod helpers;
mod job_queue;
pub mod listen;
mod process;
mod returns;
mod settings;
mod steering;
mod takeable;
mod worker;

pub use arch::{ListenerSharing, Topology, topology};
pub use architecture_name::{ArchitectureName, UnknownArchitecture};
pub use arrivals::Arrivals;
pub use listen::{ListenAddress, ListenOptions, Listener, bind};
pub use settings::Tuning;
pub use steering::{DrainLimits, Steering};
pub use worker::{Worker, run};
