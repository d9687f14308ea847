//! One application: its socket, and the manager that keeps its processes running.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use baton_sys::process::{self, Ended};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::app::Lines;
use crate::config::{Launch, OWN_EXECUTABLE, word_of};
use crate::run::backoff::Backoff;
use crate::run::trouble::Trouble;
use crate::run::{describe_end, log};

/// A pool of processes.
#[derive(Debug)]
pub(super) struct Pool {
    /// What is run.
    pub(super) launch: Launch,
    user: Option<String>,
    name: String,
    path: PathBuf,
    socket: OwnedFd,
    state: State,
    manager: Option<Manager>,
    outputs: Vec<Lines>,
    backoff: Backoff,
    /// When the next manager is to be started, if there is none.
    due: Instant,
    /// How long a request may take to finish after the configuration has forgotten the pool.
    patience: Duration,
    /// How often a manager was started in place of one that ended.
    managers_replaced: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The configuration has it.
    Wanted,
    /// It finishes what it was given, until then.
    Leaving(Instant),
    /// Its manager was asked to end, and is killed then.
    Stopping(Instant),
}

#[derive(Debug)]
struct Manager {
    pid: i32,
    since: Instant,
}

impl Pool {
    /// Opens its socket. The processes are started by [`advance`](Self::advance).
    ///
    /// # Errors
    /// What stands in the way of the socket.
    pub(super) fn open(
        launch: Launch,
        user: Option<String>,
        path: PathBuf,
        patience: Duration,
        now: Instant,
    ) -> Result<Self, Trouble> {
        let name = launch.name().to_owned();
        let socket = listen(&path)
            .map_err(|error| Trouble::of(format_args!("listen for {name} on {}", path.display()), &error))?;
        Ok(Self {
            launch,
            user,
            name,
            path,
            socket,
            state: State::Wanted,
            manager: None,
            outputs: Vec::new(),
            backoff: Backoff::new(),
            due: now,
            patience,
            managers_replaced: 0,
        })
    }

    /// Where its processes listen.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Some application uses it whose requests may take that long.
    pub(super) fn stay(&mut self, patience: Duration) {
        self.patience = self.patience.max(patience);
        if matches!(self.state, State::Leaving(_)) {
            self.state = State::Wanted;
        }
    }

    /// No application uses it any more, but requests may be under way.
    pub(super) fn leave(&mut self, now: Instant) {
        if self.state == State::Wanted {
            self.state = State::Leaving(now + self.patience);
        }
    }

    /// Asks its manager to end.
    pub(super) fn stop(&mut self, now: Instant) {
        if let Some(manager) = &self.manager {
            // It fails only if the manager has ended just now.
            let _ = process::kill(manager.pid, Signal::TERM.as_raw());
        }
        self.state = State::Stopping(now + Duration::from_secs(self.launch.grace_s) + MANAGERS_GRACE);
    }

