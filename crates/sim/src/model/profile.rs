//! The hardware of a node and the costs of work on it.
//!
//! The published machine is a Pentium II at 300 MHz with one disk (Pai, 1999, section 3.2.1). Everything is a
//! setting, to describe other machines.

use std::ops::RangeInclusive;

use serde::Serialize;

/// A kind of node. As settings: `cpus=8,cache_mb=4096,transmit_us_per_512=0.1`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NodeProfile {
    /// Computing time to establish a connection, in microseconds.
    pub establish_us: f64,
    /// Computing time to tear a connection down, in microseconds.
    pub teardown_us: f64,
    /// Computing time to send 512 bytes, in microseconds.
    pub transmit_us_per_512: f64,
    /// Computing time of an application for an answer, besides sending it, in microseconds.
    pub dynamic_us: f64,
    /// How much faster than that the processors are.
    pub cpu_speed: f64,
    /// Processors; work goes to a free one.
    pub cpus: u32,
    /// Time until the first byte of a file is read, in microseconds.
    pub disk_latency_us: f64,
    /// Time to read 4096 bytes, in microseconds.
    pub disk_us_per_4k: f64,
    /// Longer files are read in blocks of this size, in bytes; a block is sent right after it is read.
    pub block_bytes: u32,
    /// Additional time for each block but the first, in microseconds.
    pub further_block_us: f64,
    /// Disks; files are dealt to them in turn by falling frequency.
    pub disks: u32,
    /// Reads that a disk does at the same time, each at the speed above.
    pub reads_per_disk: u32,
    /// Memory for files, in bytes.
    pub cache_bytes: u64,
    /// What goes when memory is full.
    pub replacement: Replacement,
    /// Under LRU, longer files are never cached; in bytes.
    pub lru_file_bytes_max: u64,
}

/// What goes when memory is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Replacement {
    /// Greedy-Dual-Size with equal costs: large and long unused.
    Gds,
    /// Least recently used.
    Lru,
}

impl NodeProfile {
    /// The machine of the source: Pentium II at 300 MHz, one disk, 32 MB for files.
    #[must_use]
    pub const fn published() -> Self {
        Self {
            establish_us: 145.0,
            teardown_us: 145.0,
            transmit_us_per_512: 40.0,
            // Not published: a process for each answer, at the prices of the time.
            dynamic_us: 10_000.0,
            cpu_speed: 1.0,
            cpus: 1,
            disk_latency_us: 28_000.0,
            disk_us_per_4k: 410.0,
            block_bytes: 44 << 10,
            further_block_us: 14_000.0,
            disks: 1,
            reads_per_disk: 1,
            cache_bytes: 32 << 20,
            replacement: Replacement::Gds,
            lru_file_bytes_max: 500 << 10,
        }
    }

    /// A small server of today: eight processors, one NVMe drive, 8 GB for files.
    ///
    /// Orders of magnitude, to be replaced by measured ones: accepting and closing a connection with one request
    /// costs some 25 µs of kernel and server; sending costs the kernel a copy and checksums at some 2.5 GB/s for each
    /// processor; the drive answers after 90 µs and reads 3 GB/s in 16 streams.
    #[must_use]
    pub const fn nvme() -> Self {
        Self {
            establish_us: 15.0,
            teardown_us: 10.0,
            transmit_us_per_512: 0.2,
            dynamic_us: 2_000.0,
            cpu_speed: 1.0,
            cpus: 8,
            disk_latency_us: 90.0,
            disk_us_per_4k: 21.0,
            block_bytes: 128 << 10,
            further_block_us: 10.0,
            disks: 1,
            reads_per_disk: 16,
            cache_bytes: 8 << 30,
            replacement: Replacement::Lru,
            lru_file_bytes_max: 1 << 30,
        }
    }

