//! Boxes: each server with a share of a CPU, of memory and of a disk, so that small loads overload it on purpose.
//!
//! A tenth of a CPU is overloaded by a client that has a whole one; memory for half of the requested files makes the disk
//! decide. Only root makes control groups and mounts volumes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Result, ensure};
use rustix::process::getuid;
use serde::Deserialize;

use super::group::{DiskBound, Groups, Throttle, sum};
use super::volume::{Image, Volume};

/// The bounds of each server's box, as an experiment names them; what is missing is unbounded.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct BoxSettings {
    /// The part of one CPU that all its processes together may use.
    pub cpu: Option<f64>,
    /// Its memory, with the files that it keeps there.
    pub memory: Option<MemoryBound>,
    /// MB (10^6 bytes) that its disk reads in a second. The disk is its own, and so is what the kernel keeps of it.
    pub disk_mb_s: Option<f64>,
    /// KiB that the kernel reads ahead from that disk.
    #[serde(default = "read_ahead_kb")]
    pub read_ahead_kb: u32,
}

/// How much memory: `"200 MiB"` or `"55 % of the requested set"`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(try_from = "String")]
pub enum MemoryBound {
    /// So many MiB.
    Mib(u64),
    /// So many hundredths of the files that are asked for.
    PercentOfSet(f64),
}

impl MemoryBound {
    fn bytes(self, set_bytes: u64) -> u64 {
        match self {
            Self::Mib(mib) => mib << 20,
            Self::PercentOfSet(percent) => (set_bytes as f64 * percent / 100.0) as u64,
        }
    }
}

impl TryFrom<String> for MemoryBound {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let percent =
            text.strip_suffix("of the requested set").and_then(|rest| rest.trim_end().strip_suffix('%'));
        let found = match percent {
            Some(number) => number.trim().parse().ok().filter(|share| *share > 0.0).map(Self::PercentOfSet),
            None => text.strip_suffix("MiB").and_then(|number| number.trim().parse().ok()).map(Self::Mib),
        };
        found.ok_or_else(|| {
            format!("{text:?} is no memory: write \"200 MiB\" or \"55 % of the requested set\"")
        })
    }
}

/// Makes boxes of one size.
#[derive(Debug)]
pub struct Boxes {
    settings: BoxSettings,
    set_bytes: u64,
    groups: Groups,
    /// The disk of each, if it has a bound.
    image: Option<Image>,
    /// How many were made: a box that is not gone yet keeps its name.
    made: AtomicU32,
}

/// A box. [`Boxes::remove`] takes it away, or the end of [`Boxes`].
#[derive(Debug)]
pub struct ServerBox {
    groups: Vec<PathBuf>,
    throttles: Vec<Throttle>,
    volume: Option<Volume>,
}

