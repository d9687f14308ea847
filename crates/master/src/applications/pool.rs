//! One application: the list of its processes, and the manager that keeps its processes running.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_config::{Launch, OWN_EXECUTABLE, Processes, word_of};
use baton_process_table::{ProcessReport, ProcessTable};
use baton_report::OperatorError;
use baton_report::log;
use baton_supervise::{self as supervise, Lines, Restart, Stopping};
use baton_sys::passing;
use baton_sys::process::Ended;
use rustix::process::Signal;
use serde_json::{Value, json};

/// A pool of processes.
#[derive(Debug)]
pub(super) struct Pool {
    /// The command and its settings.
    pub(super) launch: Launch,
    user: Option<String>,
    /// Whether a process of the server has the same user.
    is_of_server: bool,
    name: String,
    /// The prefix of the paths at which its processes listen.
    path: PathBuf,
    table: Arc<ProcessTable>,
    state: State,
    manager: Option<Manager>,
    outputs: Vec<Lines>,
    /// When the next manager is to be started, if there is none.
    restart: Restart,
    /// How long a request may take to finish after the configuration has forgotten the pool.
    patience: Duration,
    /// How many managers were started in place of ended ones.
    managers_replaced: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The configuration has the pool.
    Wanted,
    /// The pool finishes its requests.
    Leaving(Leaving),
    /// The manager was asked to end.
    Stopping(Stopping),
    /// Its manager has ended.
    Gone,
}

/// How a pool closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leaving {
    /// The deadline.
    until: Instant,
    /// When the master looks at it again.
    next_look: Instant,
    /// Whether no request needed the pool at the last look.
    is_abandoned: bool,
}

#[derive(Debug)]
struct Manager {
    pid: i32,
    since: Instant,
}

impl Pool {
    /// A pool without processes: they are started by [`advance`](Self::advance).
    ///
    /// # Errors
    /// Why its process table cannot be created.
    pub(super) fn open(
        launch: Launch,
        (user, is_of_server): (Option<String>, bool),
        path: PathBuf,
        patience: Duration,
        now: Instant,
    ) -> Result<Self, OperatorError> {
        let name = launch.name().to_owned();
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        // Twice as many: a replacement begins before the process that it replaces has ended.
        let places = count(launch.processes.max).saturating_mul(2).saturating_add(SPARE_PLACES);
        let table = ProcessTable::create(places, count(launch.concurrency)).map_err(|error| {
            OperatorError::of(format_args!("make a list of the processes of {name}"), &error)
        })?;
        Ok(Self {
            launch,
            user,
            is_of_server,
            name,
            path,
            table: Arc::new(table),
            state: State::Wanted,
            manager: None,
            outputs: Vec::new(),
            restart: Restart::new(now),
            patience,
            managers_replaced: 0,
        })
    }

    /// What users call it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The address by which workers know its processes.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Which processes there are.
    pub(super) fn table(&self) -> &Arc<ProcessTable> {
        &self.table
    }

    /// An application uses the pool; its requests may take `patience`.
    pub(super) fn stay(&mut self, patience: Duration) {
        self.patience = self.patience.max(patience);
        if matches!(self.state, State::Leaving(_)) {
            self.state = State::Wanted;
        }
    }

    /// No application uses the pool any more, but requests may be under way.
    pub(super) fn leave(&mut self, now: Instant) {
        if self.state == State::Wanted {
            let (until, next_look) = (now + self.patience, now + LOOK_AGAIN);
            self.state = State::Leaving(Leaving { until, next_look, is_abandoned: false });
        }
    }

    /// Asks its manager to end.
    pub(super) fn stop(&mut self, now: Instant) {
        self.state = match &self.manager {
            Some(manager) => {
                supervise::signal(manager.pid, Signal::TERM.as_raw());
                let deadline = now + Duration::from_secs(self.launch.grace_s) + MANAGERS_GRACE;
                State::Stopping(Stopping::new(manager.pid, deadline))
            }
            None => State::Gone,
        };
    }

    /// Whether its manager and processes have ended.
    pub(super) fn is_gone(&self) -> bool {
        self.state == State::Gone
    }

    /// Does what is due.
    pub(super) fn advance(&mut self, now: Instant) {
        if let State::Stopping(stopping) = &mut self.state {
            stopping.kill_if_late(format_args!("the manager of {}", self.name), now);
        }
        let state = self.state;
        match state {
            State::Leaving(leaving) if self.is_time_to_go(leaving, now) => self.stop(now),
            State::Wanted | State::Leaving(_) if self.manager.is_none() && self.restart.due() <= now => {
                self.start(now);
            }
            _ => {}
        }
    }

