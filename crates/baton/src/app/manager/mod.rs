//! Keeps processes running: one thread, one loop, over signals, what processes print, what the loops of the server say,
//! and the clock.
//!
//! ```text
//!            ┌─────────────── due: starts ──────────────┐
//!   place: empty ── wait, longer after each early end ──┘──► process ──► ends by itself: empty
//!                                                              │ is old, or has served enough: an heir begins beside it
//!                                                              ▼
//!                                   heir ready ──► the process leaves between two requests, the heir is the process
//! ```
//!
//! [`keeper`] is what the loops of a server are told, and tell; without one, all processes listen together, and one that
//! is told to end may be in the middle of something. [`tending`] decides who begins and who goes.

mod keeper;
mod place;
mod tending;

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use baton_report::{Trouble, log};
use baton_supervise::{self as supervise, Lines, Stopping, describe_end};
use baton_sys::process::{self, Ended};
use baton_sys::signals::SignalQueue;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::Signal;
use serde_json::json;

use self::keeper::Keeper;
use self::place::{Place, Process};
use super::options::Run;
use super::program::{MANAGERS_SIGNALS, Program};
use super::sockets::Sockets;

/// Runs processes until a signal says that it is enough.
///
/// # Errors
/// Why there never were any.
pub(super) fn run(options: &Run) -> Result<ExitCode, Trouble> {
    let signals = SignalQueue::new(&MANAGERS_SIGNALS.map(Signal::as_raw))
        .map_err(|error| Trouble::of("receive signals", &error))?;
    if let Some(parent) = options.parent {
        process::die_with_parent().map_err(|error| Trouble::of("follow the parent", &error))?;
        if std::os::unix::process::parent_id() != parent {
            return Err(Trouble::new("the process that started this one has ended"));
        }
    }
    let now = Instant::now();
    let count = options.processes.max(options.processes_max.unwrap_or(0));
    let mut manager = Manager {
        name: options.name(),
        program: options.program()?,
        sockets: Sockets::open(options)?,
        keeper: keeper(options)?,
        signals,
        stop_signal: options.stop_signal(),
        grace: options.grace(),
        lifetime: options.lifetime(),
        idle: options.idle(),
        status: options.status.clone(),
        places: (0..count).map(|number| Place::new(number < options.processes, now)).collect(),
        places_min: options.processes as usize,
        leavers: Vec::new(),
        to_replace: VecDeque::new(),
        next_look: now,
        outputs: Vec::new(),
        tally: Tally::default(),
        was_called: false,
        is_ending: false,
        has_changed: true,
    };
    manager.work();
    Ok(ExitCode::SUCCESS)
}

/// What tells the loops of a server about the processes, and the other way around.
fn keeper(options: &Run) -> Result<Option<Keeper>, Trouble> {
    let inherited =
        |prefix: &PathBuf| Keeper::inherited(prefix.clone(), options.requests_max, options.patience());
    options.roster.as_ref().map(inherited).transpose()
}

#[derive(Debug)]
struct Manager {
    name: String,
    program: Program,
    sockets: Sockets,
    keeper: Option<Keeper>,
    signals: SignalQueue,
    stop_signal: i32,
    grace: Duration,
    lifetime: Option<Duration>,
    /// How long a process that is more than the least may be idle.
    idle: Duration,
    status: Option<PathBuf>,
    places: Vec<Place>,
    /// How many of them are always wanted.
    places_min: usize,
    /// Who has been asked to end.
    leavers: Vec<Leaver>,
    /// Places whose processes are to be replaced, in turn.
    to_replace: VecDeque<usize>,
    /// When it is looked at which processes are idle, if there may be too many.
    next_look: Instant,
    outputs: Vec<Lines>,
    tally: Tally,
    /// Whether the loops have called.
    was_called: bool,
    is_ending: bool,
    /// Whether the status is another one than that which was written.
    has_changed: bool,
}

/// How often what has happened.
#[derive(Debug, Default)]
struct Tally {
    started: u64,
    /// Replaced after they had ended by themselves.
    restarts: u64,
    /// Replaced for their age, or the requests they had served.
    recycled: u64,
    /// Killed since a request took too long.
    killed: u64,
}

#[derive(Debug)]
struct Leaver {
    process: Process,
    stopping: Stopping,
}

impl Manager {
    fn work(&mut self) {
        while !(self.is_ending && self.leavers.is_empty()) {
            let now = Instant::now();
            self.advance(now);
            self.write_status();
            self.wait(self.deadline());
            self.handle_signals();
            self.reap(Instant::now());
            self.hear();
            self.outputs.retain_mut(Lines::forward);
        }
        self.write_status();
    }

