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
mod address_count;
mod address_range;
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
pub mod cors;
mod departures;
mod documents;
mod event_loop;
mod eviction;
mod exchange;
pub mod guards;
pub mod heartbeat;
mod helpers;
mod job;
mod job_queue;
pub mod listen;
mod mark;
mod mover;
mod outlet;
pub mod place;
pub mod plan;
mod process;
mod proofs;
mod protocol;
mod requests;
mod response;
mod returns;
pub mod rewrites;
mod send_way;
mod session;
mod settings;
#[cfg(test)]
mod simulated_disk;
#[cfg(test)]
mod simulation;
mod steering;
mod takeable;
pub mod template;
mod transport;
mod upload;
mod worker;

pub use address_count::AddressTable;
pub use address_range::{AddressRange, AddressSet};
pub use arch::{ListenerSharing, Topology, topology};
pub use architecture_name::{ArchitectureName, UnknownArchitecture};
pub use arrivals::Arrivals;
pub use context::Remarks;
pub use departures::Destination;
pub use documents::{Copies, Documents, Lending};
pub use listen::{ListenAddress, ListenOptions, Listener, bind};
pub use mark::{IdRule, Marking, Trust};
pub use plan::{Action, Delegate, ErrorPage, Plan, Route, Site};
pub use proofs::HttpProofs;
pub use settings::{Limits, SendWay, SendfileMode, Tuning};
pub use steering::{DrainLimits, Steering};
pub use upload::UploadSettings;
pub use worker::{Worker, run};
