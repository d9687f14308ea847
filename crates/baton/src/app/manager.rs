//! Keeps processes running: one thread, one loop, over signals, what processes print, and the clock.
//!
//! ```text
//!            ┌─────────────── due: starts ──────────────┐
//!   place: empty ── wait, longer after each early end ──┘──► occupied ──► ends by itself: empty
//!                                                               └─ replaced: leaves, the next one is there already
//! ```
//!
//! To replace all processes, one after the other leaves: the next one does when the one before has gone.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use baton_sys::process::{self, Ended};
use baton_sys::signals::SignalQueue;
use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;
use serde_json::json;

use super::lines::Lines;
use super::options::Run;
use super::program::{MANAGERS_SIGNALS, Program};
use super::sockets::Sockets;
use crate::run::{Backoff, Trouble, describe_end, log, timespec};

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
    let mut manager = Manager {
        name: options.name(),
        program: options.program()?,
        sockets: Sockets::open(options)?,
        signals,
        stop_signal: options.stop_signal(),
        grace: options.grace(),
        lifetime: options.lifetime(),
        status: options.status.clone(),
        places: (0..options.processes)
            .map(|_| Place { process: None, backoff: Backoff::new(), due: now })
            .collect(),
        leavers: Vec::new(),
        to_replace: VecDeque::new(),
        outputs: Vec::new(),
        restarts: 0,
        is_ending: false,
        has_changed: true,
    };
    manager.work();
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug)]
struct Manager {
    name: String,
    program: Program,
    sockets: Sockets,
    signals: SignalQueue,
    stop_signal: i32,
    grace: Duration,
    lifetime: Option<Duration>,
    status: Option<PathBuf>,
    places: Vec<Place>,
    /// Who has been asked to end.
    leavers: Vec<Leaver>,
    /// Places whose processes are to be replaced, in turn.
    to_replace: VecDeque<usize>,
    outputs: Vec<Lines>,
    /// How often a process was started in place of another one.
    restarts: u64,
    is_ending: bool,
    /// Whether the status is another one than that which was written.
    has_changed: bool,
}

