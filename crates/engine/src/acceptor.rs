//! Accepting: how many at a time, when to stop, when to go on. Clients of the server whose place this one takes come in the
//! same way, each with its passport.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use baton_passport::Passport;
use baton_session::context::Warnings;
use baton_session::send_queue::SendfileMode;
use baton_sys::descriptors;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::SocketFlags;

use crate::arrivals::{Arrival, Arrivals};
use crate::listen::{ListenAddress, Listener};
use crate::settings::Tuning;

/// The listening sockets of one loop, and where it takes clients over.
#[derive(Debug)]
pub(crate) struct Acceptor {
    listeners: Vec<Arc<Listener>>,
    /// `None`: the other server has ended.
    arrivals: Vec<Option<Arc<Arrivals>>>,
    message: Vec<u8>,
    accepts_per_wake: usize,
    flags: SocketFlags,
    /// Whether the listeners are in the interest set.
    watching: bool,
    /// When to accept again, after a shortage of descriptors or memory.
    resume_ms: Option<u64>,
    /// The shortage has been reported: once, not with every client.
    reported: bool,
    warnings: Warnings,
}

/// What [`Acceptor::next`] returns.
#[derive(Debug)]
pub(crate) enum Accepted {
    Client {
        socket: OwnedFd,
        peer: Option<SocketAddr>,
        listener: usize,
    },
    /// One that another process has served until now.
    TakenOver {
        socket: OwnedFd,
        /// Files that the other process was sending.
        files: Vec<OwnedFd>,
        passport: Box<Passport>,
        listener: usize,
        /// It comes from another host, with a request.
        is_from_agent: bool,
    },
    /// One that another host has handed over, and that connected where this server does not listen.
    Lost {
        /// By which the handoff agent knows it.
        flow: u64,
    },
    /// No more can be accepted for now.
    Paused,
}

/// A round of accepting.
#[derive(Debug)]
pub(crate) struct AcceptRound {
    source: Option<Source>,
    left: usize,
}

#[derive(Clone, Debug)]
enum Source {
    Listener(Arc<Listener>),
    Arrivals(Arc<Arrivals>),
}

impl Acceptor {
    pub(crate) fn new(tuning: &Tuning, arrivals: &[Arc<Arrivals>], warnings: Warnings) -> Self {
        let mut flags = SocketFlags::CLOEXEC;
        // In blocking mode it is `sendfile` that blocks: everything else says MSG_DONTWAIT.
        flags.set(SocketFlags::NONBLOCK, tuning.sendfile != SendfileMode::Blocking);
        Self {
            listeners: Vec::new(),
            arrivals: arrivals.iter().take(ARRIVALS_MAX).cloned().map(Some).collect(),
            message: Vec::new(),
            accepts_per_wake: tuning.accepts_per_wake.max(1),
            flags,
            watching: true,
            resume_ms: None,
            reported: false,
            warnings,
        }
    }

    /// Whether an event with this data is a listener's.
    pub(crate) fn owns(data: u64) -> bool {
        (FIRST_ARRIVALS_DATA..1 << 32).contains(&data)
    }

    /// Watches these listeners and no others. Returns the former listeners whose address stays: other processes go on
    /// with them, but a client that the kernel announced to this process was announced to no other.
    /// [`finish_with`](Self::finish_with) accepts such clients.
    pub(crate) fn listen(
        &mut self,
        listeners: &[Arc<Listener>],
        epoll: impl AsFd,
    ) -> io::Result<Vec<Arc<Listener>>> {
        let are_the_same = self.listeners.len() == listeners.len()
            && self.listeners.iter().zip(listeners).all(|(one, other)| Arc::ptr_eq(one, other));
        if are_the_same && self.watching {
            return Ok(Vec::new());
        }
        self.stop_watching(&epoll)?;
        let mut left = std::mem::replace(&mut self.listeners, listeners.to_vec());
        left.retain(|old| {
            let stays = listeners.iter().any(|new| Arc::ptr_eq(old, new));
            !stays && listeners.iter().any(|new| old.id == new.id)
        });
        if self.resume_ms.is_none() {
            self.watch(epoll)?;
        }
        Ok(left)
    }

    /// Stops watching. Returns last rounds: [`next`](Self::next) accepts the clients that the kernel announced to this process
    /// only, and those that another process has sent and perhaps no other takes.
    pub(crate) fn leave(&mut self, epoll: impl AsFd) -> io::Result<Vec<AcceptRound>> {
        self.stop_watching(epoll)?;
        if self.listeners.is_empty() {
            return Ok(Vec::new()); // It has left before.
        }
        let listeners = self.listeners.iter().cloned().map(Source::Listener);
        let listeners =
            listeners.map(|source| AcceptRound { source: Some(source), left: self.accepts_per_wake });
        let taken = self.arrivals.iter().flatten().cloned().map(Source::Arrivals);
        let taken = taken.map(|source| AcceptRound { source: Some(source), left: usize::MAX });
        Ok(taken.chain(listeners).collect())
    }

