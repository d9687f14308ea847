//! How a worker process is steered while it runs: reload, drain, stop, logs, status.
//!
//! A control thread gives orders; the threads that run steps find them when they wake up. Each of them waits on an
//! eventfd of its own beside its sockets, and compares one number per wake-up.

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use baton_content::Cache;
use baton_session::departures::{Departures, Destination};
use baton_site::plan::Plan;
use baton_telemetry::log::LogWriter;
use rustix::event::EventfdFlags;
use serde_json::{Value, json};

use crate::listen::Listener;

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
    /// Whether connections of front-ends go back to them.
    pub(crate) gives_back: bool,
    /// Whether the thread is asked for a report.
    pub(crate) wants_report: bool,
}

/// The orders of a worker process and the way to tell its threads; shared by them and a control thread.
#[derive(Debug, Default)]
pub struct Steering {
    /// Grows with each order.
    epoch: AtomicU64,
    state: Mutex<State>,
    reported: Condvar,
}

#[derive(Debug, Default)]
struct State {
    phase: Option<WorkerPhase>,
    work: Option<(Arc<Plan>, Vec<Arc<Listener>>)>,
    wakers: Vec<Arc<OwnedFd>>,
    log: Option<Arc<LogWriter>>,
    held: Option<Held>,
    /// How often the threads were asked for reports.
    reports_asked: u64,
    /// The last report of each thread that gives any.
    reports: BTreeMap<String, Report>,
    departures: Option<Departures>,
    gives_back: bool,
    /// Caches of files, and which part of the memory that they can give up they may take, in thousandths.
    file_caches: Vec<Weak<Cache>>,
    memory_permille: Option<u16>,
}

/// What a thread has reported.
#[derive(Clone, Debug, Default)]
struct Report {
    /// Which question it answers.
    asked: u64,
    value: Value,
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

    /// Gives connections back to the front-ends of a cluster that have handed them over, as soon as each is between two requests;
    /// or keeps them again.
    pub fn give_back(&self, gives_back: bool) {
        self.order(|state| state.gives_back = gives_back);
    }

    /// Lets the caches of files take a part of what they can give up of their memory, in thousandths. Returns whether files have
    /// left it.
    pub fn set_memory_share(&self, permille: u16) -> bool {
        let mut state = self.lock();
        state.memory_permille = Some(permille);
        let caches: Vec<_> = state.file_caches.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        let mut has_shrunk = false;
        for cache in caches.iter() {
            has_shrunk |= cache.set_memory_share(permille);
        }
        has_shrunk
    }

