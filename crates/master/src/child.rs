//! A child of the master that is no worker: started when it is wanted, asked to end when it is not, and started again when it
//! ends by itself. It is as unprivileged as a worker, and gets its settings in a file in memory.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use baton_config::OWN_EXECUTABLE;
use baton_confine::Limits;
use baton_report::log;
use baton_supervise::{self as supervise, Lines, Restart, Stopping};
use baton_sys::passing;
use baton_sys::process::Ended;
use rustix::process::Signal;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::channel::{self, MESSAGE_BYTES_MAX};
use super::memory_file;
use super::privileges::{self, WorkerUser};

/// The children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildName {
    /// `baton acme` obtains certificates.
    Acme,
    /// `baton documents` decides where documents are that migrate.
    Documents,
    /// `baton members` knows nodes of the cluster.
    Members,
}

/// A child, whether it runs or not.
#[derive(Debug)]
pub(super) struct Child {
    kind: &'static Kind,
    limits: Limits,
    process: Option<Process>,
    /// What it prints; after its end, until all has been read.
    output: Option<Lines>,
    restart: Restart,
}

/// What does not change about a child.
#[derive(Debug)]
pub(super) struct Kind {
    /// The sub-command of `baton`.
    pub(super) command: &'static str,
    /// What sentences of the log call it.
    pub(super) who: &'static str,
    /// How long it may take to end.
    pub(super) grace: Duration,
}

#[derive(Debug)]
struct Process {
    pid: i32,
    since: Instant,
    channel: OwnedFd,
    stopping: Option<Stopping>,
}

impl Child {
    /// A child that does not run yet.
    pub(super) fn new(kind: &'static Kind, limits: Limits, now: Instant) -> Self {
        Self { kind, limits, process: None, output: None, restart: Restart::new(now) }
    }

    /// Whether it does not run, and may be started.
    pub(super) fn may_start(&self, now: Instant) -> bool {
        self.process.is_none() && self.restart.due() <= now
    }

    /// Does not start it before `due`.
    pub(super) fn start_at(&mut self, due: Instant) {
        self.restart.start_at(due);
    }

    /// Starts it. `configure` is the message with which it gets the settings, `folder` is the only one below which it may write.
    pub(super) fn start(
        &mut self,
        configure: &impl Serialize,
        settings: &impl Serialize,
        folder: &Path,
        user: &WorkerUser,
        now: Instant,
    ) {
        match self.spawn(configure, settings, folder, user, now) {
            Ok((process, output)) => {
                self.process = Some(process);
                self.output = Some(output);
            }
            Err(error) => log::error(self.restart.note_failed_start(self.kind.who, &error, now)),
        }
    }

    fn spawn(
        &self,
        configure: &impl Serialize,
        settings: &impl Serialize,
        folder: &Path,
        user: &WorkerUser,
        now: Instant,
    ) -> io::Result<(Process, Lines)> {
        let (output, theirs) = Lines::open()?;
        let (channel, its_end) = passing::message_pair()?;
        // A process that does not read must not block the master.
        rustix::io::ioctl_fionbio(&channel, true)?;
        self.send_settings(&channel, configure, settings)?;
        let mut command = Command::new(OWN_EXECUTABLE);
        command
            .arg0("baton")
            .args([self.kind.command, "--parent", &std::process::id().to_string()])
            .arg("--folder")
            .arg(folder)
            .args(privileges::options(&self.limits))
            .stdin(its_end)
            .stdout(Stdio::null())
            .stderr(theirs)
            // A Ctrl-C in the terminal must reach the master alone.
            .process_group(0);
        if let WorkerUser::Other { identity, .. } = user {
            // Without other groups: the standard library drops them with root's rights.
            command.uid(identity.uid).gid(identity.gid);
        }
        // The master waits for it with all other children.
        let pid = i32::try_from(command.spawn()?.id()).map_err(io::Error::other)?;
        Ok((Process { pid, since: now, channel, stopping: None }, output))
    }

