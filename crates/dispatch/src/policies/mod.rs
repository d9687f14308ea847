//! The policies, a file each.

mod bounded;
mod consistent;
mod draw;
mod lard;
mod lard_replicated;
mod least;
mod locality;
mod locality_global;
mod maglev;
mod mirror;
mod power;
mod rendezvous;
mod ring;
mod round_robin;

pub(crate) use bounded::BoundedHash;
pub(crate) use consistent::ConsistentHash;
pub(crate) use lard::Lard;
pub(crate) use lard_replicated::LardReplicated;
pub(crate) use least::LeastConnections;
pub(crate) use locality::LocalityBased;
pub(crate) use locality_global::LocalityGlobalCache;
pub(crate) use maglev::Maglev;
pub(crate) use power::PowerOfTwo;
pub use rendezvous::home;
pub(crate) use round_robin::WeightedRoundRobin;
