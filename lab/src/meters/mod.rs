//! Meters: what a server used between two moments.
//!
//! ```text
//! MeterName ──begin──> Meter ──end──> Vec<Reading>    { quantity, per what, value or why not here }
//! ```
//!
//! A meter that this machine cannot have ends no cell: its readings say why they are not here. Meters read counts that the
//! kernel keeps anyway; `system-calls` and `hardware` make it count, `copies` samples the processes a thousand times a
//! second.

mod counts;
mod events;
mod meter;
mod profile;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use meter::{Growth, Meter, State};
pub use meter::{Per, Reading, Watched};

use crate::quantity::Quantity;

/// A meter, as experiments name it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeterName {
    /// CPU time: exact as a sum, in user and system mode as the kernel's ticks divide it.
    Cpu,
    /// Context switches of all threads.
    Switches,
    /// System calls, counted by the kernel.
    SystemCalls,
    /// CPU time of copies between user and kernel and within user mode, as shares of samples.
    Copies,
    /// Time that CPUs waited for disks.
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
    /// What it reads.
    pub fn readings(self) -> &'static [(Quantity, Per)] {
        match self {
            Self::Cpu => &[(Quantity::UserUs, Per::RequestUs), (Quantity::SystemUs, Per::RequestUs)],
            Self::Switches => {
                &[(Quantity::VoluntarySwitches, Per::Request), (Quantity::InvoluntarySwitches, Per::Request)]
            }
            Self::SystemCalls => &[(Quantity::SystemCalls, Per::Request)],
            Self::Copies => {
                &[(Quantity::KernelCopyShare, Per::Nothing), (Quantity::UserCopyShare, Per::Nothing)]
            }
            Self::Waiting => &[(Quantity::IoWait, Per::Second)],
            Self::FileCache => &[(Quantity::FileCacheBytes, Per::Nothing)],
            Self::Memory => &[(Quantity::MemoryBytes, Per::Nothing)],
            Self::Packets => &[
                (Quantity::SegmentsReceived, Per::Request),
                (Quantity::SegmentsSent, Per::Request),
                (Quantity::SegmentsRepeated, Per::Request),
            ],
            Self::Hardware => &[
                (Quantity::HardwareInstructions, Per::Request),
                (Quantity::Cycles, Per::Request),
                (Quantity::CacheMisses, Per::Request),
                (Quantity::BranchMisses, Per::Request),
            ],
        }
    }

    fn begin(self, watched: &Watched) -> Result<Box<dyn Meter>> {
        Ok(match self {
            Self::Cpu => Growth::begin(watched, counts::cpu, counts::modes)?,
            Self::Switches => Growth::begin(watched, counts::switches, Vec::from)?,
            Self::SystemCalls => Box::new(events::Events::system_calls(watched)?),
            Self::Copies => Box::new(profile::Profile::begin(watched)?),
            Self::Waiting => Growth::begin(watched, counts::waiting, Vec::from)?,
            Self::FileCache => Box::new(State(counts::file_cache)),
            Self::Memory => Box::new(State(counts::memory)),
            Self::Packets => Growth::begin(watched, counts::packets, Vec::from)?,
            Self::Hardware => Box::new(events::Events::hardware(watched)?),
        })
    }

    /// Its readings, or why this machine or this server has none.
    fn of(self, values: Result<Vec<f64>>) -> Vec<Reading> {
        let value = |at: usize| match &values {
            Ok(values) => Ok(values[at]),
            Err(error) => Err(format!("{error:#}")),
        };
        let read = self.readings().iter().enumerate();
        read.map(|(at, &(quantity, per))| Reading { quantity, per, value: value(at) }).collect()
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
            all.push((name, name.of(meter.and_then(|meter| meter.end(watched)))));
        }
        all.sort_by_key(|(name, _)| *name);
        all.into_iter().flat_map(|(_, readings)| readings).collect()
    }
}
