//! The two servers of an upgrade: each one's view of the other, and their messages.

pub(crate) mod message;
mod predecessor;
mod successor;

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Instant;

use baton_passport::VERSION_MAX;
use baton_report::{OperatorError, log};
use baton_supervise as supervise;
use rustix::event::PollFlags;
use serde_json::{Value, json};

pub(crate) use self::predecessor::{InheritedSockets, Predecessor};
pub(crate) use self::successor::{LINGER, Successor, start_program};

use self::message::{ToPredecessor, of_another_version};
use crate::channel::{self, MESSAGE_BYTES_MAX};
use crate::management::Requester;
use crate::notify;
use crate::phase::Phase;
use crate::poll::{Source, WaitList};

/// The servers before and after this one, while one takes the place of another.
#[derive(Debug)]
pub(crate) struct Upgrade {
    predecessor: Option<Predecessor>,
    successor: Option<Successor>,
}

impl Upgrade {
    /// This server takes the place of another one, or of none.
    pub(crate) fn new(predecessor: Option<Predecessor>) -> Self {
        Self { predecessor, successor: None }
    }

    /// Whether another server may begin to take the place of this one.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn may_begin(&self, phase: Phase, reloads: bool) -> Result<(), String> {
        match (phase, &self.successor, &self.predecessor) {
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
            (Phase::Serving, ..) if reloads => Err("a reload is under way".into()),
            (Phase::Serving, ..) => Ok(()),
        }
    }

    /// A process has been started to take the place of this one.
    pub(crate) fn begin(&mut self, pid: i32, channel: OwnedFd, requester: Requester, now: Instant) {
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
    }

    /// The server that takes the place of this one.
    pub(crate) fn successor(&self) -> Option<&Successor> {
        self.successor.as_ref()
    }

    /// Whether the successor serves.
    pub(crate) fn successor_serves(&self) -> bool {
        self.successor.as_ref().is_some_and(|successor| successor.serves)
    }

    /// The way for connections with which the successor goes on.
    pub(crate) fn way(&self) -> Option<BorrowedFd<'_>> {
        Some(self.successor.as_ref()?.way.as_ref()?.as_fd())
    }

    /// The highest version of passports that those read who go on with connections: without a successor, other workers of
    /// this server.
    pub(crate) fn passports(&self) -> u32 {
        self.successor.as_ref().map_or(VERSION_MAX, |successor| successor.passports)
    }

    /// Adds what to wait for.
    pub(crate) fn poll<'a>(&'a self, list: &mut WaitList<'a>) {
        if let Some(channel) = self.successor.as_ref().and_then(|successor| successor.channel.as_ref()) {
            list.add(Source::Successor, channel.as_fd(), PollFlags::IN);
        }
        if let Some(predecessor) = &self.predecessor {
            list.add(Source::Predecessor, predecessor.channel(), PollFlags::IN);
        }
    }

    /// When [`advance`](Self::advance) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.successor.as_ref().and_then(|successor| successor.deadline)
    }

    /// Gives up a successor that takes too long.
    pub(crate) fn advance(&mut self, now: Instant) {
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.give_up(format!("it did not come to serve within {} s", Successor::PATIENCE.as_secs()));
        }
    }

    /// The successor is of no use: kills it. The rest follows its end.
    pub(crate) fn give_up(&mut self, why: String) {
        if let Some(successor) = &mut self.successor {
            successor.deadline = None;
            successor.failure.get_or_insert(why);
            // Its workers end with it.
            supervise::kill(successor.pid);
        }
    }

    /// The successor has sent messages. Returns who has asked for it if it has begun to serve.
    pub(crate) fn handle_messages(&mut self) -> Option<Requester> {
        let mut served = None;
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        while let Some(successor) = self.successor.as_mut()
            && let Some(channel) = &successor.channel
        {
            match channel::receive(channel, &mut buffer) {
                Ok(Some((ToPredecessor::Serving { passports }, descriptors))) => {
                    successor.passports = passports;
                    successor.way = descriptors.into_iter().next();
                    successor.serves = true;
                    successor.deadline = None;
                    served = Some(successor.requester);
                }
                Ok(Some((ToPredecessor::Failed { error }, _))) => {
                    successor.failure.get_or_insert(error);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if !successor.serves && error.kind() == io::ErrorKind::InvalidData => {
                    let trouble = OperatorError::of("read its message", &error);
                    self.give_up(of_another_version(trouble).to_string());
                    break;
                }
                Ok(None) | Err(_) => successor.channel = None,
            }
        }
        served
    }

    /// The successor has ended.
    pub(crate) fn take_successor(&mut self) -> Option<Successor> {
        self.successor.take()
    }

    /// The predecessor has ended. `serves`: this server does.
    pub(crate) fn handle_predecessor_end(&mut self, serves: bool) {
        if let Some(predecessor) = self.predecessor.take() {
            log::notice(format_args!("process {} has ended: its place is taken", predecessor.pid));
            if serves {
                notify::ready();
            }
        }
    }

    /// Tells the predecessor, or else the service manager, that this server serves.
    pub(crate) fn tell_serving(&mut self) {
        match &mut self.predecessor {
            // The service manager listens to the main process, which is still the predecessor.
            Some(predecessor) => predecessor.tell_serving(),
            None => notify::ready(),
        }
    }

    /// Tells the predecessor that this server cannot serve.
    pub(crate) fn tell_failed(&self, why: &str) {
        if let Some(predecessor) = &self.predecessor {
            predecessor.tell_failed(why);
        }
    }

    /// Tells the service manager that this server ends, or which process is the main one from now on.
    pub(crate) fn tell_end(&self) {
        match (&self.successor, &self.predecessor) {
            (Some(successor), _) => notify::main_process(successor.pid),
            (None, Some(predecessor)) => notify::main_process(predecessor.pid),
            (None, None) => notify::stopping(),
        }
    }

    /// Whether another server has the same sockets. Then this one must not remove them, and its end is not the end of
    /// the service.
    pub(crate) fn shares_sockets(&self) -> bool {
        self.successor.is_some() || self.predecessor.is_some()
    }

    /// Whether this server answers monitoring. Of two servers with the admin sockets, the old one does until the new one
    /// serves.
    pub(crate) fn serves_admin(&self, phase: Phase) -> bool {
        match (&self.successor, &self.predecessor) {
            (Some(successor), _) => !successor.serves,
            (None, Some(_)) => phase != Phase::Starting,
            (None, None) => true,
        }
    }

    /// Where clients of the predecessor arrive, for a worker.
    pub(crate) fn into_arrivals(self) -> Option<OwnedFd> {
        self.predecessor.and_then(|predecessor| predecessor.arrivals)
    }

    /// Predecessor and successor, for the status.
    pub(crate) fn report(&self) -> (Value, Value) {
        let successor = self.successor.as_ref();
        let successor = successor.map(|one| json!({ "pid": one.pid, "serves": one.serves }));
        let predecessor = self.predecessor.as_ref().map(|one| json!({ "pid": one.pid }));
        (json!(successor), json!(predecessor))
    }
}

