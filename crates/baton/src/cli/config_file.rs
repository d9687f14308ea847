//! Which configuration file a sub-command reads, and what it says of one that is refused.

use std::io::IsTerminal;
use std::path::PathBuf;

use baton_config::{Config, ConfigError, ConfigSource};
use clap::{Args, ValueHint};

use super::output::Failure;

/// Which configuration file.
#[derive(Debug, Args)]
pub(super) struct ConfigFile {
    /// Configuration file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, env = "BATON_CONFIG",
          default_value = "/etc/baton/baton.toml")]
    pub(super) config: PathBuf,
}

/// Reads and checks a configuration.
pub(super) fn load(source: &ConfigSource) -> Result<Config, Failure> {
    source.load().map_err(|error| refused(&error))
}

/// What is wrong with a configuration, in colour on a terminal.
pub(super) fn refused(error: &ConfigError) -> Failure {
    let styled =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    Failure(error.render(styled))
}
