//! Which transports an application supports: offered with its first requests, learned from its answers.
//!
//! The gateway never asks on a separate connection: programs that know only the role of a responder have died of
//! `FCGI_GET_VALUES`, and of a connection without a request. To them an offer is one environment variable. The first offer
//! is of shared memory. Only an application that has taken it up gets clients' sockets, and only if the user that listens
//! on its socket is trusted with them. Where one answer after the other is compressed by the server, nearly all come through
//! shared memory: a socket that is declined costs a message, and the files that follow on it cost more.

use std::os::fd::AsFd;

use baton_fcgi::Declined;
use rustix::net::sockopt::socket_peercred;

use crate::codec::{OfferOutcome, OfferedTransport};
use crate::settings::{TransportChoice, Trust};
use crate::{Application, Request};

/// Which transports are offered to an application.
#[derive(Debug)]
pub(crate) struct Negotiation {
    choice: TransportChoice,
    trust: Trust,
    /// The user that listens on the application's socket, if it is not trusted.
    distrusted: Option<u32>,
    passfd: Learned,
    shm: Learned,
    /// Answers since the last one on a client's socket, if each of them was compressed or not offered one. It turns around
    /// at [`COMPRESSED_MAX`].
    compressed: u32,
}

/// What was learned about one transport where `auto` chooses.
#[derive(Clone, Copy, Debug)]
struct Learned {
    /// The application has taken it up, and has not stopped to.
    is_used: bool,
    /// Consecutive offers declined. A library may decline a single one if its response needs the server.
    declined: u32,
    /// When it may be offered again.
    due_ms: u64,
    pause_ms: u64,
}

impl Negotiation {
    pub(crate) fn new(application: &Application) -> Self {
        let choice = match application.settings().transport {
            TransportChoice::Auto if !application.can_share() => TransportChoice::Plain,
            choice => choice,
        };
        let trust = application.settings().passfd_trust.clone();
        Self {
            choice,
            trust,
            distrusted: None,
            passfd: Learned::NOTHING,
            shm: Learned::NOTHING,
            compressed: 0,
        }
    }

    /// Whether the application at the other end of a new connection may be passed clients' sockets.
    pub(crate) fn trusts(&mut self, socket: impl AsFd) -> bool {
        match (self.choice, &self.trust) {
            (TransportChoice::PassFd, _) | (TransportChoice::Auto, Trust::All) => true,
            (TransportChoice::Auto, Trust::Users(users)) if !users.is_empty() => {
                let listens = socket_peercred(socket).ok().map(|peer| peer.uid.as_raw());
                self.distrusted = listens.filter(|user| !users.contains(user));
                listens.is_some() && self.distrusted.is_none()
            }
            _ => false,
        }
    }

    /// Why an application that supports clients' sockets does not get them.
    pub(crate) fn withheld(&self) -> Option<String> {
        let Trust::Users(users) = &self.trust else { return None };
        if self.choice != TransportChoice::Auto || !self.shm.is_used {
            return None;
        }
        if users.is_empty() {
            return Some("Baton has not started it, and `passfd_users` is empty".into());
        }
        self.distrusted.map(|user| format!("`passfd_users` does not name user {user}, who listens there"))
    }

    /// What to offer with a request. `is_trusted`: whether the application is [trusted](Self::trusts) with clients' sockets.
    pub(crate) fn offered(&self, request: &Request, is_trusted: bool, now_ms: u64) -> OfferedTransport {
        let handed = request.pass.is_some() && is_trusted;
        match self.choice {
            TransportChoice::PassFd if handed => OfferedTransport::PassFd,
            TransportChoice::Auto
                if handed && self.shm.is_used && self.is_worth_a_socket() && now_ms >= self.passfd.due_ms =>
            {
                OfferedTransport::PassFd
            }
            // A client whose socket cannot be passed, because it speaks HTTP/2 or is behind TLS, has the next best.
            TransportChoice::PassFd | TransportChoice::Shm => OfferedTransport::Shm,
            TransportChoice::Auto if now_ms >= self.shm.due_ms => OfferedTransport::Shm,
            _ => OfferedTransport::Nothing,
        }
    }

    /// Whether the next answer may be one that is not compressed: after many that were, one of some is tried.
    fn is_worth_a_socket(&self) -> bool {
        self.compressed <= COMPRESSED_MAX
    }

    /// An application has answered a request, with the offered transport or without it.
    pub(crate) fn note_answer(&mut self, offered: OfferedTransport, outcome: OfferOutcome, now_ms: u64) {
        match (offered, outcome) {
            (OfferedTransport::PassFd, OfferOutcome::Declined(Declined::Coded)) => self.compressed += 1,
            (OfferedTransport::PassFd, _) => self.compressed = 0,
            (OfferedTransport::Shm, _) if !self.is_worth_a_socket() => self.compressed += 1,
            _ => {}
        }
        if self.compressed == 2 * COMPRESSED_MAX {
            self.compressed = COMPRESSED_MAX;
        }
        match offered {
            OfferedTransport::Nothing => {}
            OfferedTransport::Shm => self.shm.note_answer(outcome, now_ms),
            OfferedTransport::PassFd => self.passfd.note_answer(outcome, now_ms),
        }
    }

    /// In one word, for reports.
    pub(crate) fn label(&self) -> &'static str {
        match self.choice {
            TransportChoice::PassFd => "passfd",
            TransportChoice::Shm => "shm",
            TransportChoice::Auto if self.passfd.is_used => "passfd",
            TransportChoice::Auto if self.shm.is_used => "shm",
            TransportChoice::Auto | TransportChoice::Plain => "plain",
        }
    }
}

impl Learned {
    const NOTHING: Self = Self { is_used: false, declined: 0, due_ms: 0, pause_ms: PAUSE_MS_MIN };

    fn note_answer(&mut self, outcome: OfferOutcome, now_ms: u64) {
        if outcome != OfferOutcome::Ignored {
            *self = Self { is_used: true, ..Self::NOTHING };
        } else if now_ms >= self.due_ms {
            self.declined += 1;
            if self.declined >= DECLINED_MAX {
                self.pause(now_ms);
            }
        }
    }

    /// Stops offering for a while, then tries once.
    fn pause(&mut self, now_ms: u64) {
        self.is_used = false;
        self.declined = DECLINED_MAX - 1;
        self.due_ms = now_ms + self.pause_ms;
        self.pause_ms = (self.pause_ms * 2).min(PAUSE_MS_MAX);
    }
}

/// After so many declined offers in a row, the application presumably has no library.
const DECLINED_MAX: u32 = 8;

/// After so many answers in a row that were compressed, one of so many is offered the client's socket.
const COMPRESSED_MAX: u32 = 8;

/// First pause between offers: an updated application is noticed after this time.
const PAUSE_MS_MIN: u64 = 60_000;

/// Longest pause between offers to an application that always declines.
const PAUSE_MS_MAX: u64 = 3_600_000;
