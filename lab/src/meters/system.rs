//! What the kernel counts for CPUs, control groups, networks and memory.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::meter::{Counts, Watched};
use crate::rig::Groups;
use crate::rig::network::counter_in;
use crate::rig::processes::memory_bytes;

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
