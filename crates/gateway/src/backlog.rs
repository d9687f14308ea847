//! Connections that an application may not have accepted yet.
//!
//! A request on such a connection waits in the application's backlog while processes answer, again and again, what comes on
//! the connections that they have accepted. So the pool looks at the oldest of them whenever a connection is released: if
//! it starves, the released one is closed, and the process at its other end accepts the next of the backlog.

use std::collections::VecDeque;

use crate::connections::ConnectionId;
use crate::roster::{Attendance, Parting};

/// The connections of one pool that may be in the backlog.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    unaccepted: VecDeque<Unaccepted>,
    /// Connections that are to be closed when they are released, so that others are accepted.
    surplus: Vec<ConnectionId>,
    /// Requests that the application has answered.
    answers: u64,
}

/// A connection in the application's backlog, as far as is known.
#[derive(Clone, Copy, Debug)]
struct Unaccepted {
    connection: ConnectionId,
    /// Since when a process was expected to accept it, and how many answers there had been.
    since_ms: u64,
    answers: u64,
    /// How often another one was closed for it.
    grants: u32,
    doubt: Option<Doubt>,
}

/// There may never have been a process for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// How often loops had closed a connection before it was opened.
    pub(crate) given_back: u64,
}

impl Backlog {
    /// A connection has been opened. Without a doubt there was a process for its lane, which may have to wait for a CPU.
    pub(crate) fn opened(&mut self, connection: ConnectionId, doubt: Option<Doubt>, now_ms: u64) {
        let answers = self.answers;
        self.unaccepted.push_back(Unaccepted { connection, since_ms: now_ms, answers, grants: 0, doubt });
    }

    /// A connection is no more.
    pub(crate) fn closed(&mut self, connection: ConnectionId) {
        self.unaccepted.retain(|unaccepted| unaccepted.connection != connection);
        self.surplus.retain(|surplus| *surplus != connection);
    }

    /// The application has answered a request.
    pub(crate) fn note_answer(&mut self) {
        self.answers += 1;
    }

    /// The application has answered on a connection for the first time. `processes`: on how many that are open it has.
    pub(crate) fn note_process(
        &mut self,
        connection: ConnectionId,
        processes: usize,
        attendance: Option<&Attendance>,
    ) {
        let at = self.unaccepted.iter().position(|one| one.connection == connection);
        if let Some(accepted) = at.and_then(|at| self.unaccepted.remove(at)) {
            self.note_accepted(&accepted, processes, attendance);
        }
    }

    /// Whether a connection is to be closed though it could be used again: it may have been accepted in place of another.
    pub(crate) fn take_surplus(&mut self, connection: ConnectionId) -> bool {
        let at = self.surplus.iter().position(|one| *one == connection);
        at.map(|at| self.surplus.swap_remove(at)).is_some()
    }

    /// Whether a connection starves, so that another one is to be closed for it, and in which state that leaves its lane.
    /// `is_unaccepted` looks at a connection.
    ///
    /// A process that is free accepts as soon as it gets a CPU. To close a connection before that would only put the
    /// next request into the backlog instead, and so on for ever.
    pub(crate) fn take_starving(
        &mut self,
        processes: usize,
        attendance: Option<&Attendance>,
        now_ms: u64,
        mut is_unaccepted: impl FnMut(ConnectionId) -> bool,
    ) -> Option<Parting> {
        let attendance = attendance.filter(|attendance| attendance.is_learned());
        while let Some(&oldest) = self.unaccepted.front() {
            let is_overtaken = attendance.is_some()
                && oldest.grants == 0
                && now_ms >= oldest.since_ms + ACCEPT_MS_MIN
                && self.is_overtaken(&oldest, processes);
            if !is_overtaken && now_ms < oldest.due_ms() {
                return None;
            }
            self.unaccepted.pop_front();
            if !is_unaccepted(oldest.connection) {
                self.note_accepted(&oldest, processes, attendance);
                continue;
            }
            // The process that is freed by that has its time, too.
            let grants = oldest.grants + 1;
            self.unaccepted.push_back(Unaccepted { since_ms: now_ms, grants, ..oldest });
            let is_surplus = attendance.is_some_and(|attendance| {
                oldest.grants == 0 && attendance.note_starving(oldest.doubt.is_some(), now_ms)
            });
            return Some(if is_surplus { Parting::Surplus } else { Parting::Done });
        }
        None
    }

