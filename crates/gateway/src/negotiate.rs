//! What an application can do: asked on a connection of its own, once in a while.
//!
//! No request waits for the answer: until it is known, answers travel in the ordinary way.

use baton_sys::progress;

use crate::connection::{Connection, Offered};
use crate::settings::TransportChoice;
use crate::{Application, Request};

/// What is known of an application, and when it is asked again.
#[derive(Debug)]
pub(crate) struct Negotiation {
    choice: TransportChoice,
    can: Abilities,
    is_under_way: bool,
    /// `u64::MAX`: it is never asked.
    due_ms: u64,
    /// How long nothing is asked after silence.
    silence_ms: u64,
    began_ms: u64,
    /// Connections that the application serves at a time, as it says; 0: it has not said.
    connections: usize,
    /// Since when it has been due without being begun.
    wanted_since_ms: Option<u64>,
}

/// What an application says it can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Abilities {
    pub(crate) passfd: bool,
    pub(crate) shm: bool,
}

/// The variables that are asked for.
pub(crate) const VALUES: [&str; 4] = [CONNECTIONS, "FCGI_MAX_REQS", "FCGI_MPXS_CONNS", TRANSPORTS];

/// The variable that says how many processes there are, where it says more than 1: libraries speak for one of them only.
const CONNECTIONS: &str = "FCGI_MAX_CONNS";

/// The variable that lists the transports.
const TRANSPORTS: &str = "BATON_TRANSPORTS";

impl Negotiation {
    pub(crate) fn new(application: &Application) -> Self {
        let choice = match application.settings().transport {
            TransportChoice::Auto if !application.can_share() => TransportChoice::Plain,
            choice => choice,
        };
        let due_ms = if choice == TransportChoice::Auto { 0 } else { u64::MAX };
        Self {
            choice,
            can: Abilities::default(),
            is_under_way: false,
            due_ms,
            silence_ms: ASK_AGAIN_MS,
            began_ms: 0,
            connections: 0,
            wanted_since_ms: None,
        }
    }

    /// What is offered with a request.
    pub(crate) fn offered(&self, request: &Request) -> Offered {
        let handed = request.handover.is_some();
        match self.choice {
            TransportChoice::PassFd if handed => Offered::PassFd,
            TransportChoice::Auto if handed && self.can.passfd => Offered::PassFd,
            TransportChoice::Shm => Offered::Shm,
            TransportChoice::Auto if self.can.shm => Offered::Shm,
            _ => Offered::Nothing,
        }
    }

    /// Whether it is time to ask.
    pub(crate) fn is_due(&mut self, now_ms: u64) -> bool {
        let due = !self.is_under_way && now_ms >= self.due_ms;
        if due {
            self.wanted_since_ms.get_or_insert(now_ms);
        }
        due
    }

    /// Whether asking has been put off for so long, because requests were waiting, that it comes first now.
    pub(crate) fn is_overdue(&mut self, now_ms: u64) -> bool {
        self.is_due(now_ms) && self.wanted_since_ms.is_some_and(|since| now_ms >= since + PUT_OFF_MS_MAX)
    }

    /// It is asked now. Until when an answer is waited for.
    pub(crate) fn begin(&mut self, now_ms: u64) -> u64 {
        self.is_under_way = true;
        self.wanted_since_ms = None;
        self.began_ms = now_ms;
        self.connections = 0;
        now_ms + SILENCE_MS
    }

    /// Takes a pair of the answer. Whether it was the one that matters.
    pub(crate) fn handle_value(&mut self, name: &[u8], value: &[u8]) -> bool {
        if name == CONNECTIONS.as_bytes() {
            self.connections =
                std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        }
        if name != TRANSPORTS.as_bytes() {
            return false;
        }
        let lists =
            |word: &str| value.split(|byte| *byte == b',').any(|one| one.trim_ascii() == word.as_bytes());
        self.can = Abilities { passfd: lists("passfd"), shm: lists("shm") };
        true
    }

    /// Nothing was said in the time allowed: until when the answer is waited for still. An application that has not
    /// even read the question is busy, and holds nobody up by it.
    pub(crate) fn patience(&self, connection: &Connection, now_ms: u64) -> Option<u64> {
        let unread = progress::unread_by_peer(&connection.socket).is_ok_and(|bytes| bytes > 0);
        (unread && now_ms < self.began_ms + BUSY_MS_MAX).then_some(now_ms + SILENCE_MS)
    }

    /// The asking is over. `answered`: something was said; `knows`: about transports.
    pub(crate) fn end(&mut self, answered: bool, knows: bool, now_ms: u64) {
        self.is_under_way = false;
        if !knows {
            self.can = Abilities::default();
        }
        if answered {
            self.silence_ms = ASK_AGAIN_MS;
            self.due_ms = now_ms + ASK_AGAIN_MS;
        } else {
            self.due_ms = now_ms + self.silence_ms;
            self.silence_ms = (self.silence_ms * 2).min(SILENT_MS_MAX);
        }
    }

    /// Connections that the application said last it serves at a time.
    pub(crate) fn connections(&self) -> usize {
        self.connections
    }

    /// In one word, for reports.
    pub(crate) fn label(&self) -> &'static str {
        match (self.choice, self.can) {
            (TransportChoice::PassFd, _) | (TransportChoice::Auto, Abilities { passfd: true, .. }) => {
                "passfd"
            }
            (TransportChoice::Shm, _) | (TransportChoice::Auto, Abilities { shm: true, .. }) => "shm",
            _ => "plain",
        }
    }
}

/// How long an answer is waited for, and then for more of it that does not come.
const SILENCE_MS: u64 = 1_000;

/// How long more is waited for once something was said, though not of transports: whoever knows of them says so at
/// once, and as long as it is waited for, a process of the application is held.
pub(crate) const MORE_MS: u64 = 20;

/// How long asking waits for an application that has no time to accept the connection.
const BUSY_MS_MAX: u64 = 30_000;

/// How long requests that wait come before the asking.
const PUT_OFF_MS_MAX: u64 = 1_000;

/// An application that was updated is found out after this time.
const ASK_AGAIN_MS: u64 = 60_000;

/// An application that never answers is asked this seldom in the end: each time holds one of its processes for a second.
const SILENT_MS_MAX: u64 = 3_600_000;