    fn stop_watching(&mut self, epoll: impl AsFd) -> io::Result<()> {
        if std::mem::replace(&mut self.watching, false) {
            for listener in &self.listeners {
                epoll::delete(&epoll, &listener.socket)?;
            }
            for arrivals in self.arrivals.iter().flatten() {
                // Before the first listeners it is not in the set.
                let _ = epoll::delete(&epoll, arrivals);
            }
        }
        Ok(())
    }

    fn watch(&mut self, epoll: impl AsFd) -> io::Result<()> {
        for (index, listener) in self.listeners.iter().enumerate() {
            let data = EventData::new_u64(FIRST_DATA + index as u64);
            // Exclusive: of several processes on one socket one is woken, not all.
            epoll::add(&epoll, &listener.socket, data, EventFlags::IN | EventFlags::EXCLUSIVE)?;
        }
        // A process that has left takes no client: it has no listener for it.
        for (index, arrivals) in self.arrivals.iter().enumerate().filter(|_| !self.listeners.is_empty()) {
            let Some(arrivals) = arrivals else { continue };
            let data = EventData::new_u64(FIRST_ARRIVALS_DATA + index as u64);
            epoll::add(&epoll, arrivals, data, EventFlags::IN | EventFlags::EXCLUSIVE)?;
        }
        self.watching = true;
        Ok(())
    }

    /// Begins a round of accepting after an event with this data.
    pub(crate) fn begin(&self, data: u64) -> AcceptRound {
        let source = match data.checked_sub(FIRST_DATA) {
            Some(index) => self.listeners.get(index as usize).cloned().map(Source::Listener),
            // A process that has left has no listener for them. An event may still say that there are some.
            None if self.listeners.is_empty() => None,
            None => {
                let arrivals = self.arrivals.get((data - FIRST_ARRIVALS_DATA) as usize);
                arrivals.cloned().flatten().map(Source::Arrivals)
            }
        };
        AcceptRound { source, left: self.accepts_per_wake }
    }

    /// Begins a last round with a former listener.
    pub(crate) fn finish_with(listener: Arc<Listener>) -> AcceptRound {
        AcceptRound { source: Some(Source::Listener(listener)), left: usize::MAX }
    }

    /// The next client, until none waits or the round is full. `room`: how many more may be accepted.
    pub(crate) fn next(
        &mut self,
        round: &mut AcceptRound,
        room: usize,
        epoll: impl AsFd,
    ) -> Option<Accepted> {
        let source = round.source.clone()?;
        if round.left == 0 {
            return None;
        }
        if room == 0 {
            round.source = None;
            return Some(Accepted::Paused);
        }
        let listener = match source {
            Source::Listener(listener) => listener,
            Source::Arrivals(arrivals) => return self.take_over(round, &arrivals, epoll),
        };
        loop {
            let accept = || rustix::net::acceptfrom_with(&listener.socket, self.flags);
            return match descriptors::retry(accept) {
                Ok((socket, address)) => {
                    round.left -= 1;
                    let peer = address.and_then(|address| SocketAddr::try_from(address).ok());
                    Some(Accepted::Client { socket, peer, listener: listener.id })
                }
                // The client was gone before it was accepted, or the network reports an error for it.
                Err(
                    Errno::CONNABORTED | Errno::INTR | Errno::PROTO | Errno::NETUNREACH | Errno::HOSTUNREACH,
                ) => continue,
                Err(Errno::AGAIN) => {
                    self.reported = false; // All waiting clients are in: a later shortage is reported anew.
                    None
                }
                Err(error) => {
                    round.source = None;
                    self.report(error);
                    Some(Accepted::Paused)
                }
            };
        }
    }

