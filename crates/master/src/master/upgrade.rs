//! From one server to the next without a gap: a new executable, or settings that need a restart.
//!
//! ```text
//!   old master                                         new master
//!   USR2: names step aside ──── starts ──────────────► reads the configuration
//!         all listening sockets ─────────────────────► takes those that it needs, binds the others
//!   both serve  ◄──────────────────────── Serving ──── its workers serve
//!   WINCH: workers finish and leave                    serves alone
//!     HUP: workers come back, as they were
//!   QUIT: ends ─────────────────────────────────────►  has no predecessor any more
//! ```
//!
//! The sockets are the very same in both, so that no client is refused whoever ends first: what waits in a socket's
//! queue is served by whoever is left. If the new server does not come to serve, or ends, the old one takes its names
//! back and goes on; if its workers had left by then, it starts new ones. `baton ctl upgrade` does all of it at once.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use baton_report::Trouble;
use baton_report::log;
use baton_supervise::{self as supervise, describe_end};
use baton_sys::passing;
use baton_sys::process::Ended;
use serde_json::{Value, json};

use super::Master;
use crate::channel::{self, MESSAGE_BYTES_MAX, Order};
use crate::control::Answer;
use crate::management::Asker;
use crate::notify;
use crate::phase::{GRACE, Phase};
use crate::replaceable_file::ReplaceableFile;
use crate::upgrade::message::{Bequest, Socket, Visitors, Word};
use crate::upgrade::{LINGER, Successor, start_program};

impl Master {
    /// Starts the executable anew, as this server was started.
    pub(super) fn upgrade(&mut self, asker: Asker, now: Instant) {
        let started = self.may_upgrade().map_err(Trouble::new).and_then(|()| self.start_successor());
        let (pid, channel) = match started {
            Ok(started) => started,
            Err(trouble) => return self.conclude_failed_upgrade(asker, trouble.to_string(), now),
        };
        log::notice(format_args!("process {pid} is to take the place of this one"));
        let left = self.leave_estate(&channel);
        self.successor = Some(Successor {
            pid,
            serves: false,
            channel: Some(channel),
            deadline: Some(now + Successor::PATIENCE),
            failure: None,
            asker,
        });
        match left {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                self.give_up_successor(format!("the sockets cannot be handed over: {error}"));
            }
            // If it has ended already, its end will say why.
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
        let started = names.try_for_each(ReplaceableFile::step_aside).and_then(|()| start_program());
        started.inspect_err(|_| self.step_back())
    }

    fn leave_estate(&self, channel: &OwnedFd) -> io::Result<()> {
        let clients = self.listeners.iter().flat_map(|one| {
            let (wanted, sockets) = one.estate();
            sockets.iter().map(move |socket| (Visitors::Clients, wanted, one.managed, socket))
        });
        let configured = self.config.admin.listen.iter().flatten();
        let admin =
            configured.zip(&self.admin).map(|(wanted, (_, socket))| (Visitors::Admin, wanted, false, socket));
        let (sockets, descriptors): (Vec<_>, Vec<_>) = clients
            .chain(admin)
            .map(|(visitors, wanted, managed, socket)| {
                (Socket { visitors, address: wanted.into(), managed }, socket.as_fd())
            })
            .unzip();
        let parts =
            sockets.chunks(passing::DESCRIPTORS_MAX).zip(descriptors.chunks(passing::DESCRIPTORS_MAX));
        for (sockets, descriptors) in parts {
            channel::send(channel, &Bequest::Sockets { sockets: sockets.to_vec() }, descriptors)?;
        }
        channel::send(channel, &Bequest::Done, &[])
    }

