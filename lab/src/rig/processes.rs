//! CPU time and memory of a server's processes, seen from outside.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use anyhow::Result;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;

/// A process and all its descendants.
pub(crate) fn tree(root: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if let Some(parent) =
            fs::read_to_string(format!("/proc/{pid}/stat")).ok().as_deref().and_then(parent_of)
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut tree = vec![root];
    let mut next = 0;
    while next < tree.len() {
        tree.extend(children.get(&tree[next]).into_iter().flatten());
        next += 1;
    }
    tree
}

/// The parent, from the text of `/proc/PID/stat`. The name of the command may itself contain blanks and parentheses.
fn parent_of(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok()
}

/// CPU time of these processes so far: those that live, with the threads of theirs that have ended.
///
/// Read from the process CPU clocks: to the nanosecond, kernel time and io_uring workers included, where the counters of
/// `/proc/PID/stat` have ticks of 10 ms and those of `/proc/PID/schedstat` know one thread only.
pub(crate) fn cpu_time(processes: &[i32]) -> Duration {
    let clock = |pid: &i32| clock_getcpuclockid(Pid::from_raw(*pid)).and_then(ClockId::now).ok();
    processes.iter().filter_map(clock).map(Duration::from).sum()
}

/// CPU time in user and system mode of all children of this process that have ended so far.
pub(crate) fn children_cpu() -> Result<[Duration; 2]> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok([usage.user_time(), usage.system_time()]
        .map(|time| Duration::from_micros(time.num_microseconds().unsigned_abs())))
}

/// Memory of these processes in bytes, shared pages counted in proportion (PSS).
pub(crate) fn memory_bytes(processes: &[i32]) -> u64 {
    let pss = |pid: &i32| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
    };
    processes.iter().filter_map(pss).sum::<u64>() * 1024
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_parent_is_found_behind_any_name() {
        assert_eq!(parent_of("12 (a b) S) S 7 12 12"), Some(7));
        assert_eq!(parent_of("12"), None);
    }

    #[test]
    fn a_tree_holds_grandchildren_and_their_cpu_time_is_seen() {
        let script = "sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; read end' & wait";
        // A background job of a non-interactive shell reads /dev/null by default.
        let script = script.replace("read end'", "read end' <&3").replace("sh -c", "exec 3<&0; sh -c");
        let mut shell = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = [0; 5];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut said).unwrap();

        let all = tree(shell.id() as i32);
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(cpu_time(&all[1..]) > Duration::ZERO);
        assert!(memory_bytes(&all) > 4096);
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(cpu_time(&all[..1]), Duration::ZERO);
    }
}