    /// The next client of the other server. One that connected where this server does not listen any more is dropped.
    fn take_over(
        &mut self,
        round: &mut AcceptRound,
        arrivals: &Arc<Arrivals>,
        epoll: impl AsFd,
    ) -> Option<Accepted> {
        loop {
            match arrivals.next(&mut self.message) {
                Arrival::Client { socket, files, passport } => {
                    let address = ListenAddress::from(passport.listener.clone());
                    let is_from_agent = arrivals.are_of_agent();
                    let listener = self.listeners.iter().find(|one| one.address == address);
                    let listener = listener.or_else(|| self.nearest(&address).filter(|_| is_from_agent));
                    let Some(listener) = listener.map(|one| one.id) else {
                        match passport.flow {
                            Some(flow) => return Some(Accepted::Lost { flow }),
                            None => continue,
                        }
                    };
                    let is_nonblocking = self.flags.contains(SocketFlags::NONBLOCK);
                    if rustix::io::ioctl_fionbio(&socket, is_nonblocking).is_err() {
                        continue;
                    }
                    round.left -= 1;
                    return Some(Accepted::TakenOver { socket, files, passport, listener, is_from_agent });
                }
                Arrival::Refused(why) => {
                    (self.warnings)(format_args!(
                        "a connection of the other server cannot be taken over: {why}"
                    ));
                }
                Arrival::Nothing => {
                    self.message = Vec::new();
                    return None;
                }
                Arrival::End => {
                    // It is in the set: an event has come from it.
                    let _ = epoll::delete(&epoll, arrivals);
                    let is_over = |one: &Option<Arc<Arrivals>>| {
                        one.as_ref().is_some_and(|one| Arc::ptr_eq(one, arrivals))
                    };
                    if let Some(over) = self.arrivals.iter_mut().find(|one| is_over(one)) {
                        *over = None;
                    }
                    return None;
                }
            }
        }
    }

    /// The listener for a client of another host, which has connected to an address that is this host's, too: one for all
    /// addresses, or else one of the same port.
    fn nearest(&self, address: &ListenAddress) -> Option<&Arc<Listener>> {
        let ListenAddress::Tcp(wanted) = address else { return None };
        let of_port = |is_fine: fn(&SocketAddr) -> bool| {
            self.listeners.iter().find(|one| match &one.address {
                ListenAddress::Tcp(own) => own.port() == wanted.port() && is_fine(own),
                ListenAddress::Unix(_) => false,
            })
        };
        of_port(|own| own.ip().is_unspecified()).or_else(|| of_port(|_| true))
    }

    fn report(&mut self, error: Errno) {
        if std::mem::replace(&mut self.reported, true) {
            return;
        }
        let remedy = match error {
            Errno::MFILE => {
                "the process has no descriptor left: raise its limit (ulimit -n, LimitNOFILE=) or lower limits.connections_max"
            }
            Errno::NFILE => "the system has no descriptor left: raise fs.file-max",
            _ => {
                "the system is short of memory for connections, or the process of mappings (`threads` needs two for each: \
                 raise vm.max_map_count or lower limits.connections_max)"
            }
        };
        (self.warnings)(format_args!(
            "cannot accept: {error}; {remedy}. Waiting clients stay in the queue; accepting goes on as soon as it can."
        ));
    }

    /// Pauses because there was no memory for a client that had been accepted.
    pub(crate) fn run_out(&mut self, now_ms: u64, epoll: impl AsFd) {
        self.report(Errno::NOMEM);
        self.pause(now_ms, epoll);
    }

    /// Stops accepting for [`PAUSE_MS`].
    pub(crate) fn pause(&mut self, now_ms: u64, epoll: impl AsFd) {
        self.resume_ms = Some(now_ms + PAUSE_MS);
        if std::mem::replace(&mut self.watching, false) {
            for listener in &self.listeners {
                // It is in the set: `watching` says so.
                let _ = epoll::delete(&epoll, &listener.socket);
            }
            for arrivals in self.arrivals.iter().flatten() {
                let _ = epoll::delete(&epoll, arrivals);
            }
        }
    }

    /// Lets a pause end with the next [`handle_time`](Self::handle_time).
    pub(crate) fn resume(&mut self, now_ms: u64) {
        self.resume_ms = self.resume_ms.map(|_| now_ms);
    }

    /// When [`handle_time`](Self::handle_time) has something to do.
    pub(crate) fn resume_ms(&self) -> Option<u64> {
        self.resume_ms
    }

    /// Accepts again after a pause if there is room.
    pub(crate) fn handle_time(&mut self, now_ms: u64, has_room: bool, epoll: impl AsFd) {
        if self.resume_ms.is_some_and(|resume| now_ms >= resume) {
            if has_room && self.watch(epoll).is_ok() {
                self.resume_ms = None;
            } else {
                self.resume_ms = Some(now_ms + PAUSE_MS);
            }
        }
    }
}

/// How long accepting pauses after a shortage.
const PAUSE_MS: u64 = 50;

/// Sockets over which clients arrive: of the other server, of other workers, of other hosts.
const ARRIVALS_MAX: usize = (FIRST_DATA - FIRST_ARRIVALS_DATA) as usize;

/// Event data of the first of them; a loop uses smaller numbers for other descriptors.
const FIRST_ARRIVALS_DATA: u64 = 8;

/// Event data of the first listener.
const FIRST_DATA: u64 = 16;

#[cfg(test)]
mod tests;
