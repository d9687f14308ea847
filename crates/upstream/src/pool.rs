//! The pool of one application: idle connections and waiting requests, without sockets.
//!
//! ```text
//!   begin ─► idle connection? ─► room for another? ─► queue (bounded) ─► refused
//!                                                        │
//!   released ◄───────────────────────────────────────────┘ oldest first
//! ```

use std::sync::Arc;

use baton_process_table::{Leases, Release};
use baton_shares::{ClientKey, FairQueue, Full, Permit, Shares, has_room};

use crate::backlog::Backlog;
use crate::connections::ConnectionId;
use crate::negotiate::Negotiation;
use crate::retry_budget::RetryBudget;
use crate::tally::Tally;
use crate::{Address, Application, BacklogNotice, Protocol, RequestId};

/// The connections of one loop to one application, and the requests that wait for one.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) application: Arc<Application>,
    pub(crate) negotiation: Negotiation,
    pub(crate) tally: Tally,
    /// This loop's leases of processes, if they are in a table.
    pub(crate) leases: Option<Leases>,
    /// Most recently used last. The pool hands out the last one, so that surplus ones time out.
    idle: Vec<ConnectionId>,
    waiting: FairQueue<Waiter>,
    /// What each client has of the connections that are in use.
    shares: Shares,
    /// Connections that the application may not have accepted yet.
    backlog: Backlog,
    /// The clock that all loops share, in microseconds.
    precise_us: fn() -> u64,
    open: usize,
    /// Connections that have become tunnels. They are none of `open`.
    tunnels: Shares,
    /// Connections with an answer so far: each has a process at its other end.
    answered: usize,
    /// The application's backlog was full: no connection is tried before.
    backlog_full_until_ms: u64,
    pub(crate) retry_budget: RetryBudget,
}

/// A request in the queue.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    request_id: RequestId,
    until_ms: u64,
}

/// What a request gets from the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acquired {
    /// An idle connection.
    Idle(ConnectionId),
    /// Permission to open one to the process of this lane, which is leased now. Always 0 if processes share an address.
    Open(usize),
    /// Nothing: it has to wait.
    Nothing,
}

impl Pool {
    pub(crate) fn new(application: Arc<Application>, precise_us: fn() -> u64) -> Self {
        Self {
            leases: application.table().map(Leases::new),
            negotiation: Negotiation::new(&application),
            tally: Tally::default(),
            application,
            idle: Vec::new(),
            waiting: FairQueue::default(),
            shares: Shares::default(),
            backlog: Backlog::default(),
            precise_us,
            open: 0,
            tunnels: Shares::default(),
            answered: 0,
            backlog_full_until_ms: 0,
            retry_budget: RetryBudget::default(),
        }
    }

    /// Whether it has no connections, no requests and no other user of its application.
    pub(crate) fn is_unused(&self) -> bool {
        self.open() + self.tunnels() + self.waiting() == 0 && Arc::strong_count(&self.application) == 1
    }

    /// Gives out an idle connection that `suits`, or permission for a new one. The caller keeps to the order of the queue.
    pub(crate) fn acquire(&mut self, now_ms: u64, suits: impl FnMut(&ConnectionId) -> bool) -> Acquired {
        match self.idle.iter().rposition(suits) {
            Some(at) => Acquired::Idle(self.idle.remove(at)),
            None => self.take_lane(now_ms).map_or(Acquired::Nothing, Acquired::Open),
        }
    }

    /// Whether another connection may be opened.
    pub(crate) fn may_open(&self, now_ms: u64) -> bool {
        self.open < self.application.settings().connections_max
            && now_ms >= self.backlog_full_until_ms
            && self.leases.as_ref().is_none_or(Leases::can_take)
    }

    /// Whether it has more than half of its connections in use.
    pub(crate) fn is_half_busy(&self) -> bool {
        self.busy() * 2 > self.application.settings().connections_max
    }

    /// Whether it asks an origin of HTTP, not an application of this machine.
    pub(crate) fn is_origin(&self) -> bool {
        self.application.settings().protocol == Protocol::Http1
    }

