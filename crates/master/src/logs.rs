//! The log files: opened by the master, which may still be root, and passed to the workers, which are not.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use baton_config::{Config, Destination, LogSettings};
use baton_report::OperatorError;
use baton_report::log;
use baton_sys::open_below::open_below;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::syslog;

/// The open logs.
#[derive(Debug)]
pub(super) struct Logs {
    /// The access log, if there is one.
    access: Option<OwnedFd>,
    /// The error log, unless it is the standard error with which the master was started.
    error: Option<OwnedFd>,
    /// The access logs that sites have for themselves.
    sites: BTreeMap<PathBuf, OwnedFd>,
}

impl Logs {
    /// Opens the logs that are configured.
    ///
    /// # Errors
    /// The first log that cannot be opened, with the likely cause.
    pub(super) fn open(config: &Config) -> Result<Self, OperatorError> {
        let LogSettings { access, error, .. } = &config.log;
        let sites = open_sites(config, &BTreeMap::new())?;
        Ok(Self { access: open("access", access)?, error: open("error", error)?, sites })
    }

    /// Opens the log files again, by name: after a rename, or because the configuration names others. A syslog daemon that
    /// has a socket keeps it.
    ///
    /// # Errors
    /// The first log that cannot be opened; the old ones stay in use.
    pub(super) fn reopened(&self, config: &Config) -> Result<Self, OperatorError> {
        let LogSettings { access, error, .. } = &config.log;
        let again = |what, destination: &Destination| match destination {
            Destination::File(path) => open_file(what, path).map(Some),
            _ => Ok(None),
        };
        Ok(Self {
            access: again("access", access)?,
            error: again("error", error)?,
            sites: open_sites(config, &self.sites)?,
        })
    }

    /// Replaces the files that `reopened` has.
    pub(super) fn replace(&mut self, reopened: Self) {
        self.access = reopened.access.or(self.access.take());
        self.error = reopened.error.or(self.error.take());
        self.sites = reopened.sites;
    }

    /// A descriptor of the access log for a worker of its own.
    ///
    /// # Errors
    /// `EMFILE`.
    pub(super) fn access_for_worker(&self) -> io::Result<Option<OwnedFd>> {
        self.access.as_ref().map(OwnedFd::try_clone).transpose()
    }

    /// Descriptors of sites' own logs for a worker of its own.
    ///
    /// # Errors
    /// `EMFILE`.
    pub(super) fn sites_for_worker(&self) -> io::Result<Vec<(PathBuf, OwnedFd)>> {
        self.sites.iter().map(|(path, file)| Ok((path.clone(), file.try_clone()?))).collect()
    }

    /// Sites' own logs, as many at a time as a message has room for.
    pub(super) fn sites(&self) -> Vec<(Vec<PathBuf>, Vec<BorrowedFd<'_>>)> {
        let all: Vec<_> = self.sites.iter().map(|(path, file)| (path.clone(), file.as_fd())).collect();
        all.chunks(SITES_PER_MESSAGE).map(|some| some.iter().cloned().unzip()).collect()
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
        let sites = (!self.sites.is_empty()).then_some("sites");
        let server = [self.access.as_ref().map(|_| "access"), self.error.as_ref().map(|_| "error")];
        server.into_iter().chain([sites]).flatten()
    }

    /// From now on, this process writes its messages to the error log.
    ///
    /// # Errors
    /// `EMFILE`.
    pub(super) fn take_over_stderr(&self) -> io::Result<()> {
        self.error.as_ref().map_or(Ok(()), log::redirect_to)
    }
}

/// `known`: logs that are open.
fn open_sites(
    config: &Config,
    known: &BTreeMap<PathBuf, OwnedFd>,
) -> Result<BTreeMap<PathBuf, OwnedFd>, OperatorError> {
    let mut sites = BTreeMap::new();
    for (name, destination) in config.site_logs() {
        let socket = known.get(&name).filter(|_| destination.syslog().is_some());
        let kept = socket.and_then(|socket| socket.try_clone().ok());
        let file = kept.map_or_else(|| open("access", destination), |socket| Ok(Some(socket)))?;
        sites.extend(file.map(|file| (name, file)));
    }
    Ok(sites)
}

/// Each path may have 4 KiB, a message has 64.
const SITES_PER_MESSAGE: usize = 12;

fn open(what: &str, destination: &Destination) -> Result<Option<OwnedFd>, OperatorError> {
    let standard = match destination {
        Destination::Off => return Ok(None),
        Destination::File(path) => return open_file(what, path).map(Some),
        Destination::Stdout => io::stdout().as_fd().try_clone_to_owned(),
        Destination::Stderr => io::stderr().as_fd().try_clone_to_owned(),
        Destination::Syslog(daemon) => return syslog::open(daemon).map(Some),
    };
    standard.map(Some).map_err(|error| OperatorError::of(format_args!("open the {what} log"), &error))
}

fn open_file(what: &str, path: &Path) -> Result<OwnedFd, OperatorError> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
    // The folder of the logs may belong to the workers' user.
    open_below(path, flags, Mode::RUSR | Mode::WUSR | Mode::RGRP).map(File::into).map_err(|error| {
        let trouble = OperatorError::of(format_args!("open the {what} log {}", path.display()), &error);
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::LOOP | Errno::XDEV | Errno::PERM) => trouble
                .cause("it is a link, no file, or has another name, in a folder that another user owns: root does not follow")
                .remedy("name the file itself, or let root own the folder"),
            _ => trouble.about_file(path, &error),
        }
    })
}
