//! The workers, as the master sees them: a place for each, and who is in it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use baton_engine::heartbeat::Heartbeats;
use baton_engine::metrics::Counters;
use baton_report::log;
use baton_supervise::{self as supervise, End, Restart, Stopping};
use baton_sys::passing;
use baton_sys::process::{self, Ended, Fork};

use super::channel::{self, Order};
use super::watch::Watch;

/// A worker process.
#[derive(Debug)]
pub(super) struct Worker {
    /// Its process id.
    pub(super) pid: i32,
    /// When it was started.
    pub(super) since: Instant,
    /// Whether it said that it serves.
    pub(super) serves: bool,
    /// The master's end; closed when the worker has closed its own.
    pub(super) channel: Option<OwnedFd>,
}

/// What stays when a worker goes, for the next one: number, CPU, counters, and through its number the sockets.
#[derive(Debug)]
pub(super) struct Place {
    /// The CPU that its workers are bound to, if any.
    pub(super) cpu: Option<usize>,
    /// What its workers have counted.
    pub(super) counters: Counters,
    /// Whether its worker's loops move.
    pub(super) heartbeats: Heartbeats,
    /// What was seen of that.
    pub(super) watch: Watch,
    /// How often a worker was started in place of one that died.
    pub(super) restarts: u64,
    /// Whether the others accept from its sockets.
    pub(super) is_covered: bool,
    /// Who is in it.
    pub(super) worker: Option<Worker>,
    /// When the next worker is to be started, if there is none.
    restart: Restart,
}

/// A worker that finishes what is under way; its place belongs to another one, or to nobody.
#[derive(Debug)]
struct Leaver {
    index: usize,
    worker: Worker,
    stopping: Stopping,
}

/// All places, and those who have left theirs but not yet gone.
#[derive(Debug)]
pub(super) struct Crew {
    /// By number.
    pub(super) places: Vec<Place>,
    leavers: Vec<Leaver>,
}

impl Place {
    /// Whether there is a worker that serves and moves.
    pub(super) fn is_attended(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.serves) && !self.watch.stands_still()
    }
}

impl Crew {
    /// Empty places, to be filled at once.
    pub(super) fn new(
        cpus: Vec<Option<usize>>,
        counters: Vec<Counters>,
        heartbeats: Vec<Heartbeats>,
    ) -> Self {
        let now = Instant::now();
        let place = |((cpu, counters), heartbeats)| Place {
            cpu,
            counters,
            heartbeats,
            watch: Watch::default(),
            restarts: 0,
            is_covered: false,
            worker: None,
            restart: Restart::new(now),
        };
        Self {
            places: cpus.into_iter().zip(counters).zip(heartbeats).map(place).collect(),
            leavers: Vec::new(),
        }
    }

    /// The worker in a place.
    pub(super) fn worker_mut(&mut self, index: usize) -> Option<&mut Worker> {
        self.places[index].worker.as_mut()
    }

    /// Places with a worker that serves.
    pub(super) fn serving(&self) -> impl Iterator<Item = usize> {
        self.occupied().filter(|(_, worker)| worker.serves).map(|(index, _)| index)
    }

    /// Places with a worker, whether it serves yet or not.
    pub(super) fn occupied(&self) -> impl Iterator<Item = (usize, &Worker)> {
        self.places.iter().enumerate().filter_map(|(index, place)| Some((index, place.worker.as_ref()?)))
    }

    /// An empty place whose time has come.
    pub(super) fn vacancy(&self, now: Instant) -> Option<usize> {
        self.places.iter().position(|place| place.worker.is_none() && place.restart.due() <= now)
    }

