//! A client in the simulation: what the world asks of it whatever it speaks, and what all clients have in common.

use std::fmt;

use baton_session::requests::Requests;
use baton_site::limits::Limits;

use super::choices::Choices;
use super::link::ClientSocket;
use super::log::LogLine;

/// One client, from its connection to its end. It acts by its seed, and compares what it gets with the model.
pub(crate) trait Client: fmt::Debug {
    /// Its end of the connection.
    fn link(&self) -> &dyn ClientSocket;
    /// The same, to change it.
    fn link_mut(&mut self) -> &mut dyn ClientSocket;
    /// Acts once. Returns the milliseconds until it acts again; `None`: never.
    fn act(&mut self, choices: &mut Choices) -> Option<u64>;
    /// Takes what the server has written, and checks it.
    fn observe(&mut self, moment: Moment);
    /// Complete answers so far.
    fn answers(&self) -> usize;
    /// Bytes of output that the connection took from `since_ms` on.
    fn taken_since(&self, since_ms: u64) -> usize;
    /// Requests that can be too late at the same moment.
    fn concurrent_max(&self) -> usize;
    /// Checks that a session that waits for input has nothing else to do, and does not wait longer than it may.
    fn check_input_wait(&mut self, wait: &InputWait<'_>);
    /// The session has ended. `by_itself`: for no reason but what the client did, and what was left to do.
    fn check_end(&mut self, who: usize, by_itself: bool);
    /// Compares the log with what the client got.
    fn check_log(&self, who: usize, lines: &[&LogLine]);
}

/// The state of the worker when a client acts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now_ms: u64,
    pub(crate) unix_seconds: u64,
    /// Of the plan.
    pub(crate) version: u32,
    pub(crate) is_draining: bool,
    /// Whether files may have to be read from a disk first.
    pub(crate) is_disk_cold: bool,
    pub(crate) requests_max: usize,
}

/// A session that has written all it has, and waits for input.
#[derive(Debug)]
pub(crate) struct InputWait<'a> {
    pub(crate) who: usize,
    pub(crate) now_ms: u64,
    pub(crate) deadline_ms: u64,
    pub(crate) accepted_ms: u64,
    /// When an event of the application last reached it.
    pub(crate) heard_ms: u64,
    /// What the session says of itself.
    pub(crate) is_idle: bool,
    /// Whether a job works for it.
    pub(crate) has_job: bool,
    /// Requests that the application has.
    pub(crate) delegated: &'a Requests,
    pub(crate) limits: &'a Limits,
}

/// What a client is like.
#[derive(Debug)]
pub(crate) struct Habits {
    /// Requests that it sends before it has the answers.
    pub(crate) concurrent: usize,
    pub(crate) piece_bytes_max: usize,
    room_bytes_max: usize,
    pause_ms_max: u64,
    /// How it leaves, and after how many bytes of its own.
    pub(crate) leaving: Option<(Leaving, usize)>,
    /// How it leaves when all is answered. `None`: it waits for the server to end the connection.
    pub(crate) parting: Option<Leaving>,
}

impl Habits {
    /// The habits of a client that sends about `total` bytes.
    pub(crate) fn choose(total: usize, choices: &mut Choices) -> Self {
        let leaving =
            choices.chance(30).then(|| (choices.one(&LEAVINGS), choices.number(0..total.max(1) + 1)));
        let is_quick = choices.chance(60);
        Self {
            concurrent: choices.one(&[1, 1, 2, 16]),
            piece_bytes_max: choices.one(&[1_000_000, 1_000_000, 2_000, 100]),
            room_bytes_max: choices.one(&[1_000_000, 200_000, 20_000]),
            pause_ms_max: if is_quick { 5 } else { choices.one(&[50, 1_000]) },
            leaving,
            parting: choices.chance(70).then(|| choices.one(&LEAVINGS)),
        }
    }

    /// Makes room for output, mostly.
    pub(crate) fn make_room(&self, link: &mut dyn ClientSocket, choices: &mut Choices) {
        if choices.chance(70) {
            link.make_room(choices.size(self.room_bytes_max));
        }
    }

    /// Milliseconds until a client acts that has had nothing to do so many times: less and less often.
    pub(crate) fn pause_ms(&self, idle_times: u32, choices: &mut Choices) -> u64 {
        choices.ms(0..self.pause_ms_max) << idle_times.min(8)
    }
}

/// How a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    HalfClose,
    Close,
    Reset,
    /// It sends and takes nothing more, but keeps the connection.
    Silence,
}

impl Leaving {
    pub(crate) fn leave(self, link: &mut dyn ClientSocket) {
        match self {
            // What is on its way is still taken.
            Self::HalfClose => {
                link.end_input();
                link.make_room(usize::MAX / 2);
            }
            Self::Close => link.close(),
            Self::Reset => link.reset(),
            Self::Silence => {}
        }
    }
}

/// Bytes of output, and when they were that many, oldest first.
#[derive(Debug)]
pub(crate) struct Progress(Vec<(u64, usize)>);

impl Progress {
    pub(crate) fn new(now_ms: u64) -> Self {
        Self(vec![(now_ms, 0)])
    }

    pub(crate) fn note(&mut self, now_ms: u64, bytes: usize) {
        let total = self.0.last().map_or(0, |(_, total)| *total);
        self.0.push((now_ms, total + bytes));
    }

    /// Bytes of output that the connection took from `since_ms` on.
    pub(crate) fn since(&self, since_ms: u64) -> usize {
        let at = self.0.partition_point(|(ms, _)| *ms < since_ms);
        let before = self.0[..at].last().map_or(0, |(_, total)| *total);
        self.0.last().map_or(0, |(_, total)| *total) - before
    }

    /// When the output last moved.
    pub(crate) fn moved_ms(&self) -> u64 {
        self.0.last().map_or(0, |(ms, _)| *ms)
    }
}

/// Outcomes of requests without an answer, or with a part of one.
pub(crate) const CUT: [&str; 4] = ["client-gone", "timed-out", "stopped", "application-failed"];

const LEAVINGS: [Leaving; 4] = [Leaving::HalfClose, Leaving::Close, Leaving::Reset, Leaving::Silence];