    /// Leases a lane for another connection, if one may be opened.
    pub(crate) fn take_lane(&mut self, now_ms: u64) -> Option<usize> {
        if !self.may_open(now_ms) {
            return None;
        }
        self.leases.as_mut().map_or(Some(0), Leases::take)
    }

    /// Where the process of a lane listens.
    pub(crate) fn address(&self, lane: usize) -> Address {
        self.application.address(self.leases.as_ref().map_or(0, |leases| leases.slot(lane)))
    }

    /// A process could not be connected to. If it is gone, its supervisor has to replace it. Returns whether there may be
    /// other processes.
    pub(crate) fn give_up_lane(&mut self, lane: usize, is_gone: bool) -> bool {
        let release = if is_gone { Release::Unsure } else { Release::Done };
        self.leases.as_mut().map(|leases| leases.release(lane, release)).is_some()
    }

    /// Whether the processes share an address, so that a connection waits for any of them.
    pub(crate) fn shares_address(&self) -> bool {
        self.leases.is_none()
    }

    /// Whether connections wait for a process in the application's backlog. An origin of HTTP accepts all of them at once.
    fn queues_in_backlog(&self) -> bool {
        self.shares_address() && self.application.settings().protocol != Protocol::Http1
    }

    /// Whether a request may be sent again: of origins, that are others' and may be overloaded, only as the budget allows.
    pub(crate) fn may_retry(&mut self) -> bool {
        self.application.settings().protocol != Protocol::Http1 || self.retry_budget.take()
    }

    /// Whether a connection must not be reused: its process has served all its requests, or other loops wait for it.
    pub(crate) fn is_wanted_elsewhere(&self, lane: usize) -> bool {
        self.leases.as_ref().is_some_and(|leases| leases.is_spent(lane) || leases.is_wanted_by_others())
    }

    /// Whether requests of other loops wait for the application.
    pub(crate) fn is_wanted_by_others(&self) -> bool {
        self.leases.as_ref().is_some_and(Leases::is_wanted_by_others)
    }

    /// Counts a connection that is open or being opened.
    pub(crate) fn opened(&mut self, connection: ConnectionId, is_local: bool, now_ms: u64) {
        self.open += 1;
        self.tally.opened += 1;
        if self.queues_in_backlog() {
            self.backlog.opened(connection, is_local, (self.precise_us)(), now_ms);
        }
    }

    /// A process has answered on a connection, for the first time.
    pub(crate) fn note_process(&mut self, now_ms: u64) {
        self.answered += 1;
        self.application.settings().streamed_bodies.note_seen(self.answered, now_ms);
    }

    /// A connection with a process at its other end is closed.
    pub(crate) fn note_process_left(&mut self) {
        debug_assert!(self.answered > 0, "more processes have left than have come");
        self.answered -= 1;
    }

    /// The application has answered a request.
    pub(crate) fn note_answer(&mut self, now_ms: u64) {
        self.backlog.note_answer(now_ms);
    }

    /// The notice by which loops tell each other of connections in the application's backlog.
    fn notice(&self) -> Option<BacklogNotice> {
        self.application.settings().backlog_notice
    }

    /// Whether a connection is to be closed because another one, or one of another loop, starves in the application's
    /// backlog. `is_unaccepted` looks at a connection.
    pub(crate) fn has_starving(&mut self, is_unaccepted: impl FnMut(ConnectionId) -> bool) -> bool {
        let notice = self.notice();
        // Most responses find neither, and read no clock.
        let has_unaccepted = !self.backlog.is_empty() || notice.is_some_and(BacklogNotice::is_posted);
        self.queues_in_backlog()
            && has_unaccepted
            && self.backlog.has_starving(notice, (self.precise_us)(), is_unaccepted)
    }

    /// Whether a connection that was kept is to be closed because one of another loop starves by now.
    pub(crate) fn has_others_starving(&self) -> bool {
        self.notice().is_some_and(|notice| notice.is_posted() && notice.take((self.precise_us)()))
    }

