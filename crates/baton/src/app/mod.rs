//! `baton app`: applications as processes.
//!
//! ```text
//!   baton app run ─── manager: listening sockets, signals, the clock
//!       │  fork, exec; descriptor 0 is a listening socket, 1 and 2 are a pipe back
//!       ├── process 0 ── lines ──► standard error
//!       └── process 1 …
//! ```
//!
//! [`options`] is what is asked for, [`sockets`] where the processes listen, [`program`] how one begins, and [`manager`]
//! keeps them running. [`cgi`] and [`php_fpm`] are applications themselves:
//! for CGI programs, and for php-fpm.

mod cgi;
mod manager;
mod options;
mod php_fpm;
mod program;
mod sockets;

use std::process::ExitCode;

use baton_report::OperatorError;
use clap::{Args, Subcommand};

/// Run applications
#[derive(Debug, Args)]
pub(crate) struct App {
    #[command(subcommand)]
    command: AppCommand,
}

#[derive(Debug, Subcommand)]
enum AppCommand {
    Run(Box<options::Run>),
    Cgi(cgi::Cgi),
    PhpFpm(php_fpm::PhpFpm),
}

impl App {
    /// Does what the command line asks for.
    ///
    /// # Errors
    /// Why it could not begin.
    pub(crate) fn run(&self) -> Result<ExitCode, OperatorError> {
        match &self.command {
            AppCommand::Run(options) => manager::run(options),
            AppCommand::Cgi(cgi) => cgi.run(),
            AppCommand::PhpFpm(php_fpm) => php_fpm.run(),
        }
    }
}