    /// When [`advance`](Self::advance) has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let start = self.manager.is_none().then_some(self.restart.due());
        match self.state {
            State::Wanted => start,
            State::Leaving(leaving) => start.into_iter().chain([leaving.until, leaving.next_look]).min(),
            State::Stopping(stopping) => Some(stopping.deadline()),
            State::Gone => None,
        }
    }

    /// Whether no request needed the pool at two looks in a row, or its deadline has passed.
    fn is_time_to_go(&mut self, leaving: Leaving, now: Instant) -> bool {
        if now < leaving.next_look {
            return leaving.until <= now;
        }
        let is_abandoned = self.table.is_abandoned();
        self.state = State::Leaving(Leaving { next_look: now + LOOK_AGAIN, is_abandoned, ..leaving });
        leaving.until <= now || leaving.is_abandoned && is_abandoned
    }

    fn start(&mut self, now: Instant) {
        match self.start_manager() {
            Ok((pid, output)) => {
                self.manager = Some(Manager { pid, since: now });
                self.outputs.push(output);
            }
            Err(error) => {
                let who = format_args!("the manager of {}", self.name);
                log::error(self.restart.note_failed_start(who, &error, now));
            }
        }
    }

    fn start_manager(&self) -> io::Result<(i32, Lines)> {
        let (lines, theirs) = Lines::open()?;
        // The message waits there until the manager reads it.
        let (channel, managers_end) = passing::message_pair()?;
        passing::send(&channel, b"r", &self.table.descriptors())?;
        let launch = &self.launch;
        let Processes { min, max, idle_s } = launch.processes;
        let mut command = Command::new(OWN_EXECUTABLE);
        command
            .arg0("baton")
            .args(["app", "run", "--name", &self.name, "--process-table"])
            .arg(&self.path)
            .args(["--parent", &std::process::id().to_string()])
            .args(["--processes", &min.to_string(), "--processes-max", &max.to_string()])
            .args(["--idle", &idle_s.to_string(), "--grace", &launch.grace_s.to_string()])
            .args(["--patience", &self.patience.as_millis().to_string()])
            .args(["--stop-signal", word_of(launch.stop_signal), "--status"])
            .arg(self.status_path())
            .args(launch.environment.iter().map(|(name, value)| format!("--env={name}={value}")));
        let options = [
            ("--user", self.user.clone()),
            ("--lifetime", launch.lifetime_s.map(|seconds| seconds.to_string())),
            ("--requests-max", launch.requests_max.map(|requests| requests.to_string())),
        ];
        for (flag, value) in options {
            command.args(value.map(|value| [flag.to_owned(), value]).into_iter().flatten());
        }
        if let Some(directory) = &launch.directory {
            command.arg("--directory").arg(directory);
        }
        let flags =
            [("--preload", launch.preload), ("--dropin", launch.dropin), ("--as-server", self.is_of_server)];
        for (flag, is_wanted) in flags {
            command.args(is_wanted.then_some(flag));
        }
        command
            .arg("--")
            .args(&launch.command)
            .stdin(managers_end)
            .stdout(Stdio::null())
            .stderr(theirs)
            // A Ctrl-C in the terminal must reach the master alone.
            .process_group(0);
        // The master waits for it with all other children.
        let pid = i32::try_from(command.spawn()?.id()).map_err(io::Error::other)?;
        Ok((pid, lines))
    }

    fn status_path(&self) -> PathBuf {
        self.path.with_extension("json")
    }

    /// The pipe into which the manager prints; during a change of managers, the newest one's.
    pub(super) fn output(&self) -> Option<BorrowedFd<'_>> {
        self.outputs.last().map(AsFd::as_fd)
    }

    /// Logs what was printed.
    pub(super) fn forward(&mut self) {
        self.outputs.retain_mut(Lines::forward);
    }

    /// Whether this process is its manager.
    pub(super) fn is_managed_by(&self, pid: i32) -> bool {
        self.manager.as_ref().is_some_and(|manager| manager.pid == pid)
    }

    /// Its manager has ended.
    pub(super) fn handle_end(&mut self, ended: Ended, now: Instant) {
        self.forward();
        let Some(manager) = self.manager.take() else { return };
        // Its processes end with it.
        self.table.clear();
        if let State::Stopping(_) = self.state {
            self.state = State::Gone;
            return;
        }
        self.managers_replaced += 1;
        let end = self.restart.note_end(ended, manager.since, now);
        log::error(end.with_restart(format_args!("the manager of {}", self.name)));
    }

    /// Its status.
    pub(super) fn report(&self) -> Value {
        let told = fs::read_to_string(self.status_path()).ok();
        let told: Value = told.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let count = |what: &str| told[what].as_u64().unwrap_or(0);
        let process =
            |one: ProcessReport| json!({ "pid": one.pid, "state": one.state, "requests": one.requests });
        let processes: Vec<Value> = self.table.report().into_iter().map(process).collect();
        json!({
            "name": self.name,
            "command": self.launch.command,
            "address": format!("unix:{}", self.path.display()),
            "manager": self.manager.as_ref().map(|manager| manager.pid),
            "processes": processes,
            "waiting": self.table.waiting(),
            "started": count("started"),
            "restarts": count("restarts") + self.managers_replaced,
            "recycled": count("recycled"),
            "killed": count("killed"),
            "leaving": self.state != State::Wanted,
        })
    }
}

/// Slots beyond two for each process, for processes that take long to end.
const SPARE_PLACES: usize = 8;

/// The time between two looks at a closing pool: much longer than a request needs from one thread to another.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// The time that a manager gets after its processes' deadline.
const MANAGERS_GRACE: Duration = Duration::from_secs(2);
