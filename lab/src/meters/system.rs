//! What the kernel counts for CPUs, control groups, networks and memory.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};

use super::meter::{Meter, Watched};
use crate::rig::Groups;
use crate::rig::processes::memory_bytes;

/// Ticks that the CPUs had nothing to do but to wait for a disk, when the meter began.
pub(super) struct Waiting(u64);

impl Waiting {
    pub(super) fn begin(watched: &Watched) -> Result<Self> {
        let text = fs::read_to_string("/proc/stat").context("/proc/stat")?;
        let ticks = watched.cpus.iter().map(|cpu| waited(&text, *cpu)).sum::<Option<u64>>();
        Ok(Self(ticks.context("/proc/stat knows not all CPUs")?))
    }
}

impl Meter for Waiting {
    fn end(self: Box<Self>, watched: &Watched) -> Result<Vec<f64>> {
        Ok(vec![(Self::begin(watched)?.0 - self.0) as f64 / TICKS_PER_S])
    }
}

fn waited(text: &str, cpu: usize) -> Option<u64> {
    let name = format!("cpu{cpu} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&name))?;
    line.split_ascii_whitespace().nth(4)?.parse().ok()
}

/// Bytes of files in memory: a state, not a difference.
pub(super) struct FileCache;

impl Meter for FileCache {
    fn end(self: Box<Self>, watched: &Watched) -> Result<Vec<f64>> {
        ensure!(!watched.groups.is_empty(), "the server has no control group, whose files alone are counted");
        Ok(vec![Groups::file_bytes(&watched.groups) as f64])
    }
}

/// Memory at the end: a state, too.
pub(super) struct Memory;

impl Meter for Memory {
    fn end(self: Box<Self>, watched: &Watched) -> Result<Vec<f64>> {
        Ok(vec![memory_bytes(&watched.tree().into_iter().collect::<Vec<_>>()) as f64])
    }
}

/// Segments in and out, and repeated ones, when the meter began.
pub(super) struct Packets([u64; 3]);

impl Packets {
    pub(super) fn begin(watched: &Watched) -> Result<Self> {
        let pid = watched.processes.first().context("no process is left")?;
        // The network of the server, which may be another host's.
        let file = format!("/proc/{pid}/net/snmp");
        let text = fs::read_to_string(&file).with_context(|| file.clone())?;
        Ok(Self(segments(&text).context(file)?))
    }
}

impl Meter for Packets {
    fn end(self: Box<Self>, watched: &Watched) -> Result<Vec<f64>> {
        let now = Self::begin(watched)?.0;
        Ok(now.iter().zip(self.0).map(|(now, before)| (now - before) as f64).collect())
    }
}

/// From the two lines of TCP: names, then values.
fn segments(text: &str) -> Option<[u64; 3]> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let fields: BTreeMap<&str, &str> = names.split(' ').zip(values.split(' ')).collect();
    let field = |name| fields.get(name)?.parse().ok();
    Some([field("InSegs")?, field("OutSegs")?, field("RetransSegs")?])
}

/// Of `/proc/stat`, on all architectures that have two CPUs or more to measure on.
const TICKS_PER_S: f64 = 100.0;
