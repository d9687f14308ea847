//! How a worker process is steered while it runs: reload, drain, stop, logs, status.
//!
//! A control thread gives orders; the threads that run steps find them when they wake up. Each of them waits on an
//! eventfd of its own beside its sockets, and compares one number per wake-up.

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::EventfdFlags;
use serde_json::Value;

use crate::departures::{Departures, Destination};
use crate::listen::Listener;
use crate::log::LogWriter;
use crate::plan::Plan;

/// What a worker does with its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerPhase {
    /// Accept and serve.
    Serving,
    /// Accept no more, answer one more request on each connection with which no other process goes on.
    Lingering,
    /// Accept no more, finish requests under way, and stop when their time is over.
    Draining(DrainLimits),
    /// End at once.
    Stopping,
}

/// How long a drain may take, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainLimits {
    /// For requests under way.
    pub requests_ms: u64,
    /// For tunnels.
    pub tunnels_ms: u64,
}

/// What is to be served, and how.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) phase: WorkerPhase,
    pub(crate) plan: Arc<Plan>,
    pub(crate) listeners: Vec<Arc<Listener>>,
    /// Where clients go that another process serves on.
    pub(crate) departures: Option<Departures>,
}

/// The orders of a worker process and the way to tell its threads; shared by them and a control thread.
#[derive(Debug, Default)]
pub struct Steering {
    /// Grows with each order.
    epoch: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    phase: Option<WorkerPhase>,
    work: Option<(Arc<Plan>, Vec<Arc<Listener>>)>,
    wakers: Vec<Arc<OwnedFd>>,
    log: Option<Arc<LogWriter>>,
    held: Option<Held>,
    reports: BTreeMap<String, Value>,
    departures: Option<Departures>,
}

/// Dropped when no thread needs it.
type Held = Arc<dyn Any + Send + Sync>;

impl State {
    /// Closes the listeners: no thread accepts from them, and clients would wait in their backlogs.
    fn close_listeners(&mut self) {
        if let Some((_, listeners)) = &mut self.work {
            listeners.clear();
        }
    }
}

impl Steering {
    /// Steering for a worker that has not begun yet; orders given before it begins are found when it does.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the worker at once.
    pub fn stop(&self) {
        self.order(|state| {
            state.phase = Some(WorkerPhase::Stopping);
            state.close_listeners();
        });
    }

    /// Accepts no further clients. Those with which no other process goes on get one more request answered.
    pub fn linger(&self) {
        self.order(|state| {
            if state.phase.is_none() {
                state.phase = Some(WorkerPhase::Lingering);
                state.close_listeners();
            }
        });
    }

    /// Ends the worker when its requests under way have ended, or when their time is over.
    pub fn drain(&self, limits: DrainLimits) {
        self.order(|state| {
            if state.phase != Some(WorkerPhase::Stopping) {
                state.phase = Some(WorkerPhase::Draining(limits));
                state.close_listeners();
            }
        });
    }

    /// Lets other processes go on with clients, as soon as each is between two requests.
    pub fn move_clients(&self, destination: Destination) {
        self.order(|state| state.departures = Some(Departures::to(Arc::new(destination))));
    }

    /// Serves this plan on these listeners from now on. Connections stay; each of their requests finds the new plan.
    pub fn reload(&self, plan: Arc<Plan>, listeners: Vec<Arc<Listener>>) {
        self.order(|state| state.work = Some((plan, listeners)));
    }

    /// Keeps a value until every thread has applied the orders given before the next call. Called after each
    /// [`reload`](Self::reload), it keeps what the current plan refers to.
    pub fn hold(&self, held: impl Any + Send + Sync) {
        self.order(|state| state.held = Some(Arc::new(held)));
    }

    /// Wakes all threads, so that each looks for orders and beats.
    pub fn wake(&self) {
        self.order(|_| {});
    }

    /// Goes on with the access log in another file.
    pub fn reopen_log(&self, file: OwnedFd) {
        if let Some(log) = &self.lock().log {
            log.reopen(file);
        }
    }

    /// The status reports of the worker's threads, a JSON object.
    pub fn status(&self) -> String {
        Value::from_iter(self.lock().reports.clone()).to_string()
    }

    /// Stores a thread's status report.
    pub(crate) fn report(&self, thread: &str, report: Value) {
        self.lock().reports.insert(thread.to_owned(), report);
    }

    /// The worker begins with this work, unless a reload was quicker.
    pub(crate) fn begin(&self, plan: Arc<Plan>, listeners: Vec<Arc<Listener>>, log: Option<Arc<LogWriter>>) {
        self.order(|state| {
            state.work.get_or_insert((plan, listeners));
            state.log = log;
        });
    }

    /// A waker and the orders, for a thread that runs steps.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`.
    pub(crate) fn subscribe(self: &Arc<Self>) -> io::Result<Subscription> {
        let waker = Arc::new(rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        self.lock().wakers.push(Arc::clone(&waker));
        Ok(Subscription { waker: Some(waker), ..self.follow() })
    }

    /// The orders without a waker, for a thread that waits for something else.
    pub(crate) fn follow(self: &Arc<Self>) -> Subscription {
        Subscription { steering: Arc::clone(self), waker: None, seen: 0, held: None, rests: false }
    }

    fn order(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        self.epoch.fetch_add(1, Ordering::Release);
        for waker in &state.wakers {
            // It can only fail because 2^64 - 1 wake-ups are pending.
            let _ = rustix::io::write(waker, &1_u64.to_ne_bytes());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One thread's view of the orders.
#[derive(Debug)]
pub(crate) struct Subscription {
    steering: Arc<Steering>,
    waker: Option<Arc<OwnedFd>>,
    seen: u64,
    held: Option<Held>,
    /// The thread will ask for orders before it serves a client.
    rests: bool,
}

impl Subscription {
    /// Readable when there are new orders, unless the thread only [follows](Steering::follow) them.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.waker.as_ref().map(AsFd::as_fd)
    }

    /// The orders, if they have changed since this was last asked.
    pub(crate) fn poll(&mut self) -> Option<Orders> {
        let epoch = || self.steering.epoch.load(Ordering::Acquire);
        if epoch() == self.seen && !self.rests {
            return None;
        }
        let state = self.steering.lock();
        self.rests = false;
        self.held.clone_from(&state.held);
        // Orders are changed under the lock: what is held belongs to these.
        let epoch = epoch();
        if std::mem::replace(&mut self.seen, epoch) == epoch {
            return None;
        }
        if let Some(waker) = &self.waker {
            let _ = rustix::io::read(waker, &mut [0; 8]);
        }
        let (plan, listeners) = state.work.clone()?;
        let departures = state.departures.clone();
        Some(Orders { phase: state.phase.unwrap_or(WorkerPhase::Serving), plan, listeners, departures })
    }

    /// The thread may wait for long without being woken by orders, and asks for them before it serves a client. Nothing
    /// is held for it meanwhile.
    pub(crate) fn rest(&mut self) {
        (self.held, self.rests) = (None, true);
    }

    /// Reports this thread's status.
    pub(crate) fn report(&self, thread: &str, report: Value) {
        self.steering.report(thread, report);
    }
}