    /// The built-in profile of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "published" => Some(Self::published()),
            "nvme" => Some(Self::nvme()),
            _ => None,
        }
    }

    /// The names that [`Self::named`] knows.
    pub const NAMES: [&str; 2] = ["published", "nvme"];

    /// Changes settings, given as `name=value,…`.
    ///
    /// # Errors
    /// What is wrong, with the valid names.
    pub fn set(&mut self, settings: &str) -> Result<(), String> {
        for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
            let (name, value) =
                setting.split_once('=').ok_or_else(|| format!("the setting {setting:?} has no value"))?;
            self.set_one(name, value)?;
        }
        Ok(())
    }

    /// All settings with their values, as [`Self::set`] reads them.
    pub fn settings(&self) -> impl Iterator<Item = (&'static str, String)> {
        let replacement = match self.replacement {
            Replacement::Gds => "gds",
            Replacement::Lru => "lru",
        };
        let numbers = NUMERIC.iter().map(|setting| (setting.name, (setting.read)(self).to_string()));
        numbers.chain([("replacement", replacement.to_owned())])
    }

    fn set_one(&mut self, name: &str, value: &str) -> Result<(), String> {
        if name == "replacement" {
            self.replacement = match value {
                "gds" => Replacement::Gds,
                "lru" => Replacement::Lru,
                _ => return Err(format!("replacement cannot be {value:?}; there are gds and lru")),
            };
            return Ok(());
        }
        let Some(setting) = NUMERIC.iter().find(|setting| setting.name == name) else {
            let names = NUMERIC.iter().map(|setting| setting.name).collect::<Vec<_>>().join(", ");
            return Err(format!("there is no setting {name:?}; there are replacement, {names}"));
        };
        let range = &setting.range;
        let number = value.parse().ok().filter(|number| range.contains(number));
        let number = number.ok_or_else(|| {
            format!("{name} cannot be {value:?}; it is a number from {} to {}", range.start(), range.end())
        })?;
        (setting.write)(self, number);
        Ok(())
    }

    /// Computing time to send bytes, in nanoseconds.
    pub(crate) fn transmit_ns(&self, bytes: u64) -> u64 {
        self.cpu_ns(bytes.div_ceil(512) as f64 * self.transmit_us_per_512)
    }

    /// Computing time given in microseconds of the profile, in nanoseconds of this node's processors.
    pub(crate) fn cpu_ns(&self, us: f64) -> u64 {
        (us / self.cpu_speed * 1000.0) as u64
    }

    /// Time to read a block of a file, in nanoseconds.
    pub(crate) fn read_ns(&self, bytes: u64, block: u32) -> u64 {
        let start = u64::from(block) * u64::from(self.block_bytes);
        let len = (bytes - start).min(self.block_bytes.into());
        let wait_us = if block == 0 { self.disk_latency_us } else { self.further_block_us };
        ((wait_us + len.div_ceil(4096) as f64 * self.disk_us_per_4k) * 1000.0) as u64
    }

    /// How many blocks a file has.
    pub(crate) fn blocks(&self, bytes: u64) -> u32 {
        bytes.div_ceil(self.block_bytes.into()) as u32
    }
}

/// A setting that is a number.
struct Numeric {
    name: &'static str,
    range: RangeInclusive<f64>,
    read: fn(&NodeProfile) -> f64,
    write: fn(&mut NodeProfile, f64),
}

const fn numeric(
    name: &'static str,
    range: RangeInclusive<f64>,
    read: fn(&NodeProfile) -> f64,
    write: fn(&mut NodeProfile, f64),
) -> Numeric {
    Numeric { name, range, read, write }
}

/// A day in microseconds.
const TIME: RangeInclusive<f64> = 0.0..=86.4e9;
const COUNT: RangeInclusive<f64> = 1.0..=1024.0;
const KB: f64 = 1024.0;
const MB: f64 = 1024.0 * 1024.0;

