//! The laboratory: measures web servers from outside, over sockets.
//!
//! - [`load`], a crate of its own, is a load generator that costs so little that one core of it saturates one core of a server;
//! - [`bench`] compares servers with it: interleaved rounds, CPU time per request, ratios within a round;
//! - [`tls`] compares them with TLS and HTTP/2, for which other programs make the load;
//! - [`proxy`] compares them in front of an origin, passing on and from a cache;
//! - [`instructions`] counts what a request costs in instructions, exactly;
//! - [`guards`] tells what guards, ids and logs cost;
//! - [`compression`] compares them compressing files and responses of an origin;
//! - [`relay`] tells what `splice` saves a proxy at most;
//! - [`restart`] tells how soon a cache serves after a crash what it had before;
//! - [`disk`] does so with memory too small for the content, where the disk decides and not the CPU;
//! - [`cluster`] compares ways of distributing requests among nodes that lack memory;
//! - [`cluster_faults`] counts what clients of a cluster see of faults;
//! - [`front_cost`] tells what a front-end before nodes costs;
//! - [`documents`] measures servers that lend each other documents, without a front-end;
//! - [`applications`] compares applications behind servers, by every transport;
//! - [`copies`] counts how often the bytes of an application's response are copied;
//! - [`slow_readers`] tests whether slow readers delay an application;
//! - [`network`] makes hosts in network namespaces, for a cluster on one machine;
//! - [`files`] and [`mix`] make what is served and which of it is asked for; [`stats`] sums up.
//!
//! How it measures, and why so: `docs/decisions/0001-measuring.md`.

pub mod applications;
pub mod bench;
pub mod cluster;
pub mod cluster_faults;
mod comparison;
pub mod compression;
mod contender;
pub mod copies;
pub mod disk;
pub mod documents;
pub mod front_cost;
pub mod guards;
pub mod instructions;
mod markdown;
pub mod proxy;
pub mod relay;
pub mod restart;
mod rig;
pub mod slow_readers;
pub mod stats;
pub mod tls;

/// The load generator.
pub use baton_load as load;
pub use baton_load::files;
pub use baton_load::site::specweb99 as mix;
pub use rig::network;
