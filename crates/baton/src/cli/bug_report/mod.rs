//! `baton bug-report`: what a maintainer asks first about a fault, without secrets.
//!
//! A part that cannot be found out is a line that says why: a report is needed most where something is broken.

mod features;
mod log_lines;
mod markdown;
mod system;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use baton_config::{Config, ConfigError, ControlSocket, RawConfig, Redaction};
use baton_master::control::{self, Command};
use baton_report::OperatorError;
use clap::{Args, ValueHint};

use self::markdown::fenced;
use super::config_file::ConfigFile;
use super::output::{Failure, print};
use super::{check, status_summary};

/// Print a report for an issue: the build, this host, the server, its configuration without secrets, the end of its error log
///
/// The report is Markdown. It needs no rights beyond those of the user who asks, and says in a line what that user may not
/// read. Ask as the user who starts the server, so that nothing is missing.
///
/// Left out or replaced by `(redacted)`: passwords and their hashes, names of users and accounts, values of header fields, the
/// environment and arguments of applications, bodies of responses, credentials and queries in URLs, variables, comments,
/// settings that Baton does not know; in the log, addresses and queries of clients. Names of hosts, paths of files and addresses
/// in the configuration stay: read the report before you publish it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct BugReport {
    #[command(flatten)]
    file: ConfigFile,

    /// Control socket [default: that of the configuration, or the usual one of this user]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, env = "BATON_CONTROL")]
    control: Option<PathBuf>,

    /// Lines of the error log
    #[arg(long, value_name = "N", default_value_t = 50)]
    log_lines: usize,

    /// Write the report to this file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  sudo baton bug-report --output report.md
  baton bug-report -c baton.toml --log-lines 200
";

impl BugReport {
    /// Gathers and prints.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let report = self.report();
        let Some(output) = &self.output else { return print(&report) };
        fs::write(output, report).map_err(|error| {
            OperatorError::of(format_args!("write {}", output.display()), &error).about_file(output, &error)
        })?;
        print(&format!("{}: read it before you publish it\n", output.display()))
    }

    fn report(&self) -> String {
        let (redaction, config) = read(&self.file.config);
        let config = config.as_ref();
        let log = match config {
            Ok(config) => log_lines::of(&config.log.error, self.log_lines),
            Err(_) => "not known: the configuration is refused\n".to_owned(),
        };
        let parts = [
            ("Build and host", system::list()),
            ("Kernel", features::list(config.ok())),
            ("Server", fenced("", &redaction.without_secrets(&self.status(config.ok())))),
            ("Check", fenced("", &redaction.without_secrets(&self.checked(config)))),
            ("Configuration", fenced("toml", &redaction.shown)),
            ("Error log", fenced("", &redaction.without_secrets(&log))),
        ];
        let mut report = String::from(HEAD);
        for (title, text) in parts {
            report.push_str(&format!("\n## {title}\n\n{text}"));
        }
        report
    }

    /// How the running server is, on one screen.
    fn status(&self, config: Option<&Config>) -> String {
        let configured = config.and_then(|config| match &config.server.control_socket {
            ControlSocket::Path(path) => Some(path.clone()),
            ControlSocket::Auto | ControlSocket::Off => None,
        });
        let path = self.control.clone().or(configured).map_or_else(control::find, Ok);
        let answer = path.and_then(|path| control::request(&path, Command::Status));
        let answer = answer.map_err(|trouble| trouble.to_string());
        let told = answer.and_then(|answer| serde_json::from_str(&answer).map_err(|error| error.to_string()));
        told.map_or_else(|why| why + "\n", |told| status_summary::summary(&told))
    }

    fn checked(&self, config: Result<&Config, &ConfigError>) -> String {
        match config {
            Ok(config) => check::told(&self.file.config, config).unwrap_or_else(|failure| failure.0 + "\n"),
            Err(error) => error.without_excerpts(),
        }
    }
}

/// A configuration without its secrets, and as far as it is accepted.
fn read(file: &Path) -> (Redaction, Result<Config, ConfigError>) {
    match RawConfig::read(file) {
        Ok(raw) => (Redaction::of(&raw.source), Config::check(&raw)),
        Err(error) => (Redaction::of(error.source()), Err(error)),
    }
}

const HEAD: &str = "# Baton: report for an issue

Secrets, comments of the configuration, and clients' addresses and queries in the log are left out or `(redacted)`.
";