    /// Does what is due.
    fn advance(&mut self, now: Instant) {
        for Leaver { process, stopping } in &mut self.leavers {
            stopping.kill_if_late(format_args!("{}[{}]", self.name, process.pid), now);
        }
        if !self.is_ending {
            self.tend(now);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let leavers = self.leavers.iter().map(|leaver| leaver.stopping.deadline());
        if self.is_ending {
            return leavers.min();
        }
        leavers.chain(self.next_tending()).min()
    }

    /// Starts a process with a socket that nobody else has, if there are sockets of that kind.
    fn start(&mut self, now: Instant, number: usize) -> io::Result<Option<Process>> {
        let Some(slot) = self.free_slot(number) else { return Ok(None) };
        let own = self.keeper.as_ref().map(|keeper| keeper.listen(slot)).transpose()?;
        let socket = own.as_ref().map(AsFd::as_fd).or_else(|| self.sockets.of(slot));
        let (pid, output) = self.program.start(socket)?;
        self.outputs.push(output.said_by(format!("{}[{pid}]", self.name)));
        self.tally.started += 1;
        self.has_changed = true;
        let is_ready = self.keeper.as_mut().is_none_or(|keeper| keeper.begin(slot, pid));
        Ok(Some(Process { pid, since: now, slot, is_ready, requests_seen: 0 }))
    }

    /// The number of a socket for a process: without a keeper, that of its place.
    fn free_slot(&self, number: usize) -> Option<usize> {
        let Some(keeper) = &self.keeper else { return Some(number) };
        let leaving = self.leavers.iter().map(|leaver| leaver.process);
        let all: Vec<_> = self.places.iter().flat_map(Place::processes).chain(leaving).collect();
        (0..keeper.roster.places()).find(|slot| all.iter().all(|process| process.slot != *slot))
    }

    /// Asks a process to end. Another one may be in its place already.
    fn dismiss(&mut self, process: Process, signal: i32, now: Instant) {
        if let Some(keeper) = &mut self.keeper {
            keeper.dismiss(process.slot);
        }
        supervise::signal(process.pid, signal);
        // What the process has started is killed with it.
        let stopping = Stopping::new(-process.pid, now + self.grace);
        self.leavers.push(Leaver { process, stopping });
        self.has_changed = true;
    }

    fn handle_signals(&mut self) {
        while let Ok(Some(arrived)) = self.signals.next() {
            match arrived.signal {
                hup if hup == Signal::HUP.as_raw() && !self.is_ending => {
                    log::notice(format_args!("{}: all processes are replaced", self.name));
                    self.to_replace = (0..self.places.len()).collect();
                }
                child_or_hup if [Signal::CHILD, Signal::HUP].map(Signal::as_raw).contains(&child_or_hup) => {}
                _ => self.end(Instant::now()),
            }
        }
    }

    /// Asks all to end; the second time, does not ask.
    fn end(&mut self, now: Instant) {
        if std::mem::replace(&mut self.is_ending, true) {
            self.leavers.iter_mut().for_each(|leaver| leaver.stopping.hurry(now));
        }
        for number in 0..self.places.len() {
            let place = &mut self.places[number];
            for process in [place.process.take(), place.heir.take()].into_iter().flatten() {
                self.dismiss(process, self.stop_signal, now);
            }
        }
    }

    fn reap(&mut self, now: Instant) {
        // An error means that there are no children.
        while let Ok(Some((pid, ended))) = process::reap() {
            self.has_changed = true;
            // What it has started and left behind.
            supervise::kill(-pid);
            if let Some(at) = self.leavers.iter().position(|leaver| leaver.process.pid == pid) {
                let slot = self.leavers.swap_remove(at).process.slot;
                self.vacate(slot);
            }
            let its = |place: &Place| place.processes().any(|process| process.pid == pid);
            if let Some(number) = self.places.iter().position(its) {
                self.handle_end(number, pid, ended, now);
            }
        }
    }

    /// The process at a socket is no more. Whether it died of being asked if it was ready.
    fn vacate(&mut self, slot: usize) -> bool {
        self.keeper.as_mut().is_some_and(|keeper| keeper.end(slot))
    }

    /// A process has ended that nobody asked to.
    fn handle_end(&mut self, number: usize, pid: i32, ended: Ended, now: Instant) {
        // What it said may tell why: that comes first.
        self.outputs.retain_mut(Lines::forward);
        let place = &mut self.places[number];
        let ended_process = match place.heir.take_if(|heir| heir.pid == pid) {
            Some(heir) => Some(heir),
            None => {
                place.is_to_change = false;
                std::mem::replace(&mut place.process, place.heir.take())
            }
        };
        let Some(process) = ended_process else { return };
        self.tally.restarts += 1;
        let is_victim = self.vacate(process.slot);
        let who = format!("{}[{pid}]", self.name);
        let restart = &mut self.places[number].restart;
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

    /// Takes note of what the loops say, and of processes that are ready.
    fn hear(&mut self) {
        let Some(keeper) = &mut self.keeper else { return };
        self.was_called |= keeper.roster.hear();
        for slot in keeper.take_ready() {
            for place in &mut self.places {
                if let Some(process) = place.at(slot) {
                    process.is_ready = true;
                }
                // An heir is shown when it is its turn.
                if place.process.is_some_and(|process| process.slot == slot) {
                    keeper.roster.set_open(slot);
                }
            }
        }
    }

    fn wait(&self, deadline: Option<Instant>) {
        let signals = PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN);
        let outputs = self.outputs.iter().map(AsFd::as_fd);
        let others = outputs.chain(self.keeper.iter().flat_map(Keeper::descriptors));
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

    /// Says which processes there are. Readers find the old text or the new one, never a part.
    fn write_status(&mut self) {
        let Some(path) = self.status.as_deref().filter(|_| std::mem::take(&mut self.has_changed)) else {
            return;
        };
        let processes: Vec<i32> =
            self.places.iter().flat_map(Place::processes).map(|process| process.pid).collect();
        let leavers: Vec<i32> = self.leavers.iter().map(|leaver| leaver.process.pid).collect();
        let Tally { started, restarts, recycled, killed } = self.tally;
        let status = json!({
            "processes": processes,
            "leaving": leavers,
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
