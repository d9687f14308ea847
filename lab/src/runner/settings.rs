//! How an experiment is run.

use std::path::PathBuf;

use super::effort::Effort;

/// How an experiment is run.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// Executables of this project. Contenders that are Baton run with each; those of the second and later ones have the name
    /// of its folder, too.
    pub batons: Vec<PathBuf>,
    /// Settings of every Baton, as `section.key=value`.
    pub settings: Vec<String>,
    /// How much is measured.
    pub effort: Effort,
    /// Where manifests and lines are kept.
    pub results: PathBuf,
    /// Where sites, configurations and logs are put; kept for the next run.
    pub folder: PathBuf,
}
