//! The connection machine and the server architectures that drive it.
//!
//! ```text
//!                 what flows                               what drives it
//!   socket ─► Session ─► protocol ─► exchange              arch/  decides which thread or process runs a
//!                │        bytes to    request to                  step of a session, and which may block
//!                │        requests    answer               EventLoop, Helpers, …  are what arch/ is made of
//!                └◄─ Outlet ◄── aggregate ─┘
//! ```
//!
//! A session takes one client as far as it goes without waiting and says what it needs next.
//! That is all an architecture has to know; see [`arch`].

mod acceptor;
pub mod arch;
mod architecture_name;
mod arrivals;
mod blocked_time;
mod cache_status;
mod client;
mod clients;
#[cfg(test)]
mod cold_file;
mod connection_count;
mod context;
mod departures;
mod event_loop;
mod eviction;
mod exchange;
pub mod heartbeat;
mod helpers;
mod job;
mod job_queue;
pub mod listen;
mod mover;
mod outlet;
mod process;
mod protocol;
mod requests;
mod response;
mod returns;
mod send_way;
mod session;
mod settings;
#[cfg(test)]
mod simulated_disk;
#[cfg(test)]
mod simulation;
mod steering;
mod takeable;
mod transport;
mod upload;
mod worker;

pub use arch::{ListenerSharing, Topology, topology};
pub use architecture_name::{ArchitectureName, UnknownArchitecture};
pub use arrivals::Arrivals;
pub use context::Remarks;
pub use departures::Destination;
pub use listen::{ListenAddress, ListenOptions, Listener, bind};
pub use settings::{SendWay, SendfileMode, Tuning};
pub use steering::{DrainLimits, Steering};
pub use worker::{Worker, run};
