//! The laboratory: measures web servers from outside, over sockets.
//!
//! - [`experiment`] reads experiments, which are files: a site, a load, contenders, figures, claims;
//! - [`runner`] runs them: interleaved rounds, a line kept for each cell, verdicts;
//! - [`results`] keeps recorded runs, and writes the figures of the documents from them;
//! - [`servers`] starts servers, which are files, too;
//! - [`load`] is a load generator that costs so little that one core of it saturates one core of a server;
//! - `chains`, `moved` and `restart` are procedures: measurements that are no load on contenders;
//! - [`copies`] counts how often the bytes of an application's response are copied;
//! - [`meters`] read what a server uses: CPU time by mode, system calls, switches, memory, packets, copies;
//! - [`network`] makes hosts in network namespaces, for a cluster on one machine;
//! - [`files`] and [`mix`] make what is served and which of it is asked for.
//!
//! How it measures, and why so: `docs/decisions/0001-measuring.md`.

mod chains;
pub mod copies;
pub mod experiment;
mod ground;
pub mod meters;
mod moved;
mod quantity;
mod restart;
pub mod results;
mod rig;
pub mod runner;
pub mod servers;

/// The load generator.
pub use baton_load as load;
pub use baton_load::files;
pub use baton_load::site::specweb99 as mix;
pub use quantity::Quantity;
pub use rig::{BoxSettings, Boxes, Certificate, MemoryBound, ServerBox, network};
