//! The workers, as the master sees them: a slot for each, and the process in it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use baton_cache::PurgeOrder;
use baton_engine::heartbeat::{Beat, Heartbeats};
use baton_report::log;
use baton_site::address_count::AddressTable;
use baton_site::guards::RateTable;
use baton_supervise::{self as supervise, End, Restart, Stopping};
use baton_sys::passing;
use baton_sys::process::{self, Ended, Fork};
use baton_telemetry::figures::FigureTable;
use baton_telemetry::metrics::Counters;
use baton_upstream::{BacklogNotices, OriginTable};

use super::channel::{self, ToWorker};
use super::missed_purges::{self, MissedPurges};
use super::watch::{Observation, Watch};

/// A worker process.
#[derive(Debug)]
pub(super) struct Worker {
    /// Its process id.
    pub(super) pid: i32,
    /// When it was started.
    pub(super) since: Instant,
    /// Whether it has reported that it serves.
    pub(super) serves: bool,
    /// The master's end; closed when the worker has closed its own.
    pub(super) channel: Option<OwnedFd>,
    /// What it has to purge before it serves: its predecessor did not.
    inherited: MissedPurges,
}

/// A place for a worker. The next worker takes over its number, CPU and counters and, by the number, its sockets.
#[derive(Debug)]
pub(super) struct WorkerSlot {
    /// The CPU that its workers are bound to, if any.
    pub(super) cpu: Option<usize>,
    /// The counters of its workers.
    pub(super) counters: Counters,
    /// The heartbeats of its worker's loops.
    pub(super) heartbeats: Heartbeats,
    /// The watchdog's record of them.
    pub(super) watch: Watch,
    /// How many workers were started in place of dead ones.
    pub(super) restarts: u64,
    /// The process, if there is one.
    pub(super) worker: Option<Worker>,
    /// What it, or the next one, has to purge yet.
    pub(super) missed: MissedPurges,
    /// When the next worker is to be started, if there is none.
    restart: Restart,
}

/// A worker that finishes what is under way. Its slot is empty, or has another worker.
#[derive(Debug)]
struct RetiredWorker {
    index: usize,
    worker: Worker,
    /// `None`: it serves until the next worker of its slot does.
    stopping: Option<Stopping>,
}

/// What all workers share, and the master, in memory that outlives them.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedTables {
    /// What is known of origins. Its gauges end with a worker.
    pub(super) origins: OriginTable,
    /// What is counted of sites, applications and origins. Its gauges end with a worker.
    pub(super) figures: FigureTable,
    /// Connections of each client. Those of a worker end with it.
    pub(super) addresses: AddressTable,
    /// How often clients have asked.
    pub(super) rates: RateTable,
    /// How workers hear of each other's connections that wait for an application.
    pub(super) notices: BacklogNotices,
}

/// All slots, and the retired workers, which have left theirs but not ended yet.
#[derive(Debug)]
pub(super) struct Workers {
    /// By number.
    slots: Vec<WorkerSlot>,
    tables: SharedTables,
    retired: Vec<RetiredWorker>,
}

impl Workers {
    /// Empty slots; a worker is due in each.
    pub(super) fn new(
        cpus: Vec<Option<usize>>,
        counters: Vec<Counters>,
        heartbeats: Vec<Heartbeats>,
        tables: SharedTables,
    ) -> Self {
        let now = Instant::now();
        let slot = |((cpu, counters), heartbeats)| WorkerSlot {
            cpu,
            counters,
            heartbeats,
            watch: Watch::default(),
            restarts: 0,
            worker: None,
            missed: MissedPurges::default(),
            restart: Restart::new(now),
        };
        Self {
            slots: cpus.into_iter().zip(counters).zip(heartbeats).map(slot).collect(),
            tables,
            retired: Vec::new(),
        }
    }

    /// By number.
    pub(super) fn slots(&self) -> &[WorkerSlot] {
        &self.slots
    }

    /// What they share.
    pub(super) fn tables(&self) -> SharedTables {
        self.tables
    }

    /// How many slots there are.
    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    /// The counters of all workers.
    pub(super) fn counters(&self) -> impl Iterator<Item = Counters> {
        self.slots.iter().map(|slot| slot.counters)
    }

