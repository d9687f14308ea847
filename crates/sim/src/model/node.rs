//! A back-end node: processors and disks with a queue each, and memory for files.

use baton_dispatch::FetchChoice;
use hashbrown::HashMap;

use super::NodeProfile;
use super::cache::Cache;
use crate::queueing::{Station, Work};
use crate::trace::TargetId;

/// A request in the cluster: an index into the simulation's table.
pub(crate) type RequestId = u32;

/// Work of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Establish the connection of a request.
    Establish(RequestId),
    /// Send a request the blocks in memory up to this one.
    Send { request: RequestId, until: u32 },
    /// Send the rest, and tear the connection down.
    Finish(RequestId),
    /// Send a file to the node of a request, out of this one's memory.
    Lend { request: RequestId, loan: u64 },
    /// Send on to its client what another node has answered.
    Relay(RequestId),
    /// Give a connection back to its front-end.
    GiveBack,
    /// Read the next block of a file.
    Read(TargetId),
}

/// Where a job is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StationId {
    Cpu,
    Disk(u32),
}

/// A file being read from a disk into memory. All requests for it share this read.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Blocks that are in memory.
    pub(crate) blocks_read: u32,
    pub(crate) blocks: u32,
    /// The first request asks for each next block when it has sent the last one.
    pub(crate) readers: Vec<RequestId>,
    /// When it was asked for.
    pub(crate) since_ns: u64,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) profile: NodeProfile,
    pub(crate) cpu: Station<Job>,
    pub(crate) disks: Vec<Station<Job>>,
    pub(crate) cache: Cache,
    pub(crate) reading: HashMap<TargetId, Reading, foldhash::fast::FixedState>,
    /// Whether it reads a file or fetches it.
    pub(crate) fetches: FetchChoice,
    /// Requests here.
    pub(crate) load: u32,
    /// Grows when the node fails, which invalidates its scheduled events.
    pub(crate) life: u32,
    pub(crate) is_up: bool,
    /// Its remaining parts.
    pub(crate) parts: Parts,
}

/// How many of a node's equal parts work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Parts {
    pub(crate) working: u32,
    pub(crate) all: u32,
}

impl Parts {
    pub(crate) const WHOLE: Self = Self { working: 1, all: 1 };

    /// The share of a node that works, 0 to 1.
    pub(crate) fn share(self) -> f64 {
        f64::from(self.working) / f64::from(self.all)
    }

    fn of_bytes(self, bytes: u64) -> u64 {
        (bytes as f64 * self.share()) as u64
    }

    /// The share of so many, rounded up.
    fn of(self, count: u32) -> u32 {
        (u64::from(count) * u64::from(self.working)).div_ceil(u64::from(self.all)) as u32
    }
}

impl Node {
    pub(crate) fn new(profile: NodeProfile) -> Self {
        let disk = || Station::new(profile.reads_per_disk);
        let file_bytes_max = match profile.replacement {
            super::Replacement::Gds => u64::MAX,
            super::Replacement::Lru => profile.lru_file_bytes_max,
        };
        Self {
            profile,
            cpu: Station::new(profile.cpus),
            disks: (0..profile.disks).map(|_| disk()).collect(),
            cache: Cache::new(profile.replacement, profile.cache_bytes, file_bytes_max),
            reading: HashMap::default(),
            fetches: FetchChoice::default(),
            load: 0,
            life: 0,
            is_up: true,
            parts: Parts::WHOLE,
        }
    }

    pub(crate) fn station(&mut self, place: StationId) -> &mut Station<Job> {
        match place {
            StationId::Cpu => &mut self.cpu,
            StationId::Disk(number) => &mut self.disks[number as usize],
        }
    }

    /// Which disk has the file of this rank.
    pub(crate) fn disk_of(&self, rank: u32) -> StationId {
        StationId::Disk(rank % self.profile.disks)
    }

    /// The work of reading a file's next block.
    pub(crate) fn read(&self, target: TargetId, bytes: u64, block: u32) -> Work<Job> {
        Work { job: Job::Read(target), ns: self.profile.read_ns(bytes, block) }
    }

    /// Loses one of so many parts, and the files that are not `kept`. Work in progress is finished.
    pub(crate) fn lose_part(&mut self, of: u32, kept: impl Fn(TargetId) -> bool) {
        let all = of.max(2);
        self.parts = Parts { working: all - 1, all };
        self.cache.shrink(self.parts.of_bytes(self.profile.cache_bytes), kept);
        // Nothing begins where there are fewer to do it.
        self.resize_stations();
    }

    /// All parts work again. Returns what begins on the one that came back.
    pub(crate) fn regain_parts(&mut self) -> Vec<(StationId, Work<Job>)> {
        self.parts = Parts::WHOLE;
        self.resize_stations()
    }

    /// A file comes into memory. A part that came back has no disk but its own to fill its memory from: one of those that
    /// are reading.
    pub(crate) fn handle_kept(&mut self, bytes: u64) {
        let capacity_bytes = self.cache.capacity_bytes();
        if self.parts == Parts::WHOLE && capacity_bytes < self.profile.cache_bytes {
            let reading: u32 = self.disks.iter().map(Station::busy).sum();
            let filled = bytes / u64::from(reading.max(1));
            self.cache.grow((capacity_bytes + filled).min(self.profile.cache_bytes));
        }
    }

    fn resize_stations(&mut self) -> Vec<(StationId, Work<Job>)> {
        let (cpus, reads) = (self.parts.of(self.profile.cpus), self.parts.of(self.profile.reads_per_disk));
        let begun = self.cpu.resize(cpus).into_iter().map(|work| (StationId::Cpu, work));
        let disks = (0..).map(StationId::Disk).zip(&mut self.disks);
        begun
            .chain(
                disks.flat_map(|(place, disk)| disk.resize(reads).into_iter().map(move |work| (place, work))),
            )
            .collect()
    }

    /// Loses all it has.
    pub(crate) fn fail(&mut self) {
        self.life += 1;
        self.is_up = false;
        self.load = 0;
        self.cpu.clear();
        self.disks.iter_mut().for_each(Station::clear);
        self.cache.clear();
        self.reading.clear();
    }
}

/// A node of some weight, in hundredths of the standard one: faster by that, and with more memory.
pub(crate) fn weighted(standard: &NodeProfile, weight: u32) -> NodeProfile {
    let factor = f64::from(weight) / f64::from(baton_dispatch::STANDARD_WEIGHT);
    NodeProfile {
        cpu_speed: standard.cpu_speed * factor,
        disk_latency_us: standard.disk_latency_us / factor,
        disk_us_per_4k: standard.disk_us_per_4k / factor,
        further_block_us: standard.further_block_us / factor,
        cache_bytes: (standard.cache_bytes as f64 * factor) as u64,
        ..*standard
    }
}