    /// Whether there is nothing left of it but its name.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.state, State::Stopping(_)) && self.manager.is_none()
    }

    /// Does what is due.
    pub(super) fn advance(&mut self, now: Instant) {
        match self.state {
            State::Leaving(until) if until <= now => self.stop(now),
            State::Stopping(until) if until <= now => self.kill(now),
            State::Wanted | State::Leaving(_) if self.manager.is_none() && self.due <= now => self.start(now),
            _ => {}
        }
    }

    /// When [`advance`](Self::advance) has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let start = self.manager.is_none().then_some(self.due);
        match self.state {
            State::Wanted => start,
            State::Leaving(until) => Some(start.map_or(until, |due| due.min(until))),
            State::Stopping(until) => Some(until),
        }
    }

    fn kill(&mut self, now: Instant) {
        if let Some(manager) = &self.manager {
            log::warning(format_args!("the manager of {} did not end in time and is killed", self.name));
            let _ = process::kill(manager.pid, Signal::KILL.as_raw());
        }
        self.state = State::Stopping(now + AFTER_KILLING);
    }

    fn start(&mut self, now: Instant) {
        match self.start_manager() {
            Ok((pid, output)) => {
                self.manager = Some(Manager { pid, since: now });
                self.outputs.push(output);
            }
            Err(error) => {
                let wait = self.backoff.after(Duration::ZERO);
                self.due = now + wait;
                log::error(format_args!(
                    "cannot start the manager of {}: {error}; the next try is in {wait:?}",
                    self.name
                ));
            }
        }
    }

    fn start_manager(&self) -> io::Result<(i32, Lines)> {
        let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let launch = &self.launch;
        let mut command = Command::new(OWN_EXECUTABLE);
        command
            .arg0("baton")
            .args(["app", "run", "--listen", "stdin", "--name", &self.name])
            .args(["--parent", &std::process::id().to_string()])
            .args(["--processes", &launch.processes.to_string(), "--grace", &launch.grace_s.to_string()])
            .args(["--stop-signal", word_of(launch.stop_signal), "--status"])
            .arg(self.status_path())
            .args(launch.environment.iter().map(|(name, value)| format!("--env={name}={value}")));
        let options = [
            ("--user", self.user.clone()),
            ("--lifetime", launch.lifetime_s.map(|seconds| seconds.to_string())),
        ];
        for (flag, value) in options {
            command.args(value.map(|value| [flag.to_owned(), value]).into_iter().flatten());
        }
        if let Some(directory) = &launch.directory {
            command.arg("--directory").arg(directory);
        }
        for (flag, is_wanted) in [("--preload", launch.preload), ("--dropin", launch.dropin)] {
            command.args(is_wanted.then_some(flag));
        }
        command
            .arg("--")
            .args(&launch.command)
            .stdin(self.socket.try_clone()?)
            .stdout(Stdio::null())
            .stderr(theirs)
            // A Ctrl-C in the terminal is the master's matter.
            .process_group(0);
        // It is awaited with all other children.
        let pid = i32::try_from(command.spawn()?.id()).map_err(io::Error::other)?;
        Ok((pid, Lines::new(ours, None)))
    }

    fn status_path(&self) -> PathBuf {
        self.path.with_extension("json")
    }

    /// What the manager prints into; during a change of managers, the newest one's.
    pub(super) fn output(&self) -> Option<BorrowedFd<'_>> {
        self.outputs.last().map(AsFd::as_fd)
    }

    /// Shows what was printed.
    pub(super) fn forward(&mut self) {
        self.outputs.retain_mut(Lines::forward);
    }

    /// Whether a process is its manager.
    pub(super) fn is_managed_by(&self, pid: i32) -> bool {
        self.manager.as_ref().is_some_and(|manager| manager.pid == pid)
    }

    /// Its manager has ended.
    pub(super) fn handle_end(&mut self, ended: Ended, now: Instant) {
        self.forward();
        let Some(manager) = self.manager.take() else { return };
        if matches!(self.state, State::Stopping(_)) {
            return;
        }
        let lived = now.duration_since(manager.since);
        let wait = self.backoff.after(lived);
        self.due = now + wait;
        self.managers_replaced += 1;
        let (name, how) = (&self.name, describe_end(ended));
        log::error(format_args!(
            "the manager of {name} {how} after {lived:.1?}; the next one starts in {wait:?}"
        ));
    }

    /// What is known of it.
    pub(super) fn report(&self) -> Value {
        let told = fs::read_to_string(self.status_path()).ok();
        let told: Value = told.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        json!({
            "name": self.name,
            "command": self.launch.command,
            "address": format!("unix:{}", self.path.display()),
            "manager": self.manager.as_ref().map(|manager| manager.pid),
            "processes": if self.manager.is_some() { told["processes"].clone() } else { json!([]) },
            "restarts": told["restarts"].as_u64().unwrap_or(0) + self.managers_replaced,
            "leaving": self.state != State::Wanted,
        })
    }
}

fn listen(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    // The folder is what keeps others away.
    fs::set_permissions(path, Permissions::from_mode(0o666))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Connections that wait to be accepted; workers open few.
const BACKLOG: i32 = 4096;

/// What a manager gets beyond the time that its processes have, to close up.
const MANAGERS_GRACE: Duration = Duration::from_secs(2);

/// How long a process that was killed may take to end: more than a disk that does not answer.
const AFTER_KILLING: Duration = Duration::from_secs(60);
