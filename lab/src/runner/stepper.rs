//! Counts the instructions of a thread by stopping it after each one. Exact on every machine: it needs no counter of the
//! processor, and nothing of the program is emulated. What the kernel does for a call is no part of the count. The kernel's
//! clocks are read by code that it maps into each process: how often a thread enters that is counted, too.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
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
    counts: Arc<Counts>,
    follower: JoinHandle<Result<()>>,
}

#[derive(Default)]
struct Counts {
    instructions: AtomicU64,
    clock_looks: AtomicU64,
    /// The thread goes with its next instruction.
    ends: AtomicBool,
}

impl Stepper {
    /// Follows the first thread of a process.
    pub(super) fn follow(pid: i32) -> Self {
        let counts = Arc::<Counts>::default();
        let counted = Arc::clone(&counts);
        // All calls must come from the thread that has seized the other.
        let follower = std::thread::spawn(move || step(Pid::from_raw(pid), &counted));
        Self { pid, counts, follower }
    }

    /// Instructions so far, and looks at a clock. Waits until the thread waits itself, and so has done all that was asked of it.
    ///
    /// # Errors
    /// It does not come to rest, or cannot be followed.
    pub(super) fn counts_at_rest(&self) -> Result<[u64; 2]> {
        let limit = Instant::now() + REST_WITHIN;
        let mut before = self.counts.instructions.load(Ordering::Acquire);
        loop {
            std::thread::sleep(REST);
            let now = self.counts.instructions.load(Ordering::Acquire);
            if now == before && now > 0 && self.sleeps()? {
                return Ok([now, self.counts.clock_looks.load(Ordering::Acquire)]);
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
        self.counts.ends.store(true, Ordering::Release);
        wake()?;
        self.follower.join().map_err(|_| anyhow::anyhow!("the follower has failed"))?
    }

    /// Whether it waits in the kernel for something other than its follower.
    fn sleeps(&self) -> Result<bool> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        Ok(stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S")))
    }
}

fn step(pid: Pid, counts: &Counts) -> Result<()> {
    let clocks = clock_code(pid)?;
    let place = File::open(format!("/proc/{pid}/syscall"))?;
    let mut was_in_clocks = false;
    ptrace::seize(pid, Options::empty())
        .context("cannot look into the worker: be root, or set server.debuggable")?;
    ptrace::interrupt(pid)?;
    loop {
        let signal = match waitpid(pid, Some(WaitPidFlag::__WALL))? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {
                let is_in_clocks = clocks.contains(&address_of(&place)?);
                counts.clock_looks.fetch_add(u64::from(is_in_clocks && !was_in_clocks), Ordering::Release);
                was_in_clocks = is_in_clocks;
                counts.instructions.fetch_add(1, Ordering::Release);
                None
            }
            WaitStatus::Stopped(_, signal) => Some(signal),
            WaitStatus::PtraceEvent(..) => None,
            status => anyhow::bail!("the worker has ended: {status:?}"),
        };
        if counts.ends.load(Ordering::Acquire) {
            return Ok(ptrace::detach(pid, signal)?);
        }
        ptrace::step(pid, signal)?;
    }
}

/// Where the kernel has mapped its code for clocks.
fn clock_code(pid: Pid) -> Result<Range<u64>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).context("the kernel maps no clocks")?;
    let (begin, rest) = line.split_once('-').context("an unknown form of /proc/PID/maps")?;
    let end = rest.split(' ').next().unwrap_or_default();
    Ok(u64::from_str_radix(begin, 16)?..u64::from_str_radix(end, 16)?)
}

/// The address of the next instruction of a stopped thread: the last word.
fn address_of(place: &File) -> Result<u64> {
    let mut text = [0; 256];
    let length = place.read_at(&mut text, 0)?;
    let text = std::str::from_utf8(&text[..length])?;
    let word = text.trim_end().rsplit_once("0x").context("no address of a stopped thread")?.1;
    Ok(u64::from_str_radix(word, 16)?)
}

/// How long a thread that sleeps must have done nothing.
const REST: Duration = Duration::from_millis(1);

/// Of a request: some ten thousand steps of a few microseconds each, on a machine that may be busy.
const REST_WITHIN: Duration = Duration::from_secs(30);
