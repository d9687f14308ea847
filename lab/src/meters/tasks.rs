//! What the kernel counts of each process and thread anyway: CPU time, context switches.

use std::fs;

use anyhow::Result;

use super::meter::{Counts, Watched};
use crate::rig::processes::cpu_time;

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
