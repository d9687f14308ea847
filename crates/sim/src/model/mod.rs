//! The cluster: front-ends, nodes, and what happens between them.

mod cache;
mod front_end;
mod node;
mod outcome;
mod profile;
mod scenario;
mod serving;
mod sharing;
mod simulation;
#[cfg(test)]
mod tests;
mod warm;

pub use outcome::{Delay, Outcome};
pub use profile::{NodeProfile, Replacement};
pub use scenario::{Arrivals, Change, FrontEnds, NODES_MAX, NodeChange, Scenario, Sharing, Way};
pub use simulation::simulate;