    /// Has a cache of files follow [`set_memory_share`](Self::set_memory_share), as long as it is used.
    pub(crate) fn follow_memory(&self, cache: &Arc<Cache>) {
        let mut state = self.lock();
        if let Some(permille) = state.memory_permille {
            cache.set_memory_share(permille);
        }
        state.file_caches.push(Arc::downgrade(cache));
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

    /// The status reports of the worker's threads, a JSON object. Each thread is asked for its own. One that has not answered
    /// within [`REPORT_PATIENCE`] is busy or stuck, and the status says so.
    pub fn status(&self) -> String {
        self.order(|state| state.reports_asked += 1);
        let state = self.lock();
        let asked = state.reports_asked;
        let is_awaited = |report: &Report| report.asked < asked;
        let (state, _) = self
            .reported
            .wait_timeout_while(state, REPORT_PATIENCE, |state| state.reports.values().any(is_awaited))
            .unwrap_or_else(PoisonError::into_inner);
        let told = state.reports.iter().map(|(thread, report)| {
            let silent = || json!({ "no_answer_within_ms": REPORT_PATIENCE.as_millis() as u64 });
            (thread.clone(), if is_awaited(report) { silent() } else { report.value.clone() })
        });
        Value::from_iter(told).to_string()
    }

    /// The worker begins with this work, unless a reload was quicker.
    pub(crate) fn begin(&self, plan: Arc<Plan>, listeners: Vec<Arc<Listener>>, log: Option<Arc<LogWriter>>) {
        self.order(|state| {
            state.work.get_or_insert((plan, listeners));
            state.log = log;
        });
    }

    /// A waker and the orders, for a thread that runs steps, and reports under this name.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`.
    pub(crate) fn subscribe(self: &Arc<Self>, thread: &str) -> io::Result<Subscription> {
        let waker = Arc::new(rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let mut state = self.lock();
        state.wakers.push(Arc::clone(&waker));
        let report = Report { asked: state.reports_asked, value: Value::Null };
        state.reports.insert(thread.to_owned(), report);
        drop(state);
        Ok(self.subscription(Some(waker), Some(thread)))
    }

    /// The orders without a waker, for a thread that waits for something else.
    pub(crate) fn follow(self: &Arc<Self>) -> Subscription {
        self.subscription(None, None)
    }

    fn subscription(self: &Arc<Self>, waker: Option<Arc<OwnedFd>>, thread: Option<&str>) -> Subscription {
        let (steering, thread) = (Arc::clone(self), thread.map(str::to_owned));
        Subscription { steering, waker, thread, seen: 0, held: None, rests: false }
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
    /// The name under which the thread reports, if it does.
    thread: Option<String>,
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
        let report = self.thread.as_ref().and_then(|thread| state.reports.get(thread));
        let wants_report = report.is_some_and(|report| report.asked < state.reports_asked);
        let phase = state.phase.unwrap_or(WorkerPhase::Serving);
        let gives_back = state.gives_back;
        Some(Orders { phase, plan, listeners, departures, gives_back, wants_report })
    }

    /// The thread may wait for long without being woken by orders, and asks for them before it serves a client. Nothing
    /// is held for it meanwhile.
    pub(crate) fn rest(&mut self) {
        (self.held, self.rests) = (None, true);
    }

    /// Reports this thread's status, as orders have asked it to.
    pub(crate) fn report(&self, value: Value) {
        let mut state = self.steering.lock();
        let asked = state.reports_asked;
        if let Some(report) = self.thread.as_ref().and_then(|thread| state.reports.get_mut(thread)) {
            *report = Report { asked, value };
            self.steering.reported.notify_all();
        }
    }
}

/// A thread that has ended is asked no more.
impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(thread) = &self.thread {
            self.steering.lock().reports.remove(thread);
            self.steering.reported.notify_all();
        }
    }
}

/// How long the status waits for the threads of a worker: shorter than the master waits for the worker.
const REPORT_PATIENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::thread;

    use baton_site::limits::Limits;
    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    /// Answers the next question of a status.
    fn answer(subscription: &mut Subscription, value: u64) {
        while subscription.poll().is_none_or(|orders| !orders.wants_report) {
            poll(&mut [PollFd::from_borrowed_fd(subscription.descriptor().unwrap(), PollFlags::IN)], None)
                .unwrap();
        }
        subscription.report(value.into());
    }

    /// Goal: threads report when a status is asked for, and only then; one that is stuck is named, and holds nothing up for
    /// ever; one that has ended is not waited for.
    #[test]
    fn a_status_is_composed_when_it_is_asked_for() {
        let steering = Arc::new(Steering::new());
        steering.begin(Arc::new(Plan::new(Vec::new(), Limits::default(), true)), Vec::new(), None);
        let [mut one, mut stuck] = ["one", "stuck"].map(|name| steering.subscribe(name).unwrap());
        assert!([&mut one, &mut stuck].iter_mut().all(|thread| !thread.poll().unwrap().wants_report));
        let ask = || {
            let steering = Arc::clone(&steering);
            thread::spawn(move || serde_json::from_str::<Value>(&steering.status()).unwrap())
        };
        let asked = ask();
        answer(&mut one, 7);
        let silent = json!({ "no_answer_within_ms": REPORT_PATIENCE.as_millis() as u64 });
        assert_eq!(asked.join().unwrap(), json!({ "one": 7, "stuck": silent }));
        // Too late.
        answer(&mut stuck, 8);
        let asked = ask();
        answer(&mut stuck, 9);
        answer(&mut one, 10);
        assert_eq!(asked.join().unwrap(), json!({ "one": 10, "stuck": 9 }));
        drop(stuck);
        let asked = ask();
        answer(&mut one, 11);
        assert_eq!(asked.join().unwrap(), json!({ "one": 11 }));
    }
}