    /// Whether a slot has a worker that serves and moves.
    pub(super) fn is_available(&self, index: usize) -> bool {
        let slot = &self.slots[index];
        slot.worker.as_ref().is_some_and(|worker| worker.serves) && !slot.watch.stands_still()
    }

    /// Looks at the loops of a worker, if it serves: whether they stood still before, and what they do now.
    pub(super) fn look_at(&mut self, index: usize) -> Option<(bool, Observation)> {
        let slot = &mut self.slots[index];
        let worker = slot.worker.as_ref().filter(|worker| worker.serves)?;
        let mut beats: Vec<_> = slot.heartbeats.beats().collect();
        if beats.is_empty() {
            // The name of a worker's loops until the first of them begins.
            beats.push((0, Beat { count: 0, thread: u64::from(worker.pid.unsigned_abs()) }));
        }
        Some((slot.watch.stands_still(), slot.watch.look(beats)))
    }

    /// The worker in a slot.
    pub(super) fn worker_mut(&mut self, index: usize) -> Option<&mut Worker> {
        self.slots[index].worker.as_mut()
    }

    /// Slots with a worker that serves.
    pub(super) fn serving(&self) -> impl Iterator<Item = usize> {
        self.occupied().filter(|(_, worker)| worker.serves).map(|(index, _)| index)
    }