    /// When the next empty place's time comes.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.places.iter().filter(|place| place.worker.is_none()).map(|place| place.restart.due()).min()
    }

    /// Starts a worker. In the child, which goes on from here, it returns the child's end of the channel. If the worker
    /// cannot be started (`EAGAIN`, `ENOMEM`, `EMFILE`), the place waits like after a death.
    pub(super) fn start(&mut self, index: usize, now: Instant) -> Option<OwnedFd> {
        let place = &mut self.places[index];
        let forked = passing::message_pair().and_then(|(ours, theirs)| {
            // A worker that does not read must not stop the master.
            rustix::io::ioctl_fionbio(&ours, true)?;
            Ok((process::fork()?, ours, theirs))
        });
        match forked {
            Ok((Fork::Child, _, theirs)) => Some(theirs),
            Ok((Fork::Parent(pid), ours, _)) => {
                place.worker = Some(Worker { pid, since: now, serves: false, channel: Some(ours) });
                None
            }
            Err(error) => {
                log::error(place.restart.note_failed_start(format_args!("worker {index}"), &error, now));
                None
            }
        }
    }

    /// The place of a process.
    pub(super) fn place_of(&self, pid: i32) -> Option<usize> {
        self.occupied().find(|(_, worker)| worker.pid == pid).map(|(index, _)| index)
    }

    /// A worker has ended: empties its place.
    pub(super) fn note_end(&mut self, index: usize, ended: Ended, now: Instant) -> Option<(Worker, End)> {
        let place = &mut self.places[index];
        let worker = place.worker.take()?;
        // Its connections ended with it; what it counted did not.
        place.counters.reset_gauges();
        place.heartbeats.reset();
        place.watch = Watch::default();
        place.restarts += 1;
        let end = place.restart.note_end(ended, worker.since, now);
        Some((worker, end))
    }

    /// Gives all workers the order to finish, and vacates their places.
    pub(super) fn dismiss(&mut self, order: &Order, deadline: Instant) {
        self.tell_all(order, &[]);
        for (index, place) in self.places.iter_mut().enumerate() {
            place.watch = Watch::default();
            let leaver = |worker: Worker| {
                let stopping = Stopping::new(worker.pid, deadline);
                Leaver { index, worker, stopping }
            };
            self.leavers.extend(place.worker.take().map(leaver));
        }
    }

    /// Whether a process was one of those who had been dismissed. It is forgotten.
    pub(super) fn see_off(&mut self, pid: i32) -> bool {
        let Some(found) = self.leavers.iter().position(|leaver| leaver.worker.pid == pid) else {
            return false;
        };
        let place = &self.places[self.leavers.swap_remove(found).index];
        if place.worker.is_none() {
            place.counters.reset_gauges();
        }
        true
    }

    /// When the patience with somebody who was dismissed ends.
    pub(super) fn leave_deadline(&self) -> Option<Instant> {
        self.leavers.iter().map(|leaver| leaver.stopping.deadline()).min()
    }

    /// Ends those without asking them whose time to leave is over.
    pub(super) fn kill_late_leavers(&mut self, now: Instant) {
        for Leaver { index, worker, stopping } in &mut self.leavers {
            stopping.kill_if_late(format_args!("worker {index} (process {})", worker.pid), now);
        }
    }

    /// Whether nobody is left, in no place and on the way out.
    pub(super) fn is_gone(&self) -> bool {
        self.occupied().next().is_none() && self.leavers.is_empty()
    }

    /// Lets all empty places be filled at once, as if nobody had ever died: the cause may be gone.
    pub(super) fn forgive(&mut self, now: Instant) {
        for place in self.places.iter_mut().filter(|place| place.worker.is_none()) {
            place.restart = Restart::new(now);
        }
    }

    /// Gives an order to the worker in a place.
    ///
    /// # Errors
    /// `EPIPE` if it is gone, `EAGAIN` if it has not read its orders for long.
    pub(super) fn tell(&self, index: usize, order: &Order, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        match self.places[index].worker.as_ref().and_then(|worker| worker.channel.as_ref()) {
            Some(channel) => channel::send(channel, order, descriptors),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Gives an order to all workers, those who leave among them. Those that cannot be told are gone, or stuck and beyond orders.
    pub(super) fn tell_all(&self, order: &Order, descriptors: &[BorrowedFd<'_>]) {
        let leavers = self.leavers.iter().map(|leaver| &leaver.worker);
        for worker in self.occupied().map(|(_, worker)| worker).chain(leavers) {
            if let Some(channel) = &worker.channel {
                let _ = channel::send(channel, order, descriptors);
            }
        }
    }

    /// Ends a worker without asking it.
    pub(super) fn kill(&self, index: usize) {
        if let Some(worker) = &self.places[index].worker {
            supervise::kill(worker.pid);
        }
    }

    /// Ends all workers without asking them.
    pub(super) fn kill_all(&self) {
        for index in 0..self.places.len() {
            self.kill(index);
        }
        for leaver in &self.leavers {
            supervise::kill(leaver.worker.pid);
        }
    }

    /// The channels to listen to.
    pub(super) fn channels(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        self.occupied().filter_map(|(index, worker)| Some((index, worker.channel.as_ref()?.as_fd())))
    }
}
