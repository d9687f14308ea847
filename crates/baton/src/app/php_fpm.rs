//! `baton app php-fpm`: php-fpm at an inherited socket, with a configuration that exists in memory only.
//!
//! php-fpm finds sockets that it inherits in `FPM_SOCKETS`, by the addresses that its configuration gives them: that is
//! how it passes them on to itself when it is reloaded.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use baton_report::OperatorError;
use clap::{Args, ValueHint};
use rustix::fs::MemfdFlags;

/// Run php-fpm at the socket that is standard input
#[derive(Debug, Args)]
pub(crate) struct PhpFpm {
    /// Requests that are answered at a time
    #[arg(short, long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=4096))]
    children: u32,

    /// The program
    #[arg(value_name = "PROGRAM", value_hint = ValueHint::ExecutablePath)]
    program: PathBuf,
}

impl PhpFpm {
    /// Becomes php-fpm.
    ///
    /// # Errors
    /// Why that is not possible.
    pub(super) fn run(&self) -> Result<ExitCode, OperatorError> {
        let Err(error) = self.become_it();
        Err(OperatorError::of(format_args!("run {}", self.program.display()), &error))
    }

    fn become_it(&self) -> io::Result<std::convert::Infallible> {
        // Both descriptors stay open in what is executed.
        let socket = rustix::io::dup(io::stdin())?;
        let mut configuration = File::from(rustix::fs::memfd_create("php-fpm.conf", MemfdFlags::empty())?);
        configuration.write_all(self.configuration().as_bytes())?;
        let mut command = Command::new(&self.program);
        command
            .arg("--nodaemonize")
            .arg("--fpm-config")
            .arg(format!("/proc/self/fd/{}", configuration.as_raw_fd()))
            .env("FPM_SOCKETS", format!("{ADDRESS}={}", socket.as_raw_fd()));
        if rustix::process::geteuid().is_root() {
            // The configuration asked for root.
            command.arg("--allow-to-run-as-root");
        }
        Err(command.exec())
    }

    fn configuration(&self) -> String {
        let children = self.children;
        let spare = children.min(SPARE_MAX);
        format!(
            "[global]\nerror_log = /proc/self/fd/2\n\
             [www]\nlisten = {ADDRESS}\npm = dynamic\npm.max_children = {children}\npm.start_servers = 1\n\
             pm.min_spare_servers = 1\npm.max_spare_servers = {spare}\nclear_env = no\n\
             catch_workers_output = yes\ndecorate_workers_output = no\n"
        )
    }
}

/// What php-fpm calls the socket. When it ends it removes what is there: nothing.
const ADDRESS: &str = "/nonexistent/baton.sock";

/// Processes that wait for requests, at most, when there are none.
const SPARE_MAX: u32 = 3;