    /// Tells other loops of a connection that starves in the application's backlog.
    pub(crate) fn tell_of_starving(&mut self, now_ms: u64, is_unaccepted: impl FnMut(ConnectionId) -> bool) {
        if let Some(notice) = self.notice() {
            self.backlog.tell_others(notice, (self.precise_us)(), now_ms, is_unaccepted);
        }
    }

    /// Forgets a connection that was closed or could not be opened.
    pub(crate) fn closed(&mut self, connection: ConnectionId, lane: usize, release: Option<Release>) {
        debug_assert!(self.open > 0, "a connection is closed that was never opened");
        self.idle.retain(|idle| *idle != connection);
        self.open -= 1;
        if let (Some(leases), Some(release)) = (&mut self.leases, release) {
            leases.release(lane, release);
        }
    }

    /// Whether another connection may become a tunnel of this client.
    pub(crate) fn may_tunnel(&self, client: Option<ClientKey>) -> bool {
        self.tunnels.room(client, self.application.settings().tunnels_max).is_ok()
    }

    /// A connection has become a tunnel of this client, until the result is dropped, perhaps for hours: requests may have
    /// another one in its place.
    pub(crate) fn note_tunnel(&mut self, client: Option<ClientKey>) -> Permit {
        self.open -= 1;
        self.tunnels.enter(client)
    }

    /// Asks the supervisor to end a process that has timed out. False: the process answers other requests as well, or Baton
    /// has not started it.
    pub(crate) fn end_process(&mut self, lane: usize) -> bool {
        let Some(leases) = self.leases.as_mut().filter(|leases| leases.ends_overdue()) else {
            return false;
        };
        leases.release(lane, Release::Overdue);
        true
    }

    /// The application's backlog is full.
    pub(crate) fn note_backlog_full(&mut self, now_ms: u64) {
        self.backlog_full_until_ms = now_ms + BACKLOG_RETRY_MS;
    }

    /// Keeps a connection for the next request.
    pub(crate) fn keep(&mut self, connection: ConnectionId) {
        debug_assert!(!self.idle.contains(&connection), "a connection is kept twice");
        self.idle.push(connection);
        debug_assert!(self.idle.len() <= self.open, "more connections are idle than open");
    }

    /// Takes out the connection that has been idle the longest.
    pub(crate) fn give_up_oldest_idle(&mut self) -> Option<ConnectionId> {
        (!self.idle.is_empty()).then(|| self.idle.remove(0))
    }

    /// Whether a request of this client may have a connection, if there is one: not if its client has its share, and others
    /// need what is left.
    pub(crate) fn has_share(&self, client: Option<ClientKey>) -> bool {
        self.shares.room(client, self.application.settings().connections_max) != Err(Full::Share)
    }

    /// A connection is in use for this client, until the result is dropped.
    pub(crate) fn take_share(&self, client: Option<ClientKey>) -> Permit {
        self.shares.enter(client)
    }

    /// Puts a request at the end of the queue. False: the queue is full, or has the client's share already.
    pub(crate) fn enqueue(&mut self, request_id: RequestId, client: Option<ClientKey>, now_ms: u64) -> bool {
        let settings = self.application.settings();
        let held = client.map(|_| self.waiting.len_of(client) as u64);
        let admitted = has_room(held, self.waiting.len() as u64, 1, settings.queue_max as u64).is_ok();
        if admitted {
            let until_ms = now_ms.saturating_add(settings.queue_timeout_ms);
            self.waiting.push(client, Waiter { request_id, until_ms });
            self.note_waiting();
        }
        admitted
    }

    /// Puts a request back at the front of the queue.
    pub(crate) fn put_back(&mut self, request_id: RequestId, client: Option<ClientKey>, until_ms: u64) {
        self.waiting.put_back(client, Waiter { request_id, until_ms });
        self.note_waiting();
    }

    /// The request that is next: of several clients that may have a connection, one after the other.
    pub(crate) fn first_waiter(&self) -> Option<RequestId> {
        self.waiting.peek(|client| self.has_share(client)).map(|waiter| waiter.request_id)
    }