    /// When the oldest connection starves, whatever is answered meanwhile.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        self.unaccepted.front().map(Unaccepted::due_ms)
    }

    /// The application has accepted a connection.
    fn note_accepted(&mut self, accepted: &Unaccepted, processes: usize, attendance: Option<&Attendance>) {
        let learned = attendance.filter(|attendance| attendance.is_learned() && accepted.grants == 0);
        let Some(attendance) = learned else { return };
        if accepted.doubt.is_some_and(|doubt| doubt.given_back != attendance.given_back()) {
            // A loop may have closed a connection for one that waits behind it.
            self.surplus.push(accepted.connection);
        } else if !self.is_overtaken(accepted, processes) {
            attendance.note_accepted(accepted.doubt.is_some());
        }
    }

    /// Whether each process that this loop has seen could have answered once since a connection was opened.
    fn is_overtaken(&self, unaccepted: &Unaccepted, processes: usize) -> bool {
        self.answers - unaccepted.answers >= processes.max(1) as u64
    }
}

impl Unaccepted {
    /// The process that was freed may have accepted another server's connection, or the application may have accepted this
    /// one and not read all that was sent: less and less is closed for it.
    fn due_ms(&self) -> u64 {
        self.since_ms + (ACCEPT_MS << self.grants.min(GRANTS_MAX))
    }
}

/// How long a process that is free may take to accept a connection: its turn on a CPU that it shares with others of its
/// kind, each of which makes a response first.
pub(crate) const ACCEPT_MS: u64 = 20;

/// The same if other requests have been answered meanwhile.
const ACCEPT_MS_MIN: u64 = 5;

/// How often that time is doubled at the most.
const GRANTS_MAX: u32 = 5;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Roster;

    fn ids() -> [ConnectionId; 3] {
        [0, 1, 2].map(ConnectionId::from_data)
    }

    fn attendance() -> Attendance {
        Attendance::new(&Arc::new(Roster::create_learned().unwrap()))
    }

    #[test]
    fn a_connection_is_given_up_for_each_that_starves() {
        let mut backlog = Backlog::default();
        for (id, now_ms) in ids().into_iter().zip(0..) {
            backlog.opened(id, None, now_ms);
        }
        let unaccepted = |id| id != ids()[0];
        let mut take = |now_ms, accepted: Option<bool>| {
            backlog.take_starving(1, None, now_ms, |id| accepted.map_or_else(|| unaccepted(id), |one| !one))
        };
        assert_eq!(take(ACCEPT_MS, None), None, "it has just been opened");
        let now_ms = ACCEPT_MS + 2;
        let given_up = [take(now_ms, None), take(now_ms, None), take(now_ms, None)];
        assert_eq!(given_up, [Some(Parting::Done), Some(Parting::Done), None], "one for each");
        assert_eq!(take(now_ms + 2 * ACCEPT_MS - 1, None), None);
        assert!(take(now_ms + 2 * ACCEPT_MS, None).is_some(), "it was not enough");
        assert_eq!(take(u64::MAX / 2, Some(true)), None);
        assert_eq!(take(u64::MAX / 2, Some(false)), None, "what was accepted is not looked at again");
    }

    /// Goal: a connection that the application does not accept while it answers others shows that there are too many lanes,
    /// at once if there was a doubt, else the second time.
    #[test]
    fn what_starves_shows_how_many_processes_there_are() {
        let attendance = attendance();
        let mut backlog = Backlog::default();
        let doubt = Some(Doubt { given_back: attendance.given_back() });
        backlog.opened(ids()[0], doubt, 0);
        backlog.note_answer();
        let take =
            |backlog: &mut Backlog, now_ms| backlog.take_starving(2, Some(&attendance), now_ms, |_| true);
        assert_eq!(take(&mut backlog, ACCEPT_MS_MIN), None, "two processes, and one answer");
        backlog.note_answer();
        assert_eq!(take(&mut backlog, ACCEPT_MS_MIN - 1), None, "it may wait for a CPU");
        assert_eq!(take(&mut backlog, ACCEPT_MS_MIN), Some(Parting::Surplus));
        backlog.closed(ids()[0]);

        attendance.note_accepted(false);
        for expected in [Parting::Done, Parting::Surplus] {
            backlog.opened(ids()[1], None, 0);
            assert_eq!(take(&mut backlog, ACCEPT_MS), Some(expected));
            backlog.closed(ids()[1]);
        }
    }

    /// Goal: a process that another loop has left to a third one is no new process.
    #[test]
    fn what_was_accepted_in_place_of_another_is_surplus() {
        let mut attendance = attendance();
        let mut backlog = Backlog::default();
        let lane = attendance.take().unwrap();
        for (id, closes) in [(ids()[0], false), (ids()[1], true)] {
            backlog.opened(id, Some(Doubt { given_back: attendance.given_back() }), 0);
            if closes {
                attendance.give_back(lane, Parting::Done);
            }
            backlog.note_process(id, 1, Some(&attendance));
            assert_eq!(backlog.take_surplus(id), closes);
        }
    }
}