    /// Slots with a worker, whether it serves yet or not.
    pub(super) fn occupied(&self) -> impl Iterator<Item = (usize, &Worker)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| Some((index, slot.worker.as_ref()?)))
    }

    /// An empty slot in which a worker is due.
    pub(super) fn next_to_start(&self, now: Instant) -> Option<usize> {
        self.slots.iter().position(|slot| slot.worker.is_none() && slot.restart.due() <= now)
    }

    /// When the next worker is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.slots.iter().filter(|slot| slot.worker.is_none()).map(|slot| slot.restart.due()).min()
    }

    /// Starts a worker. Also returns in the child, with its end of the channel. If the worker cannot be started
    /// (`EAGAIN`, `ENOMEM`, `EMFILE`), the slot waits as after a worker's early end.
    pub(super) fn start(&mut self, index: usize, now: Instant) -> Option<OwnedFd> {
        let slot = &mut self.slots[index];
        let forked = passing::message_pair().and_then(|(ours, theirs)| {
            // A worker that does not read must not block the master.
            rustix::io::ioctl_fionbio(&ours, true)?;
            Ok((process::fork()?, ours, theirs))
        });
        match forked {
            Ok((Fork::Child, _, theirs)) => Some(theirs),
            Ok((Fork::Parent(pid), ours, _)) => {
                let inherited = std::mem::take(&mut slot.missed);
                slot.worker = Some(Worker { pid, since: now, serves: false, channel: Some(ours), inherited });
                None
            }
            Err(error) => {
                log::error(slot.restart.note_failed_start(format_args!("worker {index}"), &error, now));
                None
            }
        }
    }

    /// The slot of a process.
    pub(super) fn slot_of(&self, pid: i32) -> Option<usize> {
        self.occupied().find(|(_, worker)| worker.pid == pid).map(|(index, _)| index)
    }

    /// A worker has ended: empties its slot.
    pub(super) fn note_end(&mut self, index: usize, ended: Ended, now: Instant) -> Option<(Worker, End)> {
        let slot = &mut self.slots[index];
        let worker = slot.worker.take()?;
        self.tables.addresses.release(worker.pid.unsigned_abs());
        // Its connections ended with it; its counters stay.
        slot.counters.reset_gauges();
        self.tables.origins.reset_gauges(index);
        self.tables.figures.reset_gauges(index);
        slot.heartbeats.reset();
        slot.watch = Watch::default();
        slot.restarts += 1;
        if !worker.serves {
            slot.missed.add(&worker.inherited.orders, None);
        }
        let end = slot.restart.note_end(ended, worker.since, now);
        Some((worker, end))
    }

    /// Tells all workers to finish, and empties their slots.
    pub(super) fn retire(&mut self, message: &ToWorker, descriptors: &[BorrowedFd<'_>], deadline: Instant) {
        self.tell_all(message, descriptors);
        for (index, slot) in self.slots.iter_mut().enumerate() {
            slot.watch = Watch::default();
            let retired = |worker: Worker| RetiredWorker { index, worker, stopping: None };
            self.retired.extend(slot.worker.take().map(retired));
        }
        for retired in &mut self.retired {
            retired.stopping.get_or_insert(Stopping::new(retired.worker.pid, deadline));
        }
    }

    /// Makes room for another worker in each slot whose worker serves. These go on until [`release`](Self::release). Returns
    /// how many there are.
    pub(super) fn replace(&mut self, now: Instant) -> usize {
        let before = self.retired.len();
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if let Some(worker) = slot.worker.take_if(|worker| worker.serves) {
                (slot.watch, slot.restart) = (Watch::default(), Restart::new(now));
                self.retired.push(RetiredWorker { index, worker, stopping: None });
            }
        }
        self.retired.len() - before
    }

    /// Whether workers serve that are about to be replaced.
    pub(super) fn are_being_replaced(&self) -> bool {
        self.retired.iter().any(|retired| retired.stopping.is_none())
    }

    /// Another worker serves in a slot: the one that it replaces finishes.
    pub(super) fn release(
        &mut self,
        index: usize,
        message: &ToWorker,
        descriptors: &[BorrowedFd<'_>],
        deadline: Instant,
    ) {
        let replaced = |retired: &&mut RetiredWorker| retired.index == index && retired.stopping.is_none();
        for retired in self.retired.iter_mut().filter(replaced) {
            if let Some(channel) = &retired.worker.channel {
                let _ = channel::send(channel, message, descriptors);
            }
            retired.stopping = Some(Stopping::new(retired.worker.pid, deadline));
        }
    }

    /// A process has ended. Returns whether it was a retired worker.
    pub(super) fn forget_retired(&mut self, pid: i32) -> bool {
        let Some(found) = self.retired.iter().position(|retired| retired.worker.pid == pid) else {
            return false;
        };
        let index = self.retired.swap_remove(found).index;
        self.tables.addresses.release(pid.unsigned_abs());
        let slot = &self.slots[index];
        if slot.worker.is_none() {
            slot.counters.reset_gauges();
            self.tables.origins.reset_gauges(index);
            self.tables.figures.reset_gauges(index);
        }
        true
    }

    /// When [`kill_late`](Self::kill_late) has something to do.
    pub(super) fn kill_deadline(&self) -> Option<Instant> {
        self.retired.iter().filter_map(|retired| retired.stopping.as_ref()).map(Stopping::deadline).min()
    }

    /// Kills the retired workers whose time to finish is over.
    pub(super) fn kill_late(&mut self, now: Instant) {
        for RetiredWorker { index, worker, stopping } in &mut self.retired {
            if let Some(stopping) = stopping {
                stopping.kill_if_late(format_args!("worker {index} (process {})", worker.pid), now);
            }
        }
    }

    /// All worker processes, retired ones included.
    pub(super) fn pids(&self) -> impl Iterator<Item = i32> {
        let retired = self.retired.iter().map(|retired| retired.worker.pid);
        self.occupied().map(|(_, worker)| worker.pid).chain(retired)
    }

    /// Whether no worker is left, retired ones included.
    pub(super) fn is_empty(&self) -> bool {
        self.occupied().next().is_none() && self.retired.is_empty()
    }

    /// Makes a worker due in each empty slot, without a wait: the reason for early ends may be gone.
    pub(super) fn restart_now(&mut self, now: Instant) {
        for slot in self.slots.iter_mut().filter(|slot| slot.worker.is_none()) {
            slot.restart = Restart::new(now);
        }
    }

    /// Sends a message to the worker in a slot.
    ///
    /// # Errors
    /// `EPIPE` if it has ended, `EAGAIN` if it has not read for so long that the socket's buffer is full.
    pub(super) fn tell(
        &self,
        index: usize,
        message: &ToWorker,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        match self.slots[index].worker.as_ref().and_then(|worker| worker.channel.as_ref()) {
            Some(channel) => channel::send(channel, message, descriptors),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Sends a message to all workers, retired ones included. Those that the message does not reach have ended or are
    /// stuck.
    pub(super) fn tell_all(&self, message: &ToWorker, descriptors: &[BorrowedFd<'_>]) {
        let retired = self.retired.iter().map(|retired| &retired.worker);
        for worker in self.occupied().map(|(_, worker)| worker).chain(retired) {
            if let Some(channel) = &worker.channel {
                let _ = channel::send(channel, message, descriptors);
            }
        }
    }

    /// Has all workers purge but one, which has already. `ticket`: they confirm it. Slots whose worker cannot be told keep
    /// the orders.
    pub(super) fn purge_all(&mut self, orders: &[PurgeOrder], ticket: Option<u64>, but: Option<usize>) {
        for message in missed_purges::messages(orders) {
            let message = ToWorker::Purge { orders: message.to_vec(), tickets: Vec::new() };
            for channel in self.retired.iter().filter_map(|retired| retired.worker.channel.as_ref()) {
                let _ = channel::send(channel, &message, &[]);
            }
        }
        for index in (0..self.slots.len()).filter(|index| Some(*index) != but) {
            self.slots[index].missed.add(orders, ticket);
            self.retry_purges_of(index);
        }
    }

    /// The next worker of a slot has to purge this before it serves.
    pub(super) fn owe(&mut self, index: usize, orders: &[PurgeOrder]) {
        self.slots[index].missed.add(orders, None);
    }

    /// Tells workers what they could not be told before.
    pub(super) fn retry_purges(&mut self) {
        (0..self.slots.len()).for_each(|index| self.retry_purges_of(index));
    }

    /// Whether [`retry_purges`](Self::retry_purges) has something to do.
    pub(super) fn owes_purges(&self) -> bool {
        self.slots.iter().any(|slot| !slot.missed.is_empty() && slot.worker.is_some())
    }

    fn retry_purges_of(&mut self, index: usize) {
        if self.slots[index].worker.is_none() {
            return;
        }
        let missed = std::mem::take(&mut self.slots[index].missed);
        let mut messages = missed_purges::messages(&missed.orders).peekable();
        let mut is_told = true;
        while is_told && let Some(message) = messages.next() {
            let tickets = if messages.peek().is_none() { missed.tickets.clone() } else { Vec::new() };
            let message = ToWorker::Purge { orders: message.to_vec(), tickets };
            is_told = self.tell(index, &message, &[]).is_ok();
        }
        drop(messages);
        if !is_told {
            // Again from the beginning: a purge twice is a purge.
            self.slots[index].missed = missed;
        }
    }

    /// Kills the worker in a slot.
    pub(super) fn kill(&self, index: usize) {
        if let Some(worker) = &self.slots[index].worker {
            supervise::kill(worker.pid);
        }
    }

    /// Kills all workers.
    pub(super) fn kill_all(&self) {
        for index in 0..self.slots.len() {
            self.kill(index);
        }
        for retired in &self.retired {
            supervise::kill(retired.worker.pid);
        }
    }

    /// The channels to poll.
    pub(super) fn channels(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        self.occupied().filter_map(|(index, worker)| Some((index, worker.channel.as_ref()?.as_fd())))
    }
}

#[cfg(test)]
impl Workers {
    /// Workers that serve, without processes, and their ends of the channels.
    pub(super) fn for_test(count: usize) -> (Self, Vec<OwnedFd>) {
        let tuning = baton_config::Config::from_toml("[[site]]\nroot = '/'\n").unwrap().tuning();
        let mut workers = Self::new(
            vec![None; count],
            Counters::allocate(count).unwrap(),
            Heartbeats::allocate(count, &tuning).unwrap(),
            SharedTables {
                origins: OriginTable::allocate(count).unwrap(),
                figures: FigureTable::allocate(count).unwrap(),
                addresses: AddressTable::allocate(count).unwrap(),
                rates: RateTable::allocate().unwrap(),
                notices: BacklogNotices::default(),
            },
        );
        let mut channels = Vec::new();
        for slot in &mut workers.slots {
            let (ours, theirs) = passing::message_pair().unwrap();
            channels.push(theirs);
            slot.worker = Some(Worker {
                // No process has such a high number.
                pid: i32::MAX,
                since: Instant::now(),
                serves: true,
                channel: Some(ours),
                inherited: MissedPurges::default(),
            });
        }
        (workers, channels)
    }
}