    /// Takes out the request that is next.
    pub(crate) fn next_waiter(&mut self) -> Option<RequestId> {
        let (shares, max) = (&self.shares, self.application.settings().connections_max);
        let waiter = self.waiting.pop(|client| shares.room(client, max) != Err(Full::Share))?;
        self.note_waiting();
        Some(waiter.request_id)
    }

    /// Takes out a request that has timed out.
    pub(crate) fn next_overdue(&mut self, now_ms: u64) -> Option<RequestId> {
        let waiter = self.waiting.take(|waiter| waiter.until_ms <= now_ms)?;
        self.note_waiting();
        Some(waiter.request_id)
    }

    /// Removes a cancelled request.
    pub(crate) fn leave(&mut self, request_id: RequestId) {
        self.waiting.take(|waiter| waiter.request_id == request_id);
        self.note_waiting();
    }

    fn note_waiting(&mut self) {
        if let Some(leases) = &mut self.leases {
            leases.want(self.waiting.len());
        }
    }

    /// The next deadline.
    pub(crate) fn deadline_ms(&self, now_ms: u64) -> Option<u64> {
        let can_help = !self.idle.is_empty() || self.notice().is_some();
        // Whether one starves, the precise clock says. The loop's may be ahead of it: then it is looked at again, not at once.
        let starving = self.backlog.due_ms().filter(|_| can_help).map(|due_ms| due_ms.max(now_ms + 1));
        self.queue_deadline_ms(now_ms).into_iter().chain(starving).min()
    }

    fn queue_deadline_ms(&self, now_ms: u64) -> Option<u64> {
        let overdue = self.next_in_queue_ms()?;
        let retry = Some(self.backlog_full_until_ms).filter(|due| *due > now_ms);
        Some(retry.map_or(overdue, |retry| overdue.min(retry)))
    }

    /// When the first of the waiting requests has waited for too long.
    pub(crate) fn next_in_queue_ms(&self) -> Option<u64> {
        self.waiting.iter().map(|waiter| waiter.until_ms).min()
    }

    /// How long an application shall wait for a stalled client. Shorter while requests wait for the application: otherwise
    /// slow clients would hold all of its processes one after the other.
    pub(crate) fn patience_ms(&self) -> u32 {
        let patience_ms = self.application.settings().patience_ms;
        if self.waiting() == 0 { patience_ms } else { patience_ms.min(PATIENCE_WHEN_WANTED_MS) }
    }

    /// Number of waiting requests.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The idle connections, least recently used first.
    pub(crate) fn idle_connections(&self) -> &[ConnectionId] {
        &self.idle
    }

    /// Number of idle connections.
    pub(crate) fn idle(&self) -> usize {
        self.idle.len()
    }

    /// Number of tunnels.
    pub(crate) fn tunnels(&self) -> usize {
        self.tunnels.taken()
    }

    /// Number of connections whose process has answered.
    pub(crate) fn answered(&self) -> usize {
        self.answered
    }

    /// Number of connections that serve requests.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    /// Number of connections with a request.
    pub(crate) fn busy(&self) -> usize {
        self.open - self.idle.len()
    }
}

/// How long applications wait for a stalled client while requests wait for them.
const PATIENCE_WHEN_WANTED_MS: u32 = 10;