    /// The new server has something to say.
    pub(super) fn handle_successor(&mut self, now: Instant) {
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        while let Some(successor) = self.successor.as_mut()
            && let Some(channel) = &successor.channel
        {
            match channel::receive(channel, &mut buffer) {
                Ok(Some((Word::Serving, _))) => self.handle_successor_serving(now),
                Ok(Some((Word::Failed { error }, _))) => drop(successor.failure.get_or_insert(error)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Ok(None) | Err(_) => successor.channel = None,
            }
        }
    }

    fn handle_successor_serving(&mut self, now: Instant) {
        let Some(successor) = &mut self.successor else { return };
        successor.serves = true;
        successor.deadline = None;
        let (pid, asker) = (successor.pid, successor.asker);
        notify::main_process(pid);
        log::notice(format_args!("process {pid} serves, too"));
        // A signal asks for this step only; whoever asks in words wants the whole.
        let whole = asker != Asker::Signal;
        self.answer_all(
            [asker],
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
            // Its workers follow it, and its end concludes the matter.
            supervise::kill(successor.pid);
        }
    }

    /// The new server has ended.
    pub(super) fn handle_successor_end(&mut self, ended: Ended, now: Instant) {
        self.handle_successor(now); // Its last words.
        let Some(successor) = self.successor.take() else { return };
        self.step_back();
        let end = format!("process {} {}", successor.pid, describe_end(ended));
        match (successor.serves, successor.failure) {
            (false, why) => {
                let why = why.map_or(end.clone(), |why| format!("{end}: {why}"));
                self.conclude_failed_upgrade(successor.asker, why, now);
            }
            (true, _) => log::warning(format_args!("{end}, which was to take the place of this one")),
        }
        if self.phase == Phase::Withdrawn {
            self.resume(now);
        }
    }

    fn conclude_failed_upgrade(&mut self, asker: Asker, why: String, now: Instant) {
        let text = format!("not upgraded, this server goes on:\n{why}");
        log::error(&text);
        self.answer_all([asker], &Answer::Error(text), now);
    }

    fn step_back(&mut self) {
        if let Some(file) = &mut self.pid_file {
            file.0.step_back();
        }
        if let Some(door) = &mut self.control {
            door.name.step_back();
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

    /// Lets the workers finish and leave. The sockets stay open: who comes meanwhile waits, if no other server is
    /// there, and nobody is refused.
    pub(super) fn withdraw(&mut self, now: Instant) {
        if self.phase != Phase::Serving {
            return log::error("the workers cannot leave: the server does not serve");
        }
        self.give_up("the workers leave".to_owned(), now);
        self.phase = Phase::Withdrawn;
        if !self.is_relieved() {
            log::warning(
                "no other server takes the place of this one: clients wait until SIGHUP brings workers back",
            );
        }
        let limit_ms = self.config.server.drain_timeout_ms;
        let until = now + LINGER + Duration::from_millis(limit_ms) + GRACE;
        self.crew.dismiss(&Order::Drain { linger_ms: LINGER.as_millis() as u64, limit_ms }, until);
    }

    /// Brings workers back, with the configuration as it was.
    pub(super) fn resume(&mut self, now: Instant) {
        log::notice("the workers come back");
        self.phase = Phase::Serving;
        self.crew.forgive(now);
    }

    /// Whether another server has the same sockets: then they are not this one's to remove, nor is the service over
    /// when this one ends.
    pub(super) fn is_relieved(&self) -> bool {
        self.successor.is_some() || self.predecessor.is_some()
    }

    /// Whether monitoring is this server's affair, of two that have the sockets for it: it is the old one's until the
    /// new one serves.
    pub(super) fn is_monitored(&self) -> bool {
        match (&self.successor, &self.predecessor) {
            (Some(successor), _) => !successor.serves,
            (None, Some(_)) => self.phase != Phase::Starting,
            (None, None) => true,
        }
    }

    /// Tells the service manager that this server ends, or who goes on in its place.
    pub(super) fn announce_end(&self) {
        match (&self.successor, &self.predecessor) {
            (Some(successor), _) => notify::main_process(successor.pid),
            (None, Some(predecessor)) => notify::main_process(predecessor.pid),
            (None, None) => notify::stopping(),
        }
    }

    /// The two for the status.
    pub(super) fn relatives(&self) -> (Value, Value) {
        let successor = self.successor.as_ref();
        let successor = successor.map(|one| json!({ "pid": one.pid, "serves": one.serves }));
        let predecessor = self.predecessor.as_ref().map(|one| json!({ "pid": one.pid }));
        (json!(successor), json!(predecessor))
    }
}
