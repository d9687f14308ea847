//! The way to the handoff agent of this host, which moves connections between the hosts of a cluster: see [`baton_cluster`].
//!
//! A front-end's worker gives clients away with their requests. A node's worker says what becomes of the requests of the clients
//! that it was given. It gathers that for some milliseconds: each report wakes the agent, which takes CPU time from clients.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_cluster::local::{FromWorker, REPORT_FLOWS_MAX, Report};
use baton_passport::Passport;
use baton_sys::passing;

/// The way to the agent, for all loops of a process.
#[derive(Debug)]
pub struct AgentLink {
    socket: Arc<OwnedFd>,
    /// What the agent was not told yet.
    report: Mutex<Report>,
    /// When that is due; [`NEVER`]: there is nothing to tell.
    due_ms: AtomicU64,
}

/// What has become of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowEvent {
    /// It has arrived in this process.
    Taken,
    /// A further request has begun.
    Begun,
    /// A request has ended.
    Ended,
    /// The connection is closed.
    Gone,
}

impl AgentLink {
    /// `socket` keeps message boundaries.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn new(socket: Arc<OwnedFd>) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self { socket, report: Mutex::default(), due_ms: AtomicU64::new(NEVER) })
    }

    /// Gives a client to a node, with its request. False: it stays.
    pub fn hand_off(&self, node: &str, passport: Passport, socket: impl AsFd) -> bool {
        self.send(&FromWorker::Handoff { node: node.to_owned(), passport: Box::new(passport) }, socket)
    }

    /// Gives a client back to the front-end from which it came. False: it stays.
    pub fn give_back(&self, flow: u64, passport: Passport, socket: impl AsFd, now_ms: u64) -> bool {
        // The agent must know of the requests before.
        self.flush(now_ms) && self.send(&FromWorker::Return { flow, passport: Box::new(passport) }, socket)
    }

    fn send(&self, message: &FromWorker, socket: impl AsFd) -> bool {
        let message = message.to_message();
        message.is_some_and(|message| passing::send(&self.socket, &message, &[socket.as_fd()]).is_ok())
    }

    /// Notes what has become of a flow, for the next report.
    pub fn note(&self, flow: u64, event: FlowEvent, now_ms: u64) {
        let mut report = self.report();
        match event {
            FlowEvent::Taken => report.taken.push(flow),
            FlowEvent::Begun => report.begun.push(flow),
            FlowEvent::Ended => report.ended.push(flow),
            FlowEvent::Gone => report.gone.push(flow),
        }
        if report.len().is_multiple_of(SHORTENED_AT_FLOWS) {
            shorten(&mut report);
        }
        // Not with each event beyond: an agent that has not kept up would be asked again and again in vain.
        let is_full = report.len().is_multiple_of(REPORT_FLOWS_MAX);
        drop(report);
        self.due_ms.fetch_min(now_ms + GATHER_MS, Ordering::Release);
        if is_full {
            self.flush(now_ms);
        }
    }

    /// Tells the agent what is due. Called once per turn of a loop.
    pub fn handle_time(&self, now_ms: u64) {
        if self.due_ms.load(Ordering::Relaxed) <= now_ms {
            self.flush(now_ms);
        }
    }

    /// When [`handle_time`](Self::handle_time) has something to tell.
    pub fn deadline_ms(&self) -> Option<u64> {
        Some(self.due_ms.load(Ordering::Relaxed)).filter(|due_ms| *due_ms != NEVER)
    }

    /// Tells the agent what is new. False: it has not kept up, and is told the rest later.
    pub fn flush(&self, now_ms: u64) -> bool {
        if self.due_ms.swap(NEVER, Ordering::Acquire) == NEVER {
            return true;
        }
        let mut report = self.report();
        while !report.is_empty() {
            let part = first_part(&mut report);
            let Some(message) = FromWorker::Report(part.clone()).to_message() else { continue };
            match passing::send(&self.socket, &message, &[]) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    put_back(&mut report, part);
                    self.due_ms.fetch_min(now_ms + AGAIN_MS, Ordering::Release);
                    return false;
                }
                // It has ended, and all flows with it.
                Err(_) => *report = Report::default(),
            }
        }
        true
    }

    fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops what comes to nothing: a request that has begun and ended, and requests of a connection that is gone. What is left is
/// little for each connection, and an agent that does not read sends no further ones: so a report has a bound.
fn shorten(report: &mut Report) {
    let gone: HashSet<u64> = report.gone.iter().copied().collect();
    report.taken.retain(|flow| !gone.contains(flow));
    let mut more: BTreeMap<u64, i64> = BTreeMap::new();
    report.begun.drain(..).for_each(|flow| *more.entry(flow).or_default() += 1);
    report.ended.drain(..).for_each(|flow| *more.entry(flow).or_default() -= 1);
    for (flow, more) in more.into_iter().filter(|(flow, _)| !gone.contains(flow)) {
        let into = if more > 0 { &mut report.begun } else { &mut report.ended };
        into.extend((0..more.unsigned_abs()).map(|_| flow));
    }
}

