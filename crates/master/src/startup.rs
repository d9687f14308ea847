//! What was decided at the start, and stays for the life of the server.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::time::{Instant, SystemTime};

use baton_config::ConfigSource;
use baton_engine::Tuning;
use baton_report::log;

use super::privileges::WorkerUser;

/// Facts of the start.
#[derive(Debug)]
pub(crate) struct Startup {
    /// The master's process.
    pub(crate) pid: u32,
    pub(crate) source: ConfigSource,
    pub(crate) tuning: Tuning,
    /// The user as which workers and children run.
    pub(crate) user: WorkerUser,
    /// How much memory is for the contents of files, and why.
    pub(crate) cache_memory: String,
    /// Whether the kernel seals records of TLS.
    pub(crate) kernel_tls: String,
    /// How many descriptors a worker may have, and what for.
    pub(crate) descriptors: String,
    pub(crate) began: Instant,
    pub(crate) began_at: SystemTime,
}

impl Startup {
    /// When the server was started, in seconds since 1970.
    pub(crate) fn began_at_s(&self) -> u64 {
        self.began_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
    }
}

/// The standard error of the start: the terminal, if there is one.
#[derive(Debug)]
pub(crate) struct Terminal {
    stderr: OwnedFd,
    /// What the server prints there once it serves.
    announcement: String,
}

impl Terminal {
    /// The terminal, and what it is told once the server serves.
    pub(crate) fn new(stderr: OwnedFd, announcement: String) -> Self {
        Self { stderr, announcement }
    }

    /// The server serves.
    pub(crate) fn announce(&self, is_logged: bool) {
        if is_logged {
            log::notice(&self.announcement);
        }
        if let Ok(stderr) = self.stderr.try_clone() {
            // Fails if the terminal has been closed.
            let _ = File::from(stderr).write_all(self.announcement.as_bytes());
        }
    }

    /// From now on messages go there, and not to the log.
    pub(crate) fn take_log(&self) {
        let _ = log::redirect_to(&self.stderr);
    }
}
