//! The nodes of a cluster, as etcd and DNS know them, and a process of its own that keeps the view.
//!
//! ```text
//!             settings, orders ──►             ──► etcd: a range, then a watch; leases; transactions
//!   master                         process     ──► DNS
//!             ◄── view, whether                ──► state file: the last view
//!                 etcd answers
//! ```
//!
//! [`View`] decides which nodes there are, as a machine without I/O. The process asks and listens, with blocking threads. The
//! master starts it, and merges the view with the nodes of the configuration. While etcd is away, the last view counts.
//!
//! Below a prefix of etcd's keys, `nodes/NAME` is what a node says of itself, under a lease; `orders/NAME` is what an operator
//! says of it, and stays when the node restarts.

mod etcd;
mod failure;
mod follower;
mod inputs;
mod master;
mod messages;
mod names;
mod orders;
mod process;
mod record;
mod registrar;
mod saved;
mod settings;
mod view;

pub use etcd::{Api, Entry, Event, Snapshot, WatchLine};
pub use failure::Failure;
pub use messages::{EtcdReport, FromMembers, Order, Report, ToMembers};
pub use process::run;
pub use record::{Directive, NodeState, RECORD_BYTES_MAX, Registration, Skip, is_name};
pub use saved::last_view;
pub use settings::{DnsNodes, Etcd, EtcdUser, MembersSettings, Register};
pub use view::{Applied, Member, Source, View};