/// As much as a message has room for: begins before ends before the rest, or the agent would see a request end that never began.
fn first_part(report: &mut Report) -> Report {
    let mut room = REPORT_FLOWS_MAX;
    let mut take = |from: &mut Vec<u64>| -> Vec<u64> {
        let count = from.len().min(room);
        room -= count;
        from.drain(..count).collect()
    };
    Report {
        worker: std::process::id(),
        taken: take(&mut report.taken),
        begun: take(&mut report.begun),
        ended: take(&mut report.ended),
        gone: take(&mut report.gone),
    }
}

fn put_back(report: &mut Report, part: Report) {
    for (into, first) in [
        (&mut report.taken, part.taken),
        (&mut report.begun, part.begun),
        (&mut report.ended, part.ended),
        (&mut report.gone, part.gone),
    ] {
        into.splice(..0, first);
    }
}

/// How long a report is gathered. So much later a front-end knows of the end of a request.
const GATHER_MS: u64 = 2;

/// How soon an agent that has not kept up is told again.
const AGAIN_MS: u64 = 10;

/// Later than any clock shows.
const NEVER: u64 = u64::MAX;

/// Events after which what waits for the agent is [shortened](shorten).
const SHORTENED_AT_FLOWS: usize = 64 * REPORT_FLOWS_MAX;

#[cfg(test)]
mod tests {
    use baton_sys::passing::message_pair;

    use super::*;

    fn received(socket: &OwnedFd) -> Option<Report> {
        let mut buffer = vec![0; baton_cluster::local::MESSAGE_BYTES_MAX];
        let (len, _) = passing::receive(socket, &mut buffer).ok()?;
        match FromWorker::from_message(&buffer[..len]) {
            Ok(FromWorker::Report(report)) => Some(report),
            other => panic!("{other:?}"),
        }
    }

    /// Goal: nothing is lost or doubled while the agent does not read, and a report is never longer than allowed.
    #[test]
    fn what_the_agent_could_not_be_told_it_is_told_later() {
        let (ours, theirs) = message_pair().unwrap();
        rustix::io::ioctl_fionbio(&theirs, true).unwrap();
        let link = AgentLink::new(Arc::new(ours)).unwrap();
        let count = 400_000;
        (0..count).for_each(|flow| link.note(flow, FlowEvent::Begun, 0));
        assert!(!link.flush(0) && link.deadline_ms().is_some(), "the socket has less room");
        let mut seen = Vec::new();
        while seen.len() < count as usize {
            while let Some(report) = received(&theirs) {
                assert!(report.len() <= REPORT_FLOWS_MAX);
                seen.extend(report.begun);
            }
            link.flush(0);
        }
        assert!(seen.into_iter().eq(0..count) && link.deadline_ms().is_none());
    }

    /// Goal: an agent that is stuck for hours costs no memory, and knows afterwards how many requests are open. Method: more
    /// requests than could be kept, on few connections; one has a request open at the end, one is closed.
    #[test]
    fn what_waits_for_a_stuck_agent_has_a_bound() {
        let (ours, theirs) = message_pair().unwrap();
        rustix::io::ioctl_fionbio(&theirs, true).unwrap();
        let link = AgentLink::new(Arc::new(ours)).unwrap();
        link.note(3, FlowEvent::Gone, 0);
        for round in 0..3 * SHORTENED_AT_FLOWS as u64 {
            link.note(round % 4, FlowEvent::Begun, 0);
            link.note(round % 4, FlowEvent::Ended, 0);
            assert!(link.report().len() <= SHORTENED_AT_FLOWS, "in round {round}");
        }
        link.note(1, FlowEvent::Begun, 0);
        let mut open = [0_i64; 4];
        while !link.flush(0) || link.deadline_ms().is_some() {
            while let Some(report) = received(&theirs) {
                report.begun.iter().for_each(|flow| open[*flow as usize] += 1);
                report.ended.iter().for_each(|flow| open[*flow as usize] -= 1);
            }
        }
        while let Some(report) = received(&theirs) {
            report.begun.iter().for_each(|flow| open[*flow as usize] += 1);
            report.ended.iter().for_each(|flow| open[*flow as usize] -= 1);
        }
        assert_eq!(open[..3], [0, 1, 0]);
    }

    /// Goal: events of some milliseconds make one report, and none waits for others.
    #[test]
    fn reports_are_gathered_for_a_while() {
        let (ours, theirs) = message_pair().unwrap();
        rustix::io::ioctl_fionbio(&theirs, true).unwrap();
        let link = AgentLink::new(Arc::new(ours)).unwrap();
        assert_eq!(link.deadline_ms(), None);
        link.note(1, FlowEvent::Taken, 100);
        link.note(1, FlowEvent::Ended, 101);
        assert_eq!(link.deadline_ms(), Some(100 + GATHER_MS));
        link.handle_time(100 + GATHER_MS - 1);
        assert_eq!(received(&theirs), None);
        link.handle_time(100 + GATHER_MS);
        let report = received(&theirs).unwrap();
        assert_eq!((report.taken, report.ended), (vec![1], vec![1]));
        assert_eq!((received(&theirs), link.deadline_ms()), (None, None));
    }

    #[test]
    fn a_agent_that_has_ended_is_told_nothing() {
        let (ours, theirs) = message_pair().unwrap();
        let link = AgentLink::new(Arc::new(ours)).unwrap();
        drop(theirs);
        link.note(1, FlowEvent::Gone, 0);
        assert!(link.flush(0) && link.deadline_ms().is_none());
    }
}