/// How soon a full backlog is tried again. A fast application serves a few requests in this time.
const BACKLOG_RETRY_MS: u64 = 5;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::backlog::precise_us;
    use baton_process_table::ProcessTable;

    use crate::{BacklogNotices, Endpoint, Settings};

    fn application(members: usize, change: impl FnOnce(&mut Settings)) -> Arc<Application> {
        let endpoint = match members {
            0 => Endpoint::Shared(Address::Abstract(vec![0])),
            _ => {
                let table = ProcessTable::create(members, 1).unwrap();
                for slot in 0..members {
                    table.begin(slot, 1, None);
                    table.set_open(slot);
                }
                Endpoint::Members { table: Arc::new(table), prefix: "/nonexistent".into() }
            }
        };
        let mut settings = Settings::new("test", endpoint);
        change(&mut settings);
        Application::new(settings).unwrap()
    }

    #[test]
    fn the_connection_used_last_is_used_next() {
        let mut pool = Pool::new(application(0, |_| {}), precise_us);
        let ids: Vec<_> = (0..3).map(ConnectionId::from_data).collect();
        for id in &ids {
            assert_eq!(pool.acquire(0, |_| true), Acquired::Open(0));
            pool.opened(*id, true, 0);
        }
        for id in &ids {
            pool.keep(*id);
        }
        assert_eq!(pool.acquire(0, |_| true), Acquired::Idle(ids[2]));
        assert_eq!(pool.give_up_oldest_idle(), Some(ids[0]));
        assert_eq!(pool.acquire(0, |_| true), Acquired::Idle(ids[1]));
    }

    /// Goal: who holds most connections and fills the queue keeps no other client from either.
    #[test]
    fn one_client_leaves_connections_and_the_queue_to_others() {
        let mut pool = Pool::new(
            application(0, |settings| (settings.connections_max, settings.queue_max) = (8, 8)),
            precise_us,
        );
        let client = |last| Some(ClientKey::of([192, 0, 2, last].into()));
        let mut places: Vec<_> = (0..6).map(|_| pool.take_share(client(1))).collect();
        assert!(!pool.has_share(client(1)) && pool.has_share(client(2)) && pool.has_share(None));
        let admitted = (0..8).filter(|number| pool.enqueue(RequestId::new(*number), client(1), 0)).count();
        assert_eq!((admitted, pool.first_waiter()), (6, None));
        assert!(
            pool.enqueue(RequestId::new(20), client(2), 0) && pool.enqueue(RequestId::new(30), client(3), 0)
        );
        assert_eq!(
            (pool.next_waiter(), pool.first_waiter()),
            (Some(RequestId::new(20)), Some(RequestId::new(30)))
        );
        places.clear();
        let order: Vec<_> = std::iter::from_fn(|| pool.next_waiter()).map(RequestId::number).collect();
        assert_eq!(order, [0, 30, 1, 2, 3, 4, 5], "one client after the other");
    }

    #[test]
    fn a_full_backlog_is_left_alone_for_a_while() {
        let mut pool = Pool::new(application(0, |_| {}), precise_us);
        pool.note_backlog_full(100);
        assert_eq!(pool.acquire(100, |_| true), Acquired::Nothing);
        assert!(pool.enqueue(RequestId::new(1), None, 100));
        assert_eq!(pool.deadline_ms(100), Some(100 + BACKLOG_RETRY_MS));
        assert_eq!(pool.acquire(100 + BACKLOG_RETRY_MS, |_| true), Acquired::Open(0));
    }

    /// Goal: a request that finds no connection in any backlog reads no clock.
    #[test]
    fn an_empty_backlog_needs_no_clock() {
        let notice = BacklogNotices::allocate().unwrap().of(&Address::Abstract(vec![0]));
        let application = application(0, |settings| settings.backlog_notice = notice);
        let mut pool = Pool::new(application, || panic!("the clock was read"));
        assert!(!pool.has_starving(|_| true));
        assert!(!pool.has_others_starving());
        notice.unwrap().post(1, precise_us());
        pool.precise_us = precise_us;
        assert!(pool.has_starving(|_| true));
        assert!(!pool.has_others_starving(), "one is taken once");
    }

    /// One step of the test.
    #[derive(Clone, Debug)]
    enum Step {
        Begin,
        Release { which: usize, keep: bool },
        Leave(u64),
        Wait(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => Just(Step::Begin),
            4 => (0_usize..8, any::<bool>()).prop_map(|(which, keep)| Step::Release { which, keep }),
            1 => (0_u64..60).prop_map(Step::Leave),
            1 => (0_u64..40).prop_map(Step::Wait),
        ];
        proptest::collection::vec(step, 1..150)
    }

    /// A pool, and what a gateway would know of it.
    struct Game {
        pool: Pool,
        now_ms: u64,
        next_id: u64,
        /// Connections with a request, and those without.
        busy: Vec<(ConnectionId, usize)>,
        idle: Vec<(ConnectionId, usize)>,
        /// Waiting requests in order, with their deadlines.
        queue: VecDeque<(RequestId, u64)>,
    }

    impl Game {
        fn serve(&mut self, acquired: Acquired) {
            match acquired {
                Acquired::Idle(id) => {
                    let at = self.idle.iter().position(|idle| idle.0 == id).expect("it was idle");
                    self.busy.push(self.idle.remove(at));
                }
                Acquired::Open(member) => {
                    let id = ConnectionId::from_data(self.next_id);
                    self.next_id += 1;
                    self.pool.opened(id, true, self.now_ms);
                    self.busy.push((id, member));
                }
                Acquired::Nothing => panic!("a request needs a connection"),
            }
        }

        fn advance_queue(&mut self) {
            while self.pool.waiting() > 0 {
                let acquired = self.pool.acquire(self.now_ms, |_| true);
                if acquired == Acquired::Nothing {
                    return;
                }
                assert_eq!(
                    self.pool.next_waiter(),
                    self.queue.pop_front().map(|waiter| waiter.0),
                    "in order"
                );
                self.serve(acquired);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// Bounds hold, members have one connection each, the queue keeps its order, and no request waits too long or beside
        /// an idle connection.
        #[test]
        fn the_bounds_and_the_order_hold(steps in steps(), members in 0_usize..4) {
            let application = application(members, |settings| {
                settings.connections_max = 3;
                settings.queue_max = 4;
                settings.queue_timeout_ms = 50;
            });
            let pool = Pool::new(application, precise_us);
            let (busy, idle, queue) = (Vec::new(), Vec::new(), VecDeque::new());
            let mut game = Game { pool, now_ms: 1, next_id: 0, busy, idle, queue };
            let mut number = 0;
            for step in steps {
                match step {
                    Step::Begin => {
                        number += 1;
                        let request_id = RequestId::new(number);
                        let acquired = match game.pool.waiting() {
                            0 => game.pool.acquire(game.now_ms, |_| true),
                            _ => Acquired::Nothing,
                        };
                        if acquired != Acquired::Nothing {
                            game.serve(acquired);
                        } else if game.pool.enqueue(request_id, None, game.now_ms) {
                            game.queue.push_back((request_id, game.now_ms + 50));
                        } else {
                            prop_assert_eq!(game.queue.len(), 4);
                        }
                    }
                    Step::Release { which, keep } if which < game.busy.len() => {
                        let (id, member) = game.busy.remove(which);
                        if keep {
                            game.pool.keep(id);
                            game.idle.push((id, member));
                        } else {
                            game.pool.closed(id, member, Some(Release::Done));
                        }
                        game.advance_queue();
                    }
                    Step::Release { .. } => {}
                    Step::Leave(who) => {
                        let who = RequestId::new(who);
                        game.pool.leave(who);
                        game.queue.retain(|waiter| waiter.0 != who);
                    }
                    Step::Wait(ms) => {
                        game.now_ms += ms;
                        while let Some(late) = game.pool.next_overdue(game.now_ms) {
                            let (who, until_ms) = game.queue.pop_front().expect("a request waits");
                            prop_assert!(late == who && until_ms <= game.now_ms);
                        }
                        prop_assert!(game.queue.iter().all(|waiter| waiter.1 > game.now_ms));
                    }
                }
                let open = game.busy.len() + game.idle.len();
                prop_assert!(open <= 3 && (members == 0 || open <= members));
                prop_assert_eq!((game.pool.open(), game.pool.idle()), (open, game.idle.len()));
                prop_assert_eq!(game.pool.waiting(), game.queue.len());
                let mut used: Vec<usize> = game.busy.iter().chain(&game.idle).map(|one| one.1).collect();
                used.sort_unstable();
                used.dedup();
                prop_assert!(members == 0 || used.len() == open, "one connection to each member");
                prop_assert!(game.queue.is_empty() || game.idle.is_empty(), "one waits and one is idle");
            }
        }
    }
}
