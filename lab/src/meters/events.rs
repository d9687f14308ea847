//! Events that the kernel counts for us by `perf_event_open`: system calls, and what the processor counts.

use std::fs;
use std::io;

use anyhow::{Context, Result, bail};
use perf_event::events::{Event, Hardware, Tracepoint};
use perf_event::{Builder, Counter};

use super::meter::{Meter, Watched};

/// A counter of each event for each thread; threads that begin later are counted with those that began them.
pub(super) struct Events(Vec<Vec<Counter>>);

impl Events {
    pub(super) fn system_calls(watched: &Watched) -> Result<Self> {
        let id = fs::read_to_string(SYS_ENTER)
            .with_context(|| format!("{SYS_ENTER} (for root: mount -t tracefs none /sys/kernel/tracing)"))?;
        let event = Tracepoint::with_id(id.trim().parse().context(SYS_ENTER)?);
        Ok(Self(vec![count(&event, watched)?]))
    }

    pub(super) fn hardware(watched: &Watched) -> Result<Self> {
        let events =
            [Hardware::INSTRUCTIONS, Hardware::CPU_CYCLES, Hardware::CACHE_MISSES, Hardware::BRANCH_MISSES];
        Ok(Self(events.iter().map(|event| count(event, watched)).collect::<Result<_>>()?))
    }
}

impl Meter for Events {
    fn end(self: Box<Self>, _: &Watched) -> Result<Vec<f64>> {
        let sum = |mut counters: Vec<Counter>| {
            counters.iter_mut().map(|counter| Ok(counter.read().context("reading a counter")? as f64)).sum()
        };
        self.0.into_iter().map(sum).collect()
    }
}

/// A running counter for each thread that lives.
fn count<E: Event + Clone>(event: &E, watched: &Watched) -> Result<Vec<Counter>> {
    let mut counters = Vec::new();
    for (_, thread) in watched.threads() {
        let mut builder = Builder::new(event.clone());
        builder.observe_pid(thread).any_cpu().include_kernel().inherit(true).enabled(true);
        match builder.build() {
            Ok(counter) => counters.push(counter),
            // It has ended meanwhile.
            Err(error) if error.raw_os_error() == Some(ESRCH) => {}
            Err(error) => return Err(explain(error)),
        }
    }
    if counters.is_empty() {
        bail!("no process is left to count");
    }
    Ok(counters)
}

/// Why the kernel counts no such events.
fn explain(error: io::Error) -> anyhow::Error {
    let context = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported => {
            "the processor shows no such counter; virtual machines often hide them"
        }
        io::ErrorKind::PermissionDenied => "counting needs root, or kernel.perf_event_paranoid = -1",
        _ => "perf_event_open",
    };
    anyhow::Error::new(error).context(context)
}

const SYS_ENTER: &str = "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id";
const ESRCH: i32 = 3;