    fn send_settings(
        &self,
        channel: &OwnedFd,
        configure: &impl Serialize,
        settings: &impl Serialize,
    ) -> io::Result<()> {
        let file =
            memory_file::write(&format!("baton-{}", self.kind.command), &serde_json::to_vec(settings)?)?;
        channel::send(channel, configure, &[file.as_fd()])
    }

    /// Gives it other settings if it runs.
    pub(super) fn configure(&self, configure: &impl Serialize, settings: &impl Serialize) -> io::Result<()> {
        self.process
            .as_ref()
            .map_or(Ok(()), |process| self.send_settings(&process.channel, configure, settings))
    }

    /// Asks it to end, if it runs; kills it if it does not.
    pub(super) fn stop(&mut self, now: Instant) {
        let Some(process) = &mut self.process else { return };
        match &mut process.stopping {
            Some(stopping) => stopping.kill_if_late(self.kind.who, now),
            None => {
                supervise::signal(process.pid, Signal::TERM.as_raw());
                process.stopping = Some(Stopping::new(process.pid, now + self.kind.grace));
            }
        }
    }

    /// Sends it a message after which it ends, if it runs; kills it if it does not.
    pub(super) fn stop_by(&mut self, message: &impl Serialize, now: Instant) {
        if self.is_stopping() || self.tell(message).is_err() {
            return self.stop(now);
        }
        if let Some(process) = &mut self.process {
            process.stopping = Some(Stopping::new(process.pid, now + self.kind.grace));
        }
    }

    /// Whether it runs, and has been asked to end.
    pub(super) fn is_stopping(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.stopping.is_some())
    }

    /// When it is to be started, or [`stop`](Self::stop) has something to do.
    pub(super) fn deadline(&self, is_wanted: bool) -> Option<Instant> {
        match &self.process {
            Some(process) => process.stopping.map(|stopping| stopping.deadline()),
            None => is_wanted.then_some(self.restart.due()),
        }
    }

    /// Its messages, to poll.
    pub(super) fn channel(&self) -> Option<BorrowedFd<'_>> {
        self.process.as_ref().map(|process| process.channel.as_fd())
    }

    /// What it prints, to poll.
    pub(super) fn output(&self) -> Option<BorrowedFd<'_>> {
        self.output.as_ref().map(AsFd::as_fd)
    }

    /// The child has printed something.
    pub(super) fn handle_output(&mut self) {
        self.output.take_if(|lines| !lines.forward());
    }

    /// The messages that it has sent.
    pub(super) fn receive<M: DeserializeOwned>(&self) -> Vec<(M, Vec<OwnedFd>)> {
        let mut messages = Vec::new();
        let Some(process) = &self.process else { return messages };
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        loop {
            match channel::receive(&process.channel, &mut buffer) {
                Ok(Some(message)) => messages.push(message),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // It has ended, or is of no use; its end is noted when it is reaped.
                Ok(None) | Err(_) => {
                    supervise::kill(process.pid);
                    break;
                }
            }
        }
        messages
    }

    /// Sends it a message.
    ///
    /// # Errors
    /// `NotFound` if it does not run; as [`channel::send`]: it has ended, or does not read.
    pub(super) fn tell(&self, message: &impl Serialize) -> io::Result<()> {
        let process = self.process.as_ref().ok_or(io::ErrorKind::NotFound)?;
        channel::send(&process.channel, message, &[])
    }

    /// A child of the master has ended. Returns whether it was this one.
    pub(super) fn handle_end(&mut self, pid: i32, ended: Ended, now: Instant) -> bool {
        let Some(process) = self.process.take_if(|process| process.pid == pid) else { return false };
        self.handle_output();
        match process.stopping {
            None => log::error(self.restart.note_end(ended, process.since, now).with_restart(self.kind.who)),
            Some(_) => self.restart = Restart::new(now),
        }
        true
    }

    /// Its process, if it runs.
    pub(super) fn pid(&self) -> Option<i32> {
        self.process.as_ref().map(|process| process.pid)
    }
}
