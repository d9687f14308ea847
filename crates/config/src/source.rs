//! Where a configuration comes from.

use std::path::PathBuf;

use super::config::Config;
use super::error::ConfigError;
use super::raw::RawConfig;

/// Where a configuration came from, to be read again on reload.
#[derive(Clone, Debug)]
pub enum ConfigSource {
    /// A file.
    File(PathBuf),
    /// The flags of `baton serve`.
    CommandLine(Box<RawConfig>),
}

impl ConfigSource {
    /// Reads and checks the configuration as it is now.
    ///
    /// # Errors
    /// The file cannot be read, or something in it is wrong.
    pub fn load(&self) -> Result<Config, ConfigError> {
        match self {
            Self::File(path) => Config::check(&RawConfig::read(path)?),
            Self::CommandLine(raw) => Config::check(raw),
        }
    }
}
