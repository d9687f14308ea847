//! Counts the instructions of a thread by stopping it after each one. Exact on every machine: it needs no counter of the
//! processor, and nothing of the program is emulated. What the kernel does for a call is no part of the count.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// A thread that is followed, until this has ended.
pub(super) struct Stepper {
    pid: i32,
    count: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
    follower: JoinHandle<Result<()>>,
}

impl Stepper {
    /// Follows the first thread of a process.
    ///
    /// # Errors
    /// The system does not let this user look into the process.
    pub(super) fn follow(pid: i32) -> Result<Self> {
        let (count, ends) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (counted, told) = (Arc::clone(&count), Arc::clone(&ends));
        // All calls must come from the thread that has seized the other.
        let follower = std::thread::spawn(move || step(Pid::from_raw(pid), &counted, &told));
        Ok(Self { pid, count, ends, follower })
    }

    /// Instructions so far. Waits until the thread waits itself, and so has done all that was asked of it.
    ///
    /// # Errors
    /// It does not come to rest, or cannot be followed.
    pub(super) fn count_at_rest(&self) -> Result<u64> {
        let limit = Instant::now() + REST_WITHIN;
        let mut before = self.count.load(Ordering::Acquire);
        loop {
            std::thread::sleep(REST);
            let now = self.count.load(Ordering::Acquire);
            if now == before && now > 0 && self.sleeps()? {
                return Ok(now);
            }
            ensure!(
                Instant::now() < limit && !self.follower.is_finished(),
                "the server does not come to rest"
            );
            before = now;
        }
    }

    /// Lets the thread go with its next instruction.
    pub(super) fn end(self, wake: impl FnOnce() -> Result<()>) -> Result<()> {
        self.ends.store(true, Ordering::Release);
        wake()?;
        self.follower.join().map_err(|_| anyhow::anyhow!("the follower has failed"))?
    }

    /// Whether it waits in the kernel for something other than its follower.
    fn sleeps(&self) -> Result<bool> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        Ok(stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S")))
    }
}

fn step(pid: Pid, count: &AtomicU64, ends: &AtomicBool) -> Result<()> {
    ptrace::seize(pid, Options::empty())
        .context("cannot look into the worker: be root, or set server.debuggable")?;
    ptrace::interrupt(pid)?;
    loop {
        let signal = match waitpid(pid, Some(WaitPidFlag::__WALL))? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {
                count.fetch_add(1, Ordering::Release);
                None
            }
            WaitStatus::Stopped(_, signal) => Some(signal),
            WaitStatus::PtraceEvent(..) => None,
            status => anyhow::bail!("the worker has ended: {status:?}"),
        };
        if ends.load(Ordering::Acquire) {
            return Ok(ptrace::detach(pid, signal)?);
        }
        ptrace::step(pid, signal)?;
    }
}

/// How long a thread that sleeps must have done nothing.
const REST: Duration = Duration::from_millis(1);

/// Of a request: some ten thousand steps of a few microseconds each, on a machine that may be busy.
const REST_WITHIN: Duration = Duration::from_secs(30);
