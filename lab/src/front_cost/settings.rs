//! What a comparison of front-ends is made of.

use std::path::PathBuf;
use std::time::Duration;

/// What to compare, and how long.
#[derive(Clone, Debug)]
pub struct FrontCostSettings {
    /// The command of this project.
    pub baton: PathBuf,
    /// Front-ends: `handoff`, `moved`, `relay`, `haproxy`, `nginx`.
    pub fronts: Vec<String>,
    /// Lengths of responses in bytes.
    pub sizes: Vec<u64>,
    /// How often each is measured.
    pub rounds: usize,
    /// How long each measurement takes.
    pub duration: Duration,
    /// Where files, configurations and logs are put.
    pub folder: PathBuf,
}
