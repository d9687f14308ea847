//! What the kernel counts of each process and thread anyway: CPU time, context switches, page faults.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::Result;

use super::meter::{Meter, Reading, Watched, readings};
use crate::rig::processes::cpu_time;

pub(super) const CPU: &[(&str, &str)] = &[("cpu_s", "s"), ("user_s", "s"), ("system_s", "s")];
pub(super) const SWITCHES: &[(&str, &str)] =
    &[("voluntary_switches", ""), ("involuntary_switches", ""), ("minor_faults", ""), ("major_faults", "")];

/// CPU clocks and ticks of each process, when the meter began.
pub(super) struct Cpu(BTreeMap<i32, (Duration, [u64; 2])>);

impl Cpu {
    pub(super) fn begin(watched: &Watched) -> Self {
        Self(Self::now(watched))
    }

    fn now(watched: &Watched) -> BTreeMap<i32, (Duration, [u64; 2])> {
        let of = |pid| (pid, (cpu_time(&[pid]), stat(pid, [UTIME, STIME])));
        watched.tree().into_iter().map(of).collect()
    }
}

impl Meter for Cpu {
    fn end(self: Box<Self>, watched: &Watched) -> Result<Vec<Reading>> {
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
        Ok(readings(CPU, [used, user, used - user]))
    }
}

/// Switches of each thread and faults of each process, when the meter began.
pub(super) struct Switches {
    threads: BTreeMap<i32, [u64; 2]>,
    processes: BTreeMap<i32, [u64; 2]>,
}

impl Switches {
    pub(super) fn begin(watched: &Watched) -> Self {
        let threads = watched.threads();
        Self {
            threads: threads.into_iter().map(|(pid, thread)| (thread, switches(pid, thread))).collect(),
            processes: watched.tree().into_iter().map(|pid| (pid, stat(pid, [MINFLT, MAJFLT]))).collect(),
        }
    }
}

impl Meter for Switches {
    fn end(self: Box<Self>, watched: &Watched) -> Result<Vec<Reading>> {
        let now = Self::begin(watched);
        let since = |now: &BTreeMap<i32, [u64; 2]>, before: &BTreeMap<i32, [u64; 2]>, field: usize| {
            let of = |(id, now): (&i32, &[u64; 2])| {
                now[field].saturating_sub(before.get(id).copied().unwrap_or_default()[field])
            };
            now.iter().map(of).sum::<u64>() as f64
        };
        let switched = |field| since(&now.threads, &self.threads, field);
        let faulted = |field| since(&now.processes, &self.processes, field);
        Ok(readings(SWITCHES, [switched(0), switched(1), faulted(0), faulted(1)]))
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

/// Two fields of `/proc/PID/stat`, numbered as in proc(5).
fn stat(pid: i32, fields: [usize; 2]) -> [u64; 2] {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The second field, the name, may itself contain blanks and parentheses.
    let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let all: Vec<&str> = rest.split(' ').collect();
    fields.map(|field| all.get(field - 3).and_then(|number| number.parse().ok()).unwrap_or_default())
}

const MINFLT: usize = 10;
const MAJFLT: usize = 12;
const UTIME: usize = 14;
const STIME: usize = 15;
