//! Accepting: how many at a time, when to stop, when to go on.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use baton_sys::descriptors;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::SocketFlags;

use crate::context::Remarks;
use crate::listen::Listener;
use crate::settings::{SendfileMode, Tuning};

/// The listening sockets of one loop.
#[derive(Debug)]
pub(crate) struct Acceptor {
    listeners: Vec<Arc<Listener>>,
    accepts_per_wake: usize,
    flags: SocketFlags,
    /// Whether the listeners are in the interest set.
    watching: bool,
    /// When to accept again, after a shortage of descriptors or memory.
    resume_ms: Option<u64>,
    /// The shortage has been reported: once, not with every client.
    reported: bool,
    remarks: Remarks,
}

/// What [`Acceptor::next`] returns.
#[derive(Debug)]
pub(crate) enum Accepted {
    Client {
        socket: OwnedFd,
        peer: Option<SocketAddr>,
        listener: usize,
    },
    /// No more can be accepted for now.
    Paused,
}

/// A round of accepting.
#[derive(Debug)]
pub(crate) struct AcceptRound {
    listener: Option<Arc<Listener>>,
    left: usize,
}

impl Acceptor {
    pub(crate) fn new(tuning: &Tuning, remarks: Remarks) -> Self {
        let mut flags = SocketFlags::CLOEXEC;
        // In blocking mode it is `sendfile` that blocks: everything else says MSG_DONTWAIT.
        flags.set(SocketFlags::NONBLOCK, tuning.sendfile != SendfileMode::Blocking);
        Self {
            listeners: Vec::new(),
            accepts_per_wake: tuning.accepts_per_wake.max(1),
            flags,
            watching: true,
            resume_ms: None,
            reported: false,
            remarks,
        }
    }

    /// Whether an event with this data is a listener's.
    pub(crate) fn owns(data: u64) -> bool {
        (FIRST_DATA..1 << 32).contains(&data)
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
        self.leave(&epoll)?;
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

    /// Stops watching. Returns the event data with which [`begin`](Self::begin) accepts the clients that the kernel
    /// announced to this process only.
    pub(crate) fn leave(&mut self, epoll: impl AsFd) -> io::Result<Range<u64>> {
        if std::mem::replace(&mut self.watching, false) {
            for listener in &self.listeners {
                epoll::delete(&epoll, &listener.socket)?;
            }
        }
        Ok(FIRST_DATA..FIRST_DATA + self.listeners.len() as u64)
    }

    fn watch(&mut self, epoll: impl AsFd) -> io::Result<()> {
        for (index, listener) in self.listeners.iter().enumerate() {
            let data = EventData::new_u64(FIRST_DATA + index as u64);
            // Exclusive: of several processes on one socket one is woken, not all.
            epoll::add(&epoll, &listener.socket, data, EventFlags::IN | EventFlags::EXCLUSIVE)?;
        }
        self.watching = true;
        Ok(())
    }

    /// Begins a round of accepting after an event with this data.
    pub(crate) fn begin(&self, data: u64) -> AcceptRound {
        let listener = self.listeners.get((data - FIRST_DATA) as usize).cloned();
        AcceptRound { listener, left: self.accepts_per_wake }
    }

    /// Begins a last round with a former listener.
    pub(crate) fn finish_with(listener: Arc<Listener>) -> AcceptRound {
        AcceptRound { listener: Some(listener), left: usize::MAX }
    }

    /// The next client, until none waits or the round is full. `room`: how many more may be accepted.
    pub(crate) fn next(&mut self, round: &mut AcceptRound, room: usize) -> Option<Accepted> {
        let listener = round.listener.clone()?;
        if round.left == 0 {
            return None;
        }
        if room == 0 {
            round.listener = None;
            return Some(Accepted::Paused);
        }
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
                    round.listener = None;
                    self.report(error);
                    Some(Accepted::Paused)
                }
            };
        }
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
        (self.remarks)(format_args!(
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

/// Event data of the first listener; a loop uses smaller numbers for other descriptors.
const FIRST_DATA: u64 = 16;
