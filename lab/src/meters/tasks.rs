//! What the kernel counts of each process and thread anyway: CPU time, context switches.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::Result;

use super::meter::{Meter, Watched};
use crate::rig::processes::cpu_time;

/// CPU clocks and ticks of each process, when the meter began.
pub(super) struct Cpu(BTreeMap<i32, (Duration, [u64; 2])>);

impl Cpu {
    pub(super) fn begin(watched: &Watched) -> Self {
        Self(Self::now(watched))
    }

    fn now(watched: &Watched) -> BTreeMap<i32, (Duration, [u64; 2])> {
        let of = |pid| (pid, (cpu_time(&[pid]), ticks(pid)));
        watched.tree().into_iter().map(of).collect()
    }
}

impl Meter for Cpu {
    fn end(self: Box<Self>, watched: &Watched) -> Result<Vec<f64>> {
        let mut used = Duration::ZERO;
        let mut ticks = [0; 2];
        for (pid, (clock, now)) in Self::now(watched) {
            let (clock_before, before) = self.0.get(&pid).copied().unwrap_or_default();
            used += clock.saturating_sub(clock_before);
            (0..2).for_each(|mode| ticks[mode] += now[mode].saturating_sub(before[mode]));
        }
        // The clocks are exact to the nanosecond but know no modes; ticks know modes, in steps of 10 ms.
        let all = (ticks[0] + ticks[1]).max(1) as f64;
        let used = used.as_secs_f64();
        let user = used * ticks[0] as f64 / all;
        Ok(vec![user, used - user])
    }
}

/// Voluntary and involuntary switches of each thread, when the meter began.
pub(super) struct Switches(BTreeMap<i32, [u64; 2]>);

impl Switches {
    pub(super) fn begin(watched: &Watched) -> Self {
        let threads = watched.threads();
        Self(threads.into_iter().map(|(pid, thread)| (thread, switches(pid, thread))).collect())
    }
}

impl Meter for Switches {
    fn end(self: Box<Self>, watched: &Watched) -> Result<Vec<f64>> {
        let now = Self::begin(watched).0;
        let since = |field: usize| {
            let before = |thread| self.0.get(thread).map_or(0, |before| before[field]);
            now.iter().map(|(thread, now)| now[field].saturating_sub(before(thread))).sum::<u64>() as f64
        };
        Ok(vec![since(0), since(1)])
    }
}

/// Voluntary and involuntary switches of a thread so far.
fn switches(pid: i32, thread: i32) -> [u64; 2] {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
    };
    [field("voluntary_ctxt_switches:"), field("nonvoluntary_ctxt_switches:")]
}

/// Ticks in user and system mode: fields 14 and 15 of `/proc/PID/stat`, as proc(5) numbers them.
fn ticks(pid: i32) -> [u64; 2] {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The second field, the name, may itself contain blanks and parentheses.
    let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let all: Vec<&str> = rest.split(' ').collect();
    [11, 12].map(|at: usize| all.get(at).and_then(|number| number.parse().ok()).unwrap_or_default())
}
