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

mod aside;
mod message;
mod predecessor;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant};

use baton_report::Trouble;
use baton_report::log;
use baton_supervise::describe_end;
use baton_sys::passing;
use baton_sys::process::{self, Ended};
use rustix::process::Signal;
use serde_json::{Value, json};

pub(super) use aside::{Name, PidFile};
pub(super) use predecessor::{Estate, Predecessor};

use self::message::{Bequest, CHANNEL, Socket, Visitors, Word};
use super::channel::{self, MESSAGE_BYTES_MAX, Order};
use super::control::Answer;
use super::doors::Asker;
use super::master::Master;
use super::notify;
use super::phase::Phase;

/// The server that is to take this one's place.
#[derive(Debug)]
pub(super) struct Successor {
    /// Its master process.
    pub(super) pid: i32,
    /// Whether it has come to serve.
    pub(super) serves: bool,
    channel: Option<OwnedFd>,
    /// When this server loses patience, as long as the other one does not serve.
    deadline: Option<Instant>,
    /// Why it cannot serve, in its own words or in ours.
    failure: Option<String>,
    /// Who wants to know what came of it.
    asker: Asker,
}

impl Successor {
    /// For reading the configuration, opening folders and starting workers.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// When [`Master::handle_successor_timeout`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Where it speaks, until it has closed its end.
    pub(super) fn channel(&self) -> Option<BorrowedFd<'_>> {
        self.channel.as_ref().map(AsFd::as_fd)
    }
}

/// What a worker that leaves while another server serves grants connections on which nothing is under way: their next
/// request is still answered, so that no client that is about to send one finds the connection closed.
pub(super) const LINGER: Duration = Duration::from_secs(1);

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
        let started = names.try_for_each(Name::step_aside).and_then(|()| start_program());
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
            let _ = process::kill(successor.pid, Signal::KILL.as_raw());
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
        let until = now + LINGER + Duration::from_millis(limit_ms) + super::phase::GRACE;
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

/// Starts the program that this process was started as, with the same arguments, by the same name: what is there by
/// now is what runs then. Returns its process and our end of the channel to it.
fn start_program() -> Result<(i32, OwnedFd), Trouble> {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    let started = passing::message_pair().and_then(|(ours, theirs)| {
        // A successor that does not read must not stop this server.
        rustix::io::ioctl_fionbio(&ours, true)?;
        let mut command = Command::new(&name);
        command.args(arguments);
        baton_sys::bequest::bequeath(&mut command, CHANNEL, theirs);
        // It is awaited with all other children.
        let pid = i32::try_from(command.spawn()?.id()).map_err(io::Error::other)?;
        Ok((pid, ours))
    });
    started.map_err(|error| {
        let trouble = Trouble::of(format_args!("start {}", name.display()), &error);
        match error.kind() {
            io::ErrorKind::NotFound => trouble
                .cause("the server was started by that name, and nothing has it any more")
                .remedy("put the new executable in the place of the old one"),
            io::ErrorKind::PermissionDenied => trouble.cause("the file there is not executable"),
            _ => trouble,
        }
    })
}
