//! What the kernel counts anyway: CPU time and context switches of tasks; waits of CPUs, files and other memory, TCP segments.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::meter::{Counts, Watched};
use crate::rig::Groups;
use crate::rig::network::counter_in;
use crate::rig::processes::{cpu_time, memory_bytes};

/// CPU seconds of each process, and ticks in user and system mode.
pub(super) fn cpu(watched: &Watched) -> Result<Counts<3>> {
    let of = |pid| {
        let [user, system] = ticks(pid);
        (pid, [cpu_time(&[pid]).as_secs_f64(), user, system])
    };
    Ok(watched.tree().into_iter().map(of).collect())
}

/// Seconds in user and system mode. The clocks are exact to the nanosecond but know no modes; ticks know modes, in steps of
/// 10 ms.
pub(super) fn modes([seconds, user, system]: [f64; 3]) -> Vec<f64> {
    let in_user_mode = seconds * user / (user + system).max(1.0);
    vec![in_user_mode, seconds - in_user_mode]
}

/// Voluntary and involuntary switches of each thread.
pub(super) fn switches(watched: &Watched) -> Result<Counts<2>> {
    let of = |(pid, thread)| {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).unwrap_or_default();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
        };
        (thread, [field("voluntary_ctxt_switches:"), field("nonvoluntary_ctxt_switches:")])
    };
    Ok(watched.threads().into_iter().map(of).collect())
}

/// Ticks in user and system mode: fields 14 and 15 of `/proc/PID/stat`, as proc(5) numbers them.
fn ticks(pid: i32) -> [f64; 2] {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The second field, the name, may itself contain blanks and parentheses.
    let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let all: Vec<&str> = rest.split(' ').collect();
    [11, 12].map(|at: usize| all.get(at).and_then(|number| number.parse().ok()).unwrap_or_default())
}

/// Seconds that the CPUs had nothing to do but to wait for a disk.
pub(super) fn waiting(watched: &Watched) -> Result<Counts<1>> {
    let text = fs::read_to_string("/proc/stat").context("/proc/stat")?;
    let of = |cpu: &usize| {
        let name = format!("cpu{cpu} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&name))?;
        let ticks: f64 = line.split_ascii_whitespace().nth(4)?.parse().ok()?;
        Some((*cpu as i32, [ticks / TICKS_PER_S]))
    };
    let waited = watched.cpus.iter().map(of).collect::<Option<_>>();
    waited.context("/proc/stat knows not all CPUs")
}

/// Bytes of files in memory.
pub(super) fn file_cache(watched: &Watched) -> Result<f64> {
    ensure!(!watched.groups.is_empty(), "the server has no control group, whose files alone are counted");
    Ok(Groups::file_bytes(&watched.groups) as f64)
}

/// Bytes of memory.
pub(super) fn memory(watched: &Watched) -> Result<f64> {
    Ok(memory_bytes(&watched.tree().into_iter().collect::<Vec<_>>()) as f64)
}

/// TCP segments in and out, and repeated ones.
pub(super) fn packets(watched: &Watched) -> Result<Counts<3>> {
    let pid = watched.processes.first().context("no process is left")?;
    // The network of the server, which may be another host's.
    let file = format!("/proc/{pid}/net/snmp");
    let text = fs::read_to_string(&file).with_context(|| file.clone())?;
    let counter = |name| Some(counter_in(&text, "Tcp", name)? as f64);
    let segments = || Some([counter("InSegs")?, counter("OutSegs")?, counter("RetransSegs")?]);
    Ok([(0, segments().context(file)?)].into())
}

/// Of `/proc/stat`, on all architectures that have two CPUs or more to measure on.
const TICKS_PER_S: f64 = 100.0;