impl Boxes {
    /// For servers of a site of so many bytes, which `fill` writes into a folder if the box has a disk.
    ///
    /// From now on SIGINT and SIGTERM take the boxes away before they end this process. Call it before there is another
    /// thread.
    ///
    /// # Errors
    /// If this process is not root's, the kernel has no control groups, or the disk cannot be made.
    pub fn new(
        settings: BoxSettings,
        set_bytes: u64,
        folder: &Path,
        fill: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Self> {
        ensure!(
            getuid().is_root(),
            "a box needs root: only root makes control groups and mounts volumes (run it by sudo)"
        );
        ensure!(
            settings.cpu.is_none_or(|cpu| (0.001..=1.0).contains(&cpu)),
            "a box has between 0.001 of a CPU and a whole one"
        );
        ensure!(settings.disk_mb_s.is_none_or(|rate| rate > 0.0), "a disk reads something: disk_mb_s > 0");
        let groups = Groups::new()?;
        let image_bytes = set_bytes * 11 / 10 + IMAGE_SPARE_BYTES;
        let image = settings.disk_mb_s.map(|_| Image::make(image_bytes, &folder.join("image"), fill));
        Ok(Self { settings, set_bytes, groups, image: image.transpose()?, made: AtomicU32::new(0) })
    }

    /// A box of this name; its disk is mounted in the folder. `memory`: instead of that of all.
    ///
    /// # Errors
    /// The kernel's error, with the name of the file.
    pub fn make(&self, name: &str, folder: &Path, memory: Option<MemoryBound>) -> Result<ServerBox> {
        let mount = |image: &Image| image.mount(&folder.join("root"), self.settings.read_ahead_kb);
        let volume = self.image.as_ref().map(mount).transpose()?;
        let memory_bytes = memory.or(self.settings.memory).map(|memory| memory.bytes(self.set_bytes));
        let disk = volume
            .as_ref()
            .zip(self.settings.disk_mb_s)
            .map(|(volume, rate)| DiskBound { device: volume.device, read_bytes_per_s: (rate * 1e6) as u64 });
        let name = format!("{}-{name}", self.made.fetch_add(1, Ordering::Relaxed));
        let (groups, throttles) = self.groups.make(&name, memory_bytes, disk, self.settings.cpu)?;
        Ok(ServerBox { groups, throttles, volume })
    }

    /// Takes a box away whose server has ended.
    ///
    /// # Errors
    /// If a process in it does not end.
    pub fn remove(&self, server_box: ServerBox) -> Result<()> {
        // The groups first: processes that did not end use the volume.
        self.groups.remove(&server_box.groups)?;
        server_box.volume.map_or(Ok(()), Volume::unmount)
    }
}

impl ServerBox {
    /// What its processes enter.
    pub fn groups(&self) -> &[PathBuf] {
        &self.groups
    }

    /// Bounds disk and CPU again.
    ///
    /// # Errors
    /// The kernel's error, with the name of the file.
    pub fn bind(&self) -> Result<()> {
        self.throttles.iter().try_for_each(|throttle| throttle.set(true))
    }

    /// Lets its processes have all of disk and CPU for a while; memory stays bounded.
    ///
    /// # Errors
    /// The kernel's error, with the name of the file.
    pub fn lift(&self) -> Result<()> {
        self.throttles.iter().try_for_each(|throttle| throttle.set(false))
    }

    /// The folder of its disk, which has the site, if it has a disk.
    pub fn root(&self) -> Option<&Path> {
        self.volume.as_ref().map(|volume| &*volume.folder)
    }

    /// Bytes that its disk has read so far.
    ///
    /// # Errors
    /// If the kernel's account cannot be read.
    pub fn disk_bytes(&self) -> Result<Option<u64>> {
        self.volume.as_ref().map(Volume::bytes_read).transpose()
    }

    /// Bytes of files that it keeps in memory.
    pub fn file_bytes(&self) -> u64 {
        Groups::file_bytes(self.groups())
    }

    /// How often the kernel killed a process in it for want of memory.
    pub fn memory_kills(&self) -> u64 {
        sum(&self.groups, "memory.oom_control", "oom_kill") + sum(&self.groups, "memory.events", "oom_kill")
    }

    /// How often its processes had to wait because their share of the CPU was used up.
    pub fn throttled(&self) -> u64 {
        sum(&self.groups, "cpu.stat", "nr_throttled")
    }
}

/// The kernel's own choice for disks.
fn read_ahead_kb() -> u32 {
    128
}

/// The overhead of a file system.
const IMAGE_SPARE_BYTES: u64 = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_a_number_or_a_share() {
        let read = |text: &str| MemoryBound::try_from(text.to_owned());
        assert_eq!(read("200 MiB").unwrap().bytes(0), 200 << 20);
        assert_eq!(read("55 % of the requested set").unwrap().bytes(1_000), 550);
        for wrong in ["55 %", "200 MB", "x MiB", "0 % of the requested set", ""] {
            let why = read(wrong).unwrap_err();
            assert!(why.contains("55 % of the requested set"), "{why}");
        }
    }
}
