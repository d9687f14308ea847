//! Request distribution: which node of a cluster serves a request; and which documents migrate where there is no front-end
//! ([`migration`]).
//!
//! A front-end sees the target of a request, the loads of the nodes and the time, and gets a node and a reason:
//!
//! ```text
//!   request ─► Target ─┐
//!                      ├─► Admission ─► Policy ─► Decision { node, why }
//!   connections ─► Cluster (loads, weights, states)
//! ```
//!
//! The policies are those of Pai's LARD study (1999, chapter 3), today's common ones, and one of our own
//! ([`PolicyName`] lists them). Nothing here reads a clock or opens a socket: a simulator and a real front-end run
//! the same code. In the steady state a decision allocates nothing.
//!
//! ```
//! use baton_dispatch::{Admission, Cluster, Policy, PolicyName, PolicySettings, Target, target_hash};
//!
//! let settings = PolicySettings::default();
//! let mut cluster = Cluster::of(&[100, 100, 200], 10_000_000);
//! let mut policy = Admission::new(PolicyName::LardR.build(&settings), &settings);
//! policy.handle_membership(&cluster, 0);
//!
//! let target = Target::new(target_hash(b"/index.html"));
//! let decision = policy.choose(target, &cluster, 0);
//! let node = decision.node.expect("three nodes serve");
//! cluster.begin(node);
//! println!("{node}: {}", decision.why);
//! // … the node answers …
//! cluster.end(node);
//! policy.completed(target, node, 5_120, 1_800, 1_800);
//! ```

mod admission;
mod approach;
mod cluster;
mod decision;
mod fetch_choice;
mod fitted;
mod hash;
mod mapping;
pub mod migration;
mod node_set;
mod policies;
mod policy;
mod policy_name;
mod settings;
mod target;
mod thresholds;
mod way_choice;

pub use admission::{Admission, admission_limit};
pub use cluster::{Cluster, NodeId, NodeState, STANDARD_WEIGHT, Time, WEIGHT_MAX};
pub use decision::{Decision, Why};
pub use fetch_choice::{FetchChoice, FetchRule};
pub use fitted::Fitted;
pub use hash::target_hash;
pub use policies::home;
pub use policy::Policy;
pub use policy_name::{PolicyName, UnknownPolicy};
pub use settings::{CacheOrder, PolicySettings};
pub use target::Target;
pub use thresholds::{Fit, Fits, Seen, Thresholds};
pub use way_choice::{Compared, HandOffSeen, Prices, RelayWork, WayChoice, WayReason};
