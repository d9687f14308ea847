//! How an experiment is run.

use std::path::PathBuf;

use clap::Args;

use super::effort::Effort;

/// How an experiment is run, as the command line says it.
#[derive(Args, Clone, Debug)]
pub struct RunSettings {
    /// The command of this project; several builds are compared in the same rounds
    #[arg(long = "baton", value_delimiter = ',', default_value = "target/release/baton")]
    pub batons: Vec<PathBuf>,
    /// A setting of every Baton; may be repeated
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    pub settings: Vec<String>,
    /// How much is measured.
    #[arg(skip)]
    pub effort: Effort,
    /// Where manifests and lines are kept
    #[arg(long, default_value = "target/lab-results")]
    pub results: PathBuf,
    /// Where sites, configurations and logs are put; kept for the next run
    #[arg(long, default_value_os_t = std::env::temp_dir().join("baton-lab"))]
    pub folder: PathBuf,
}
