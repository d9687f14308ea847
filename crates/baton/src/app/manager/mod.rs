//! Keeps processes running: one thread, one loop, over signals, the processes' output, wakeups by the server's loops,
//! and the clock.
//!
//! ```text
//!            ┌─────────────── due: starts ──────────────┐
//!   replica: empty ── wait, longer after each early end ──┘──► process ──► ends by itself: empty
//!                                                              │ is old, or has served enough: a replacement starts
//!                                                              ▼
//!                                   replacement ready ──► the process ends between two requests, and is replaced
//! ```
//!
//! Under a server, [`readiness`] tells its loops which processes take requests. Without a server all processes listen
//! on one socket, and a process that is asked to end may be in the middle of a request. [`scaling`] decides how many
//! run.

mod readiness;
mod replica;
mod scaling;

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use baton_confine::{Kind, Limits, confine};
use baton_report::{OperatorError, log};
use baton_supervise::{self as supervise, Lines, Stopping, describe_end};
use baton_sys::process::{self, Ended};
use baton_sys::signals::SignalQueue;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal};
use serde_json::json;

use self::readiness::Readiness;
use self::replica::{Process, Replica};
use super::options::Run;
use super::program::{MANAGERS_SIGNALS, Program};
use super::sockets::Sockets;

/// Runs processes until a signal asks the manager to end.
///
/// # Errors
/// Why no process could be started.
pub(super) fn run(options: &Run) -> Result<ExitCode, OperatorError> {
    let signals = SignalQueue::new(&MANAGERS_SIGNALS.map(Signal::as_raw))
        .map_err(|error| OperatorError::of("receive signals", &error))?;
    if let Some(parent) = options.parent {
        process::die_with_parent().map_err(|error| OperatorError::of("follow the parent", &error))?;
        if std::os::unix::process::parent_id() != parent {
            return Err(OperatorError::new("the process that started this one has ended"));
        }
    }
    let sockets = Sockets::open(options)?;
    let program = options.program()?;
    confine(Kind::Manager, &Limits { is_root_on_request: program.is_of_root(), ..Limits::default() })?;
    // By their ancestors the server knows which processes are of applications.
    rustix::process::set_child_subreaper(Pid::from_raw(1))
        .map_err(|error| OperatorError::of("adopt processes", &error.into()))?;
    let now = Instant::now();
    let count = options.processes.max(options.processes_max.unwrap_or(0));
    let mut manager = Manager {
        name: options.name(),
        program,
        sockets,
        readiness: readiness(options)?,
        signals,
        stop_signal: options.stop_signal(),
        grace: options.grace(),
        lifetime: options.lifetime(),
        idle: options.idle(),
        status: options.status.clone(),
        replicas: (0..count).map(|number| Replica::new(number < options.processes, now)).collect(),
        replicas_min: options.processes as usize,
        stopping: Vec::new(),
        to_replace: VecDeque::new(),
        next_look: now,
        outputs: Vec::new(),
        tally: Tally::default(),
        has_demand: false,
        is_ending: false,
        has_changed: true,
    };
    manager.work();
    Ok(ExitCode::SUCCESS)
}

/// Under a server: the readiness of the processes, over the table received on standard input.
fn readiness(options: &Run) -> Result<Option<Readiness>, OperatorError> {
    let inherited =
        |prefix: &PathBuf| Readiness::inherited(prefix.clone(), options.requests_max, options.patience());
    options.process_table.as_ref().map(inherited).transpose()
}

#[derive(Debug)]
struct Manager {
    name: String,
    program: Program,
    sockets: Sockets,
    readiness: Option<Readiness>,
    signals: SignalQueue,
    stop_signal: i32,
    grace: Duration,
    lifetime: Option<Duration>,
    /// How long a process beyond the minimum may be idle.
    idle: Duration,
    status: Option<PathBuf>,
    replicas: Vec<Replica>,
    /// The minimum of processes.
    replicas_min: usize,
    /// Processes that have been asked to end.
    stopping: Vec<StoppingProcess>,
    /// Replicas whose processes are to be replaced, one after the other.
    to_replace: VecDeque<usize>,
    /// When to look for idle processes, if there may be too many.
    next_look: Instant,
    outputs: Vec<Lines>,
    tally: Tally,
    /// Whether the loops have woken the manager.
    has_demand: bool,
    is_ending: bool,
    /// Whether the status differs from the written one.
    has_changed: bool,
}