static NUMERIC: [Numeric; 14] = [
    numeric("establish_us", TIME, |node| node.establish_us, |node, us| node.establish_us = us),
    numeric("teardown_us", TIME, |node| node.teardown_us, |node, us| node.teardown_us = us),
    numeric(
        "transmit_us_per_512",
        TIME,
        |node| node.transmit_us_per_512,
        |node, us| node.transmit_us_per_512 = us,
    ),
    numeric("dynamic_us", TIME, |node| node.dynamic_us, |node, us| node.dynamic_us = us),
    numeric("cpus", COUNT, |node| node.cpus.into(), |node, count| node.cpus = count as u32),
    numeric("cpu_speed", 0.001..=1e6, |node| node.cpu_speed, |node, speed| node.cpu_speed = speed),
    numeric("disk_latency_us", TIME, |node| node.disk_latency_us, |node, us| node.disk_latency_us = us),
    numeric("disk_us_per_4k", TIME, |node| node.disk_us_per_4k, |node, us| node.disk_us_per_4k = us),
    numeric(
        "block_kb",
        1.0..=1e6,
        |node| f64::from(node.block_bytes) / KB,
        |node, kb| node.block_bytes = (kb * KB) as u32,
    ),
    numeric("further_block_us", TIME, |node| node.further_block_us, |node, us| node.further_block_us = us),
    numeric("disks", COUNT, |node| node.disks.into(), |node, count| node.disks = count as u32),
    numeric(
        "reads_per_disk",
        COUNT,
        |node| node.reads_per_disk.into(),
        |node, count| node.reads_per_disk = count as u32,
    ),
    numeric(
        "cache_mb",
        0.0..=1e9,
        |node| node.cache_bytes as f64 / MB,
        |node, mb| node.cache_bytes = (mb * MB) as u64,
    ),
    numeric(
        "lru_file_kb_max",
        0.0..=1e12,
        |node| node.lru_file_bytes_max as f64 / KB,
        |node, kb| node.lru_file_bytes_max = (kb * KB) as u64,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// "An 8 KByte document can be served from the main memory cache at a rate of approximately 1075 requests/sec."
    #[test]
    fn the_published_costs_add_up() {
        let profile = NodeProfile::published();
        let ns = profile.cpu_ns(profile.establish_us + profile.teardown_us) + profile.transmit_ns(8 << 10);
        assert_eq!(1_000_000_000 / ns, 1075);
    }

    /// 28 ms, 410 µs for each 4 KB, and 14 ms more for each further 44 KB.
    #[test]
    fn files_are_read_in_blocks() {
        let profile = NodeProfile::published();
        let read = |bytes| -> Vec<u64> {
            (0..profile.blocks(bytes)).map(|block| profile.read_ns(bytes, block) / 1000).collect()
        };
        assert_eq!(read(1), [28_410]);
        assert_eq!(read(44 << 10), [28_000 + 11 * 410]);
        assert_eq!(read((44 << 10) + 1), [28_000 + 11 * 410, 14_410]);
        assert_eq!(read(100 << 10), [32_510, 18_510, 14_000 + 3 * 410]);
    }

    #[test]
    fn settings_are_read_and_refused() {
        let mut profile = NodeProfile::published();
        profile.set("cpus=4,cache_mb=0.5,replacement=lru").unwrap();
        assert_eq!((profile.cpus, profile.cache_bytes, profile.replacement), (4, 1 << 19, Replacement::Lru));
        for wrong in ["cpus", "cpus=0", "cpus=nan", "speed=2", "replacement=fifo"] {
            assert!(profile.set(wrong).is_err(), "{wrong}");
        }
        let mut copy = NodeProfile::published();
        for (name, value) in profile.settings() {
            copy.set(&format!("{name}={value}")).unwrap();
        }
        assert_eq!(copy, profile, "printed settings are read back");
        assert!(NodeProfile::NAMES.iter().all(|name| NodeProfile::named(name).is_some()));
    }
}
