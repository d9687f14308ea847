//! `baton config`: the default configuration, the effective one, the reference.

use std::process::ExitCode;

use baton_config::{ConfigSource, default_toml, reference_markdown};
use clap::Args;

use super::config_file::{ConfigFile, load};
use super::output::{Failure, print};

/// Print a configuration or its reference
#[derive(Debug, Args)]
pub(super) struct Configuration {
    #[command(flatten)]
    what: What,

    #[command(flatten)]
    file: ConfigFile,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Every setting with its documentation and its default: a file to start from
    #[arg(long)]
    default: bool,

    /// Every setting with the value that the file gives it
    #[arg(long)]
    effective: bool,

    /// The reference of all settings, in Markdown
    #[arg(long)]
    reference: bool,
}

impl Configuration {
    /// Prints what was asked for.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        if self.what.default {
            print(&default_toml())
        } else if self.what.reference {
            print(&reference_markdown())
        } else {
            print(&load(&ConfigSource::File(self.file.config))?.to_toml())
        }
    }
}
