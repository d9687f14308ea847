//! What an experiment with servers that lend each other documents is made of.

use std::path::PathBuf;
use std::time::Duration;

/// What to measure, and how long.
#[derive(Clone, Debug)]
pub struct DocumentsSettings {
    /// The command of this project.
    pub baton: PathBuf,
    /// Numbers of servers: one has the site, the others help.
    pub servers: Vec<usize>,
    /// Visitors at a time.
    pub visitors: usize,
    /// What the link of each server carries away from it, in megabits a second.
    pub link_mbit: u32,
    /// From the first visitor on.
    pub duration: Duration,
    /// How much shorter intervals of the policy are than the usual ones.
    pub hurry: u64,
    /// Where the site, keys and logs are put.
    pub folder: PathBuf,
}
