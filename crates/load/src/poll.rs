//! One look at the sockets of a thread.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::busy::BusyClock;

/// The sockets to which something happened.
#[derive(Debug)]
pub(super) struct Poll {
    pub(super) tokens: Vec<u64>,
    sleeps: bool,
}

impl Poll {
    /// One that sleeps when there is nothing to do, or spins.
    pub(super) fn new(sleeps: bool) -> Self {
        Self { tokens: Vec::with_capacity(EVENTS), sleeps }
    }

    /// Looks, and waits at most until something is due. Returns the time after it.
    pub(super) fn look(
        &mut self,
        epoll: &OwnedFd,
        due: Option<Instant>,
        busy: &mut BusyClock,
    ) -> Result<Instant> {
        let before = Instant::now();
        let patience = if self.sleeps {
            due.map_or(SLEEP, |due| due.saturating_duration_since(before).min(SLEEP))
        } else {
            Duration::ZERO
        };
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
        self.tokens.clear();
        let mut room = [const { MaybeUninit::uninit() }; EVENTS];
        match epoll::wait(epoll, &mut room[..], Some(&timeout)) {
            Ok((events, _)) => self.tokens.extend(events.iter().map(|event| {
                let data = event.data;
                data.u64()
            })),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno).context("epoll_wait"),
        }
        let after = Instant::now();
        if self.tokens.is_empty() || patience > Duration::ZERO {
            busy.add_idle(after.saturating_duration_since(before));
        }
        Ok(after)
    }
}

const EVENTS: usize = 256;
/// The longest sleep of a load that sleeps; below a second.
const SLEEP: Duration = Duration::from_millis(20);
