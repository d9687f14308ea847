//! Meters: what a server used between two moments, by name, with a unit.
//!
//! ```text
//! MeterName ──begin──> Meter ──end──> Vec<Reading>    { name, unit, value or why not here }
//! ```
//!
//! A meter that this machine cannot have ends no cell: its readings say why they are not here. Meters read counts that the
//! kernel keeps anyway; `system-calls` and `hardware` make it count, `copies` samples the processes a thousand times a
//! second.

mod events;
mod meter;
mod profile;
mod system;
mod tasks;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use meter::Meter;
pub use meter::{Reading, Watched};

/// A meter, as experiments name it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeterName {
    /// CPU time: exact as a sum, in user and system mode as the kernel's ticks divide it.
    Cpu,
    /// Context switches, and page faults that read nothing and that read a disk.
    Switches,
    /// System calls, counted by the kernel.
    SystemCalls,
    /// CPU time of copies between user and kernel and within user mode, as shares of samples.
    Copies,
    /// Time that CPUs waited for disks, and bytes that processes read from them.
    Waiting,
    /// Bytes of files that the server's control groups keep in memory.
    FileCache,
    /// Memory, shared pages counted in proportion.
    Memory,
    /// TCP segments in the server's network.
    Packets,
    /// Instructions, cycles, misses of caches and branches.
    Hardware,
}

/// Meters that have begun together.
pub struct Meters {
    begun: Vec<(MeterName, Result<Box<dyn Meter>>)>,
}

impl MeterName {
    /// Names and units of its readings.
    pub fn readings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Cpu => tasks::CPU,
            Self::Switches => tasks::SWITCHES,
            Self::SystemCalls => events::SYSTEM_CALLS,
            Self::Copies => profile::SHARES,
            Self::Waiting => system::WAITING,
            Self::FileCache => system::FILE_CACHE,
            Self::Memory => system::MEMORY,
            Self::Packets => system::PACKETS,
            Self::Hardware => events::HARDWARE,
        }
    }

    fn begin(self, watched: &Watched) -> Result<Box<dyn Meter>> {
        Ok(match self {
            Self::Cpu => Box::new(tasks::Cpu::begin(watched)),
            Self::Switches => Box::new(tasks::Switches::begin(watched)),
            Self::SystemCalls => Box::new(events::Events::system_calls(watched)?),
            Self::Copies => Box::new(profile::Profile::begin(watched)?),
            Self::Waiting => Box::new(system::Waiting::begin(watched)?),
            Self::FileCache => Box::new(system::FileCache),
            Self::Memory => Box::new(system::Memory::begin(watched)),
            Self::Packets => Box::new(system::Packets::begin(watched)?),
            Self::Hardware => Box::new(events::Events::hardware(watched)?),
        })
    }

    /// The readings of a meter that this machine or this server cannot have.
    fn not_here(self, error: &anyhow::Error) -> Vec<Reading> {
        let because = format!("{error:#}");
        self.readings()
            .iter()
            .map(|(name, unit)| Reading { name, unit, value: Err(because.clone()) })
            .collect()
    }
}

impl Meters {
    /// Begins to measure.
    pub fn begin(names: &[MeterName], watched: &Watched) -> Self {
        // The least disturbing ones begin last and so count the least of the others.
        let mut names = names.to_vec();
        names.sort_by_key(|name| *name == MeterName::Cpu);
        Self { begun: names.into_iter().map(|name| (name, name.begin(watched))).collect() }
    }

    /// What happened since the begin, in the order of the meters.
    pub fn end(self, watched: &Watched) -> Vec<Reading> {
        let mut all = Vec::new();
        for (name, meter) in self.begun.into_iter().rev() {
            let readings = meter.and_then(|meter| meter.end(watched));
            all.push((name, readings.unwrap_or_else(|error| name.not_here(&error))));
        }
        all.sort_by_key(|(name, _)| *name);
        all.into_iter().flat_map(|(_, readings)| readings).collect()
    }
}