#[cfg(test)]
mod tests {
    use baton_sys::passing;

    use super::*;

    fn begun(now: Instant) -> (Upgrade, OwnedFd) {
        let (ours, theirs) = passing::message_pair().unwrap();
        rustix::io::ioctl_fionbio(&ours, true).unwrap();
        let mut upgrade = Upgrade::new(None);
        // No process has such a high number.
        upgrade.begin(i32::MAX, ours, Requester::Control(1), now);
        (upgrade, theirs)
    }

    #[test]
    fn a_successor_that_serves_answers_monitoring_and_gets_the_clients() {
        let (mut upgrade, theirs) = begun(Instant::now());
        assert!(upgrade.shares_sockets() && upgrade.serves_admin(Phase::Serving));
        assert!(upgrade.may_begin(Phase::Serving, false).is_err(), "one at a time");
        assert_eq!(upgrade.handle_messages(), None);
        let (way, _) = passing::message_pair().unwrap();
        channel::send(&theirs, &ToPredecessor::Serving { passports: 7 }, &[way.as_fd()]).unwrap();
        assert_eq!(upgrade.handle_messages(), Some(Requester::Control(1)));
        assert!(upgrade.successor_serves() && !upgrade.serves_admin(Phase::Serving));
        assert_eq!((upgrade.passports(), upgrade.way().is_some(), upgrade.deadline()), (7, true, None));
    }

    #[test]
    fn a_successor_that_is_late_is_given_up_for_its_own_reason() {
        for says_why in [false, true] {
            let now = Instant::now();
            let (mut upgrade, theirs) = begun(now);
            if says_why {
                channel::send(&theirs, &ToPredecessor::Failed { error: "no".into() }, &[]).unwrap();
                assert_eq!(upgrade.handle_messages(), None);
            }
            upgrade.advance(now);
            assert!(upgrade.deadline().is_some(), "it has its time");
            upgrade.advance(now + Successor::PATIENCE);
            assert_eq!(upgrade.deadline(), None);
            let failure = upgrade.take_successor().unwrap().failure.unwrap();
            assert_eq!(failure == "no", says_why, "{failure}");
            assert!(!upgrade.shares_sockets());
        }
    }
}