/// Counts of events.
#[derive(Debug, Default)]
struct Tally {
    started: u64,
    /// Processes replaced after they had ended by themselves.
    restarts: u64,
    /// Processes replaced because of their age or of the requests they had served.
    recycled: u64,
    /// Processes killed because a request took too long.
    killed: u64,
}

#[derive(Debug)]
struct StoppingProcess {
    process: Process,
    stopping: Stopping,
}

impl Manager {
    fn work(&mut self) {
        while !(self.is_ending && self.stopping.is_empty()) {
            let now = Instant::now();
            self.advance(now);
            self.write_status();
            self.wait(self.deadline());
            self.handle_signals();
            self.reap(Instant::now());
            self.handle_readiness();
            self.outputs.retain_mut(Lines::forward);
        }
        self.write_status();
    }

    /// Does what is due.
    fn advance(&mut self, now: Instant) {
        for StoppingProcess { process, stopping } in &mut self.stopping {
            stopping.kill_if_late(format_args!("{}[{}]", self.name, process.pid), now);
        }
        if !self.is_ending {
            self.scale(now);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let stopping = self.stopping.iter().map(|one| one.stopping.deadline());
        if self.is_ending {
            return stopping.min();
        }
        stopping.chain(self.next_change()).min()
    }

    /// Starts a process, under a server with a socket of its own.
    fn start(&mut self, now: Instant, number: usize) -> io::Result<Option<Process>> {
        let Some(slot) = self.free_slot(number) else { return Ok(None) };
        let own = self.readiness.as_ref().map(|readiness| readiness.listen(slot)).transpose()?;
        let socket = own.as_ref().map(AsFd::as_fd).or_else(|| self.sockets.of(slot));
        let (pid, output) = self.program.start(socket)?;
        self.outputs.push(output.said_by(format!("{}[{pid}]", self.name)));
        self.tally.started += 1;
        self.has_changed = true;
        let is_ready = self.readiness.as_mut().is_none_or(|readiness| readiness.begin(slot, pid));
        Ok(Some(Process { pid, since: now, slot, is_ready, requests_seen: 0 }))
    }

    /// The number of a socket for a process: without a server, that of its replica.
    fn free_slot(&self, number: usize) -> Option<usize> {
        let Some(readiness) = &self.readiness else { return Some(number) };
        let leaving = self.stopping.iter().map(|one| one.process);
        let all: Vec<_> = self.replicas.iter().flat_map(Replica::processes).chain(leaving).collect();
        (0..readiness.table.slots()).find(|slot| all.iter().all(|process| process.slot != *slot))
    }

    /// Asks a process to end. Its replica may have another one already.
    fn dismiss(&mut self, process: Process, signal: i32, now: Instant) {
        if let Some(readiness) = &mut self.readiness {
            readiness.dismiss(process.slot);
        }
        supervise::signal(process.pid, signal);
        // The kill also reaches the children of the process.
        let stopping = Stopping::new(-process.pid, now + self.grace);
        self.stopping.push(StoppingProcess { process, stopping });
        self.has_changed = true;
    }

    fn handle_signals(&mut self) {
        while let Ok(Some(arrived)) = self.signals.next() {
            match arrived.signal {
                hup if hup == Signal::HUP.as_raw() && !self.is_ending => {
                    log::notice(format_args!("{}: all processes are replaced", self.name));
                    self.to_replace = (0..self.replicas.len()).collect();
                }
                child_or_hup if [Signal::CHILD, Signal::HUP].map(Signal::as_raw).contains(&child_or_hup) => {}
                _ => self.end(Instant::now()),
            }
        }
    }

    /// Asks all processes to end; when called again, kills them.
    fn end(&mut self, now: Instant) {
        if std::mem::replace(&mut self.is_ending, true) {
            self.stopping.iter_mut().for_each(|one| one.stopping.hurry(now));
        }
        for number in 0..self.replicas.len() {
            let replica = &mut self.replicas[number];
            for process in [replica.process.take(), replica.replacement.take()].into_iter().flatten() {
                self.dismiss(process, self.stop_signal, now);
            }
        }
    }

    fn reap(&mut self, now: Instant) {
        // An error means that there are no children.
        while let Ok(Some((pid, ended))) = process::reap() {
            self.has_changed = true;
            let its = |replica: &Replica| replica.processes().any(|process| process.pid == pid);
            let replica = self.replicas.iter().position(its);
            let stopping = self.stopping.iter().position(|one| one.process.pid == pid);
            if replica.is_some() || stopping.is_some() {
                // Children that the process has left behind. Not so for one that was adopted.
                supervise::kill(-pid);
            }
            if let Some(at) = stopping {
                let slot = self.stopping.swap_remove(at).process.slot;
                self.vacate(slot);
            }
            if let Some(number) = replica {
                self.handle_end(number, pid, ended, now);
            }
        }
    }

    /// The process of a socket has ended. Returns whether its readiness probe was the cause.
    fn vacate(&mut self, slot: usize) -> bool {
        self.readiness.as_mut().is_some_and(|readiness| readiness.end(slot))
    }

    /// A process has ended by itself.
    fn handle_end(&mut self, number: usize, pid: i32, ended: Ended, now: Instant) {
        // Its output may say why, so show that first.
        self.outputs.retain_mut(Lines::forward);
        let replica = &mut self.replicas[number];
        let ended_process = match replica.replacement.take_if(|replacement| replacement.pid == pid) {
            Some(replacement) => Some(replacement),
            None => {
                replica.is_to_change = false;
                std::mem::replace(&mut replica.process, replica.replacement.take())
            }
        };
        let Some(process) = ended_process else { return };
        self.tally.restarts += 1;
        let is_victim = self.vacate(process.slot);
        let who = format!("{}[{pid}]", self.name);
        let restart = &mut self.replicas[number].restart;
        if is_victim {
            restart.start_at(now);
            let how = describe_end(ended);
            return log::notice(format_args!(
                "{who} {how} when a connection brought no request; from now on its processes get requests as \
                 soon as they start"
            ));
        }
        log::warning(restart.note_end(ended, process.since, now).with_restart(who));
    }

    /// Handles wakeups by the loops, and processes that are ready.
    fn handle_readiness(&mut self) {
        let Some(readiness) = &mut self.readiness else { return };
        self.has_demand |= readiness.table.take_wakeup();
        for slot in readiness.take_ready() {
            for replica in &mut self.replicas {
                if let Some(process) = replica.at(slot) {
                    process.is_ready = true;
                }
                // The loops see a replacement only when it takes over.
                if replica.process.is_some_and(|process| process.slot == slot) {
                    readiness.table.set_open(slot);
                }
            }
        }
    }

    fn wait(&self, deadline: Option<Instant>) {
        let signals = PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN);
        let outputs = self.outputs.iter().map(AsFd::as_fd);
        let others = outputs.chain(self.readiness.iter().flat_map(Readiness::descriptors));
        let others = others.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
        let mut descriptors: Vec<_> = std::iter::once(signals).chain(others).collect();
        let timeout = deadline
            .and_then(|deadline| Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok());
        if let Err(error) = rustix::event::poll(&mut descriptors, timeout.as_ref())
            && error != rustix::io::Errno::INTR
        {
            log::error(format_args!("cannot wait: {error}"));
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// Writes the status of the processes. Readers find the old text or the new one, never a part.
    fn write_status(&mut self) {
        let Some(path) = self.status.as_deref().filter(|_| std::mem::take(&mut self.has_changed)) else {
            return;
        };
        let processes: Vec<i32> =
            self.replicas.iter().flat_map(Replica::processes).map(|process| process.pid).collect();
        let stopping: Vec<i32> = self.stopping.iter().map(|one| one.process.pid).collect();
        let Tally { started, restarts, recycled, killed } = self.tally;
        let status = json!({
            "processes": processes,
            "leaving": stopping,
            "started": started,
            "restarts": restarts,
            "recycled": recycled,
            "killed": killed,
        });
        let fresh = path.with_extension("new");
        let written: io::Result<()> =
            std::fs::write(&fresh, format!("{status}\n")).and_then(|()| std::fs::rename(&fresh, path));
        if let Err(error) = written {
            log::error(format_args!("cannot write {}: {error}", path.display()));
        }
    }
}
