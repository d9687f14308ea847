//! What a comparison of faults is made of.

use std::path::PathBuf;

/// What to compare, and how long.
#[derive(Clone, Debug)]
pub struct FaultsSettings {
    /// The command of this project.
    pub baton: PathBuf,
    /// Ways to the nodes: `relay`, `handoff`.
    pub ways: Vec<String>,
    /// How often each fault happens.
    pub rounds: usize,
    /// Connections of clients.
    pub connections: usize,
    /// Where files, configurations and logs are put.
    pub folder: PathBuf,
}
