//! What an application can do: offered with its first requests, learned from its answers.
//!
//! No application is asked on a connection of its own: programs that know only the role of a responder have died of
//! `FCGI_GET_VALUES`, and of a connection that brings no request. An offer is one environment variable to them. The first
//! one is of shared memory: only an application that has taken that up gets the sockets of clients, and only if the
//! user who listens at its socket is trusted with them.

use std::os::fd::AsFd;

use rustix::net::sockopt::socket_peercred;

use crate::connection::OfferedTransport;
use crate::settings::{TransportChoice, Trust};
use crate::{Application, Request};

/// Which transports are offered to an application.
#[derive(Debug)]
pub(crate) struct Negotiation {
    choice: TransportChoice,
    trust: Trust,
    /// The user who listens at the application's socket, where it matters and was seen to be no one trusted.
    distrusted: Option<u32>,
    passfd: Learned,
    shm: Learned,
}

/// What is known of one transport where `auto` chooses.
#[derive(Clone, Copy, Debug)]
struct Learned {
    /// The application has taken it up, and has not ceased to.
    is_used: bool,
    /// Offers in a row that were declined. A library declines a single one for what its response asks of the server.
    declined: u32,
    /// It is not offered before.
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
        Self { choice, trust, distrusted: None, passfd: Learned::NOTHING, shm: Learned::NOTHING }
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

    /// Why an application that could be passed clients' sockets is not.
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

    /// What is offered with a request, on a connection whose application is [trusted](Self::trusts) with clients' sockets
    /// or not.
    pub(crate) fn offered(&self, request: &Request, is_trusted: bool, now_ms: u64) -> OfferedTransport {
        let handed = request.handover.is_some() && is_trusted;
        match self.choice {
            TransportChoice::PassFd if handed => OfferedTransport::PassFd,
            TransportChoice::Auto if handed && self.shm.is_used && now_ms >= self.passfd.due_ms => {
                OfferedTransport::PassFd
            }
            TransportChoice::Shm => OfferedTransport::Shm,
            TransportChoice::Auto if now_ms >= self.shm.due_ms => OfferedTransport::Shm,
            _ => OfferedTransport::Nothing,
        }
    }

    /// An application has answered a request, by the transport that it was offered or in the ordinary way.
    pub(crate) fn note_answer(&mut self, offered: OfferedTransport, was_taken_up: bool, now_ms: u64) {
        match offered {
            OfferedTransport::Nothing => {}
            OfferedTransport::Shm => self.shm.note_answer(was_taken_up, now_ms),
            OfferedTransport::PassFd => self.passfd.note_answer(was_taken_up, now_ms),
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

    fn note_answer(&mut self, was_taken_up: bool, now_ms: u64) {
        if was_taken_up {
            *self = Self { is_used: true, ..Self::NOTHING };
        } else if now_ms >= self.due_ms {
            self.declined += 1;
            if self.declined >= DECLINED_MAX {
                self.pause(now_ms);
            }
        }
    }

    /// Offers nothing for a while, and then once.
    fn pause(&mut self, now_ms: u64) {
        self.is_used = false;
        self.declined = DECLINED_MAX - 1;
        self.due_ms = now_ms + self.pause_ms;
        self.pause_ms = (self.pause_ms * 2).min(PAUSE_MS_MAX);
    }
}

/// After so many offers in a row that were declined, an application presumably has no library.
const DECLINED_MAX: u32 = 8;

/// An application that was updated is found out after this time.
const PAUSE_MS_MIN: u64 = 60_000;

/// An application that always declines gets an offer this seldom in the end.
const PAUSE_MS_MAX: u64 = 3_600_000;
