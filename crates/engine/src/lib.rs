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
