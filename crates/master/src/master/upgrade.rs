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
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use baton_report::Trouble;
use baton_report::log;
use baton_supervise::{self as supervise, describe_end};
use baton_sys::passing;
use baton_sys::process::Ended;
use serde_json::{Value, json};

use super::Master;
use crate::channel::{self, MESSAGE_BYTES_MAX};
use crate::control::Answer;
use crate::management::Requester;
use crate::notify;
use crate::phase::Phase;
use crate::replaceable_file::ReplaceableFile;
use crate::upgrade::message::{FromPredecessor, Socket, SocketUse, ToPredecessor, of_another_version};
use crate::upgrade::{LINGER, Successor, start_program};

impl Master {
    /// Starts the executable with this server's arguments.
    pub(super) fn upgrade(&mut self, requester: Requester, now: Instant) {
        let started = self.may_upgrade().map_err(Trouble::new).and_then(|()| self.start_successor());
        let (pid, channel) = match started {
            Ok(started) => started,
            Err(trouble) => return self.conclude_failed_upgrade(requester, trouble.to_string(), now),
        };
        log::notice(format_args!("process {pid} is to take the place of this one"));
        let left = self.pass_sockets(&channel);
        self.successor = Some(Successor {
            pid,
            serves: false,
            channel: Some(channel),
            deadline: Some(now + Successor::PATIENCE),
            failure: None,
            way: None,
            passports: 1,
            requester,
        });
        match left {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                self.give_up_successor(format!("the sockets cannot be handed over: {error}"));
            }
            // If the new server has ended already, the report of its end says why.
            _ => {}
        }
    }

    fn may_upgrade(&self) -> Result<(), String> {
        match (self.phase, &self.successor, &self.predecessor) {
            (_, Some(successor), _) => Err(format!(
                "process {} takes the place of this one already: end one of the two first",
                successor.pid
            )),
            (_, _, Some(predecessor)) => Err(format!(
                "process {}, whose place this one takes, is still there: end one of the two first",
                predecessor.pid
            )),
            (Phase::Starting, ..) => Err("the server is still starting".into()),
            (Phase::Withdrawn, ..) => Err("the workers have left: SIGHUP brings them back".into()),
            (Phase::Ending(_), ..) => Err("the server is ending".into()),
            (Phase::Serving, ..) if self.reload.is_some() => Err("a reload is under way".into()),
            (Phase::Serving, ..) => Ok(()),
        }
    }

    fn start_successor(&mut self) -> Result<(i32, OwnedFd), Trouble> {
        let names = self.pid_file.iter_mut().map(|file| &mut file.0);
        let mut names = names.chain(self.control.iter_mut().map(|door| &mut door.name));
        let started = names.try_for_each(ReplaceableFile::move_aside).and_then(|()| start_program());
        started.inspect_err(|_| self.move_back())
    }

    fn pass_sockets(&self, channel: &OwnedFd) -> io::Result<()> {
        let clients = self.listeners.iter().flat_map(|one| {
            let (wanted, sockets) = one.inherited_sockets();
            sockets.iter().map(move |socket| (SocketUse::Clients, wanted, one.managed, socket))
        });
        let configured = self.config.admin.listen.iter().flatten();
        let admin = configured
            .zip(&self.admin)
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
        let ticket_secrets = self.ticket_secrets_in_memory()?;
        let drained_origins = self.origins.drained();
        channel::send(channel, &FromPredecessor::Done { drained_origins }, &[ticket_secrets.as_fd()])
    }

    /// The new server has sent a message.
    pub(super) fn handle_successor(&mut self, now: Instant) {
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        while let Some(successor) = self.successor.as_mut()
            && let Some(channel) = &successor.channel
        {
            match channel::receive(channel, &mut buffer) {
                Ok(Some((ToPredecessor::Serving { passports }, descriptors))) => {
                    successor.passports = passports;
                    successor.way = descriptors.into_iter().next();
                    self.handle_successor_serving(now);
                }
                Ok(Some((ToPredecessor::Failed { error }, _))) => {
                    successor.failure.get_or_insert(error);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if !successor.serves && error.kind() == io::ErrorKind::InvalidData => {
                    let trouble = Trouble::of("read its message", &error);
                    self.give_up_successor(of_another_version(trouble).to_string());
                    break;
                }
                Ok(None) | Err(_) => successor.channel = None,
            }
        }
    }

    fn handle_successor_serving(&mut self, now: Instant) {
        let Some(successor) = &mut self.successor else { return };
        successor.serves = true;
        successor.deadline = None;
        let (pid, requester) = (successor.pid, successor.requester);
        notify::main_process(pid);
        log::notice(format_args!("process {pid} serves, too"));
        // SIGUSR2 asks for this step only; `baton ctl upgrade` asks for the old server's end, too.
        let whole = requester != Requester::Signal;
        self.answer_all(
            [requester],
            &Answer::Ok(json!({ "upgraded": true, "pid": pid, "draining": whole })),
            now,
        );
        if whole {
            self.begin_drain(now);
        }
    }

    /// The new server takes too long.
    pub(super) fn handle_successor_timeout(&mut self) {
        self.give_up_successor(format!(
            "it did not come to serve within {} s",
            Successor::PATIENCE.as_secs()
        ));
    }

    fn give_up_successor(&mut self, why: String) {
        if let Some(successor) = &mut self.successor {
            successor.deadline = None;
            successor.failure.get_or_insert(why);
            // Its workers end with it; `handle_successor_end` does the rest.
            supervise::kill(successor.pid);
        }
    }

    /// The new server has ended.
    pub(super) fn handle_successor_end(&mut self, ended: Ended, now: Instant) {
        self.handle_successor(now); // It may have said why.
        let Some(successor) = self.successor.take() else { return };
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
        self.answer_all([requester], &Answer::Error(text), now);
    }

    fn move_back(&mut self) {
        if let Some(file) = &mut self.pid_file {
            file.0.move_back();
        }
        if let Some(door) = &mut self.control {
            door.name.move_back();
        }
    }

    /// The old server has ended.
    pub(super) fn handle_predecessor_end(&mut self) {
        if let Some(predecessor) = self.predecessor.take() {
            log::notice(format_args!("process {} has ended: its place is taken", predecessor.pid));
            if self.phase == Phase::Serving {
                notify::ready();
            }
        }
    }

    /// Lets the workers finish and end. The sockets stay open: without another server, new clients wait in their queues,
    /// and none is refused.
    pub(super) fn withdraw(&mut self, now: Instant) {
        if self.phase != Phase::Serving {
            return log::error("the workers cannot leave: the server does not serve");
        }
        self.abort_reload("the workers leave".to_owned(), now);
        self.phase = Phase::Withdrawn;
        if !self.shares_sockets() {
            log::warning(
                "no other server takes the place of this one: clients wait until SIGHUP brings workers back",
            );
        }
        let (order, until) = self.drain_order(LINGER, now);
        let way = self.successor.as_ref().and_then(|successor| successor.way.as_ref());
        self.workers.retire(&order, &Vec::from_iter(way.map(AsFd::as_fd)), until);
    }

    /// Starts workers again, with the old configuration.
    pub(super) fn resume(&mut self, now: Instant) {
        log::notice("the workers come back");
        self.phase = Phase::Serving;
        self.workers.restart_now(now);
    }

    /// Whether another server has the same sockets. Then this one must not remove them, and its end is not the end of
    /// the service.
    pub(super) fn shares_sockets(&self) -> bool {
        self.successor.is_some() || self.predecessor.is_some()
    }

    /// Whether this server answers monitoring. Of two servers with the admin sockets, the old one does until the new one
    /// serves.
    pub(super) fn serves_admin(&self) -> bool {
        match (&self.successor, &self.predecessor) {
            (Some(successor), _) => !successor.serves,
            (None, Some(_)) => self.phase != Phase::Starting,
            (None, None) => true,
        }
    }

    /// Tells the service manager that this server ends, or which process is the main one from now on.
    pub(super) fn notify_end(&self) {
        match (&self.successor, &self.predecessor) {
            (Some(successor), _) => notify::main_process(successor.pid),
            (None, Some(predecessor)) => notify::main_process(predecessor.pid),
            (None, None) => notify::stopping(),
        }
    }

    /// Predecessor and successor, for the status.
    pub(super) fn other_servers(&self) -> (Value, Value) {
        let successor = self.successor.as_ref();
        let successor = successor.map(|one| json!({ "pid": one.pid, "serves": one.serves }));
        let predecessor = self.predecessor.as_ref().map(|one| json!({ "pid": one.pid }));
        (json!(successor), json!(predecessor))
    }
}
