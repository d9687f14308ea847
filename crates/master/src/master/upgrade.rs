//! From one server to the next without a gap: a new executable, or settings that need a restart.
//!
//! ```text
//!   old master                                         new master
//!   USR2: names step aside ──── starts ──────────────► reads the configuration
//!         all listening sockets ─────────────────────► takes those that it needs, binds the others
//!   both serve  ◄──────────────────────── Serving ──── its workers serve
//!   WINCH: workers finish and leave ──── clients ────► serves alone
//!     HUP: workers come back, as they were
//!   QUIT: ends ─────────────────────────────────────►  has no predecessor any more
//! ```
//!
//! Both servers have the same sockets. So no client is refused, whichever server ends first: the other one accepts the
//! clients in the queues. If the new server ends or never serves, the old one takes its names back and continues; if its
//! workers had left, it starts new ones. `baton ctl upgrade` does all steps at once.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Instant;

use baton_report::OperatorError;
use baton_report::log;
use baton_supervise::describe_end;
use baton_sys::passing;
use baton_sys::process::Ended;
use serde_json::json;

use super::Master;
use crate::channel;
use crate::control::Answer;
use crate::management::Requester;
use crate::notify;
use crate::phase::Phase;
use crate::upgrade::message::{FromPredecessor, Socket, SocketUse};
use crate::upgrade::{LINGER, start_program};

impl Master {
    /// Starts the executable with this server's arguments.
    pub(super) fn begin_upgrade(&mut self, requester: Requester, now: Instant) {
        let may = self.upgrade.may_begin(self.phase, self.reloads.is_under_way());
        let (pid, channel) = match may.map_err(OperatorError::new).and_then(|()| self.start_successor()) {
            Ok(started) => started,
            Err(trouble) => return self.conclude_failed_upgrade(requester, trouble.to_string(), now),
        };
        log::notice(format_args!("process {pid} is to take the place of this one"));
        let passed = self.pass_sockets(&channel);
        self.upgrade.begin(pid, channel, requester, now);
        match passed {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                self.upgrade.give_up(format!("the sockets cannot be handed over: {error}"));
            }
            // If the new server has ended already, the report of its end says why.
            _ => {}
        }
    }

    fn start_successor(&mut self) -> Result<(i32, OwnedFd), OperatorError> {
        let moved = self.pid_file.as_mut().map_or(Ok(()), |file| file.0.move_aside());
        let moved = moved.and_then(|()| self.endpoints.move_aside());
        moved.and_then(|()| start_program()).inspect_err(|_| self.move_back())
    }

    fn pass_sockets(&self, channel: &OwnedFd) -> io::Result<()> {
        let clients = self.listeners.iter().flat_map(|one| {
            let (wanted, sockets) = one.inherited_sockets();
            sockets.iter().map(move |socket| (SocketUse::Clients, wanted, one.managed, socket))
        });
        let configured = self.config.admin.listen.iter().flatten();
        let admin = configured
            .zip(self.endpoints.admin())
            .map(|(wanted, (_, socket))| (SocketUse::Admin, wanted, false, socket));
        let (sockets, descriptors): (Vec<_>, Vec<_>) = clients
            .chain(admin)
            .map(|(socket_use, wanted, managed, socket)| {
                (Socket { socket_use, address: wanted.into(), managed }, socket.as_fd())
            })
            .unzip();
        let parts =
            sockets.chunks(passing::DESCRIPTORS_MAX).zip(descriptors.chunks(passing::DESCRIPTORS_MAX));
        for (sockets, descriptors) in parts {
            channel::send(channel, &FromPredecessor::Sockets { sockets: sockets.to_vec() }, descriptors)?;
        }
        let ticket_secrets = self.ticket_keys.to_memory_file()?;
        let drained_origins = self.origins.drained();
        channel::send(channel, &FromPredecessor::Done { drained_origins }, &[ticket_secrets.as_fd()])
    }

    /// The new server has sent messages.
    pub(super) fn handle_successor(&mut self, now: Instant) {
        let Some(requester) = self.upgrade.handle_messages() else { return };
        let Some(pid) = self.upgrade.successor().map(|successor| successor.pid) else { return };
        notify::main_process(pid);
        log::notice(format_args!("process {pid} serves, too"));
        // SIGUSR2 asks for this step only; `baton ctl upgrade` asks for the old server's end, too.
        let is_whole = requester != Requester::Signal;
        let answer = Answer::Ok(json!({ "upgraded": true, "pid": pid, "draining": is_whole }));
        self.endpoints.answer([requester], &answer, now);
        if is_whole {
            self.begin_drain(now);
        }
    }

    /// The new server has ended.
    pub(super) fn handle_successor_end(&mut self, ended: Ended, now: Instant) {
        self.handle_successor(now); // It may have said why.
        let Some(successor) = self.upgrade.take_successor() else { return };
        self.move_back();
        self.listeners.restore_steering();
        let end = format!("process {} {}", successor.pid, describe_end(ended));
        match (successor.serves, successor.failure) {
            (false, why) => {
                let why = why.map_or(end.clone(), |why| format!("{end}: {why}"));
                self.conclude_failed_upgrade(successor.requester, why, now);
            }
            (true, _) => log::warning(format_args!("{end}, which was to take the place of this one")),
        }
        if self.phase == Phase::Withdrawn {
            self.resume(now);
        }
    }

    fn conclude_failed_upgrade(&mut self, requester: Requester, why: String, now: Instant) {
        let text = format!("not upgraded, this server goes on:\n{why}");
        log::error(&text);
        self.endpoints.answer([requester], &Answer::Error(text), now);
    }

    fn move_back(&mut self) {
        if let Some(file) = &mut self.pid_file {
            file.0.move_back();
        }
        self.endpoints.move_back();
    }

    /// Lets the workers finish and end. The sockets stay open: without another server, new clients wait in their queues,
    /// and none is refused.
    pub(super) fn withdraw(&mut self, now: Instant) {
        if self.phase != Phase::Serving {
            return log::error("the workers cannot leave: the server does not serve");
        }
        self.abort_reload("the workers leave".to_owned(), now);
        self.phase = Phase::Withdrawn;
        if !self.upgrade.shares_sockets() {
            log::warning(
                "no other server takes the place of this one: clients wait until SIGHUP brings workers back",
            );
        }
        let (order, until) = self.drain_order(LINGER, now);
        self.workers.retire(&order, &Vec::from_iter(self.upgrade.way()), until);
    }

    /// Starts workers again, with the old configuration.
    pub(super) fn resume(&mut self, now: Instant) {
        log::notice("the workers come back");
        self.phase = Phase::Serving;
        self.workers.restart_now(now);
    }
}