/// A process, or the lack of one. Its number is that of its socket.
#[derive(Debug)]
struct Place {
    process: Option<Process>,
    backoff: Backoff,
    /// When the next one is to be started, if there is none.
    due: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Process {
    pid: i32,
    since: Instant,
}

#[derive(Debug)]
struct Leaver {
    pid: i32,
    /// When patience ends.
    until: Instant,
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
            self.outputs.retain_mut(Lines::forward);
        }
        self.write_status();
    }

    /// Does what is due.
    fn advance(&mut self, now: Instant) {
        for leaver in self.leavers.iter_mut().filter(|leaver| leaver.until <= now) {
            log::warning(format_args!("{}[{}] did not end in time and is killed", self.name, leaver.pid));
            end_group(leaver.pid);
            leaver.until = now + AFTER_KILLING;
        }
        if self.is_ending {
            return;
        }
        for number in 0..self.places.len() {
            let place = &self.places[number];
            match place.process {
                None if place.due <= now => self.start(number, now),
                Some(process) if self.is_old(process, now) && !self.to_replace.contains(&number) => {
                    self.to_replace.push_back(number);
                }
                _ => {}
            }
        }
        if self.leavers.is_empty()
            && let Some(number) = self.to_replace.pop_front()
            && let Some(old) = self.places[number].process.take()
        {
            self.start(number, now);
            self.restarts += 1;
            self.dismiss(old, now);
        }
    }

    fn is_old(&self, process: Process, now: Instant) -> bool {
        self.lifetime.is_some_and(|lifetime| now.duration_since(process.since) >= lifetime)
    }

    fn deadline(&self) -> Option<Instant> {
        let leavers = self.leavers.iter().map(|leaver| leaver.until);
        if self.is_ending {
            return leavers.min();
        }
        let places = self.places.iter().enumerate().filter_map(|(number, place)| match place.process {
            None => Some(place.due),
            // Its turn comes when the one before it has gone.
            Some(_) if self.to_replace.contains(&number) => None,
            Some(process) => Some(process.since + self.lifetime?),
        });
        places.chain(leavers).min()
    }

    fn start(&mut self, number: usize, now: Instant) {
        let place = &mut self.places[number];
        self.has_changed = true;
        match self.program.start(self.sockets.of(number)) {
            Ok((pid, output)) => {
                place.process = Some(Process { pid, since: now });
                self.outputs.push(Lines::new(output, Some(format!("{}[{pid}]", self.name))));
            }
            Err(error) => {
                let wait = place.backoff.after(Duration::ZERO);
                place.due = now + wait;
                log::error(format_args!("cannot start {}: {error}; the next try is in {wait:?}", self.name));
            }
        }
    }

    /// Asks a process to end. Another one may be in its place already.
    fn dismiss(&mut self, process: Process, now: Instant) {
        // It fails only if the process has ended just now.
        let _ = process::kill(process.pid, self.stop_signal);
        self.leavers.push(Leaver { pid: process.pid, until: now + self.grace });
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
            self.leavers.iter_mut().for_each(|leaver| leaver.until = now);
        }
        for number in 0..self.places.len() {
            if let Some(process) = self.places[number].process.take() {
                self.dismiss(process, now);
            }
        }
        self.has_changed = true;
    }

    fn reap(&mut self, now: Instant) {
        // An error means that there are no children.
        while let Ok(Some((pid, ended))) = process::reap() {
            self.has_changed = true;
            // Whom it started, and left behind.
            end_group(pid);
            self.leavers.retain(|leaver| leaver.pid != pid);
            let its = |place: &Place| place.process.is_some_and(|process| process.pid == pid);
            if let Some(number) = self.places.iter().position(its) {
                self.handle_end(number, ended, now);
            }
        }
    }

    /// A process has ended that nobody asked to.
    fn handle_end(&mut self, number: usize, ended: Ended, now: Instant) {
        let place = &mut self.places[number];
        let Some(process) = place.process.take() else { return };
        // What it said may tell why: that comes first.
        self.outputs.retain_mut(Lines::forward);
        let lived = now.duration_since(process.since);
        let wait = place.backoff.after(lived);
        place.due = now + wait;
        self.restarts += 1;
        let (name, pid, how) = (&self.name, process.pid, describe_end(ended));
        log::warning(format_args!("{name}[{pid}] {how} after {lived:.1?}; the next one starts in {wait:?}"));
    }

    fn wait(&self, deadline: Option<Instant>) {
        let signals = PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN);
        let outputs = self.outputs.iter().map(|lines| PollFd::from_borrowed_fd(lines.as_fd(), PollFlags::IN));
        let mut descriptors: Vec<_> = std::iter::once(signals).chain(outputs).collect();
        let timeout = deadline.map(|deadline| timespec(deadline.saturating_duration_since(Instant::now())));
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
        let processes: Vec<i32> = self.places.iter().filter_map(|place| Some(place.process?.pid)).collect();
        let leavers: Vec<i32> = self.leavers.iter().map(|leaver| leaver.pid).collect();
        let status = json!({ "processes": processes, "leaving": leavers, "restarts": self.restarts });
        let fresh = path.with_extension("new");
        let written: io::Result<()> =
            std::fs::write(&fresh, format!("{status}\n")).and_then(|()| std::fs::rename(&fresh, path));
        if let Err(error) = written {
            log::error(format_args!("cannot write {}: {error}", path.display()));
        }
    }
}

/// Ends a process and whoever it has started, without asking.
fn end_group(pid: i32) {
    // It fails if nobody is left.
    let _ = process::kill(-pid, Signal::KILL.as_raw());
}

/// How long a process that was killed may take to end: more than a disk that does not answer.
const AFTER_KILLING: Duration = Duration::from_secs(60);
