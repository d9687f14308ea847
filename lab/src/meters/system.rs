//! What the kernel counts for CPUs, control groups, networks and memory.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};

use super::meter::{Meter, Reading, Watched, readings};
use crate::rig::Groups;
use crate::rig::processes::memory_bytes;

pub(super) const WAITING: &[(&str, &str)] = &[("io_wait_s", "s"), ("disk_read_bytes", "bytes")];
pub(super) const FILE_CACHE: &[(&str, &str)] = &[("file_cache_bytes", "bytes")];
pub(super) const MEMORY: &[(&str, &str)] = &[("memory_bytes", "bytes"), ("memory_growth_bytes", "bytes")];
pub(super) const PACKETS: &[(&str, &str)] =
    &[("segments_received", ""), ("segments_sent", ""), ("segments_repeated", "")];

/// Ticks that the CPUs waited, and bytes that each process read, when the meter began.
pub(super) struct Waiting {
    ticks: u64,
    read: BTreeMap<i32, u64>,
}

impl Waiting {
    pub(super) fn begin(watched: &Watched) -> Result<Self> {
        let text = fs::read_to_string("/proc/stat").context("/proc/stat")?;
        let ticks = watched.cpus.iter().map(|cpu| waited(&text, *cpu)).sum::<Option<u64>>();
        let ticks = ticks.context("/proc/stat knows not all CPUs")?;
        let read = watched.tree().into_iter().map(|pid| Ok((pid, read_bytes(pid)?)));
        Ok(Self { ticks, read: read.collect::<Result<_>>()? })
    }
}

impl Meter for Waiting {
    fn end(self: Box<Self>, watched: &Watched) -> Result<Vec<Reading>> {
        let now = Self::begin(watched)?;
        let since = |(pid, bytes): (&i32, &u64)| bytes - self.read.get(pid).copied().unwrap_or_default();
        let read: u64 = now.read.iter().map(since).sum();
        Ok(readings(WAITING, [(now.ticks - self.ticks) as f64 / TICKS_PER_S, read as f64]))
    }
}

/// Ticks that this CPU had nothing to do but to wait for a disk.
fn waited(text: &str, cpu: usize) -> Option<u64> {
    let name = format!("cpu{cpu} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&name))?;
    line.split_ascii_whitespace().nth(4)?.parse().ok()
}

/// Bytes that the process caused to be read from disks; read-ahead counts for the process that caused it.
fn read_bytes(pid: i32) -> Result<u64> {
    let file = format!("/proc/{pid}/io");
    let text = fs::read_to_string(&file).with_context(|| file.clone())?;
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.context("no read_bytes")?.parse().context(file)
}

/// Bytes of files in memory: a state, not a difference.
pub(super) struct FileCache;

impl Meter for FileCache {
    fn end(self: Box<Self>, watched: &Watched) -> Result<Vec<Reading>> {
        ensure!(!watched.groups.is_empty(), "the server has no control group, whose files alone are counted");
        Ok(readings(FILE_CACHE, [Groups::file_bytes(&watched.groups) as f64]))
    }
}

/// Memory when the meter began: before connections are opened, so that the growth is theirs.
pub(super) struct Memory(u64);

impl Memory {
    pub(super) fn begin(watched: &Watched) -> Self {
        Self(Self::now(watched))
    }

    fn now(watched: &Watched) -> u64 {
        memory_bytes(&watched.tree().into_iter().collect::<Vec<_>>())
    }
}

impl Meter for Memory {
    fn end(self: Box<Self>, watched: &Watched) -> Result<Vec<Reading>> {
        let now = Self::now(watched);
        Ok(readings(MEMORY, [now as f64, now as f64 - self.0 as f64]))
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
    fn end(self: Box<Self>, watched: &Watched) -> Result<Vec<Reading>> {
        let now = Self::begin(watched)?;
        let since = [0, 1, 2].map(|field| (now.0[field] - self.0[field]) as f64);
        Ok(readings(PACKETS, since))
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
