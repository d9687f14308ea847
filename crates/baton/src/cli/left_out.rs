//! A sub-command that this build was made without: it says so, and where it is to be had.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use super::output::Failure;

#[derive(Debug, Args)]
pub(super) struct LeftOut {
    /// Whatever the command would understand.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<OsString>,
}

impl LeftOut {
    /// Says that there is no such part.
    pub(super) fn refuse(self, part: &str, feature: &str) -> Result<ExitCode, Failure> {
        Err(Failure(format!(
            "this build has no {part}: install a package of Baton, or build with `cargo build --release -p baton --features \
             {feature}`"
        )))
    }
}
