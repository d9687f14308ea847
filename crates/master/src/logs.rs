//! The log files: opened by the master, which may still be root, and passed to the workers, which are not.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use baton_config::{Destination, LogSettings};
use baton_report::Trouble;
use baton_report::log;

/// The open logs.
#[derive(Debug)]
pub(super) struct Logs {
    /// The access log, if there is one.
    access: Option<OwnedFd>,
    /// The error log, unless it is the standard error with which the master was started.
    error: Option<OwnedFd>,
}

impl Logs {
    /// Opens the logs that are configured.
    ///
    /// # Errors
    /// The first log that cannot be opened, with the likely cause.
    pub(super) fn open(settings: &LogSettings) -> Result<Self, Trouble> {
        Ok(Self { access: open("access", &settings.access)?, error: open("error", &settings.error)? })
    }

    /// Opens the log files again, by name: after a rename, or because the configuration names others.
    ///
    /// # Errors
    /// The first log that cannot be opened; the old ones stay in use.
    pub(super) fn reopened(&self, settings: &LogSettings) -> Result<Self, Trouble> {
        let again = |what, destination: &Destination| match destination {
            Destination::File(path) => open_file(what, path).map(Some),
            _ => Ok(None),
        };
        Ok(Self { access: again("access", &settings.access)?, error: again("error", &settings.error)? })
    }

    /// Replaces the files that `reopened` has.
    pub(super) fn replace(&mut self, reopened: Self) {
        self.access = reopened.access.or(self.access.take());
        self.error = reopened.error.or(self.error.take());
    }

    /// A descriptor of the access log for a worker of its own.
    ///
    /// # Errors
    /// `EMFILE`.
    pub(super) fn access_for_worker(&self) -> io::Result<Option<OwnedFd>> {
        self.access.as_ref().map(OwnedFd::try_clone).transpose()
    }

    /// The access log.
    pub(super) fn access(&self) -> Option<BorrowedFd<'_>> {
        self.access.as_ref().map(AsFd::as_fd)
    }

    /// The error log, if it is a file.
    pub(super) fn error(&self) -> Option<BorrowedFd<'_>> {
        self.error.as_ref().map(AsFd::as_fd)
    }

    /// The names of the open logs.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        [self.access.as_ref().map(|_| "access"), self.error.as_ref().map(|_| "error")].into_iter().flatten()
    }

    /// From now on, this process writes its messages to the error log.
    ///
    /// # Errors
    /// `EMFILE`.
    pub(super) fn take_over_stderr(&self) -> io::Result<()> {
        self.error.as_ref().map_or(Ok(()), log::redirect_to)
    }
}

fn open(what: &str, destination: &Destination) -> Result<Option<OwnedFd>, Trouble> {
    let standard = match destination {
        Destination::Off => return Ok(None),
        Destination::File(path) => return open_file(what, path).map(Some),
        Destination::Stdout => io::stdout().as_fd().try_clone_to_owned(),
        Destination::Stderr => io::stderr().as_fd().try_clone_to_owned(),
    };
    standard.map(Some).map_err(|error| Trouble::of(format_args!("open the {what} log"), &error))
}

fn open_file(what: &str, path: &Path) -> Result<OwnedFd, Trouble> {
    log::open(path).map(File::into).map_err(|error| {
        Trouble::of(format_args!("open the {what} log {}", path.display()), &error).about_file(path, &error)
    })
}
