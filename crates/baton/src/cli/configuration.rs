//! `baton config`: the default configuration, the effective one, reference and schema, one made of nginx's.

use std::process::ExitCode;

use baton_config::{ConfigSource, default_toml, json_schema, reference_markdown};
use clap::{Args, Subcommand};

use super::config_file::{ConfigFile, load};
#[cfg(feature = "convert")]
use super::convert::Convert;
#[cfg(not(feature = "convert"))]
use super::left_out::LeftOut;
use super::output::{Failure, print};

/// Print a configuration or its reference, or convert one of nginx
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Configuration {
    #[command(subcommand)]
    task: Option<Task>,

    #[command(flatten)]
    what: What,

    #[command(flatten)]
    file: ConfigFile,
}

#[derive(Debug, Subcommand)]
enum Task {
    #[cfg(feature = "convert")]
    Convert(Convert),
    /// Not in this build: configurations of other servers
    #[cfg(not(feature = "convert"))]
    Convert(LeftOut),
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

    /// The JSON Schema of a file, with which editors complete and check it
    #[arg(long)]
    schema: bool,
}

impl Configuration {
    /// Does what was asked for.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        match self.task {
            #[cfg(feature = "convert")]
            Some(Task::Convert(convert)) => convert.run(),
            #[cfg(not(feature = "convert"))]
            Some(Task::Convert(left_out)) => left_out.refuse("converter", "convert"),
            None if self.what.default => print(&default_toml()),
            None if self.what.reference => print(&reference_markdown()),
            None if self.what.schema => print(&json_schema()),
            None => print(&load(&ConfigSource::File(self.file.config))?.to_toml()),
        }
    }
}
