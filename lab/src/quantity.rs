//! What a cell may tell: a closed list of quantities, with units.

use std::collections::BTreeMap;
use std::fmt;

use baton_figures::Better;
use serde::de::IntoDeserializer;
use serde::de::value::Error;
use serde::{Deserialize, Deserializer, Serialize};

macro_rules! quantities {
    ($($name:ident, $better:ident, $unit:literal;)*) => {
        /// A quantity that a load, a meter or a procedure measures.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Quantity {
            $(#[doc = $unit] $name,)*
        }

        impl Quantity {
            /// Whether more of it is better, or less.
            pub(crate) fn better(self) -> Better {
                match self {
                    $(Self::$name => Better::$better,)*
                }
            }

            /// For the axis of a figure.
            pub(crate) fn unit(self) -> &'static str {
                match self {
                    $(Self::$name => $unit,)*
                }
            }
        }
    };
}

// `RatePerCpu` decides where the client is the limit.
quantities! {
    Rate, More, "requests/s";
    RatePerCpu, More, "requests/s of CPU time";
    Megabytes, More, "MB/s";
    GoodputMbit, More, "Mb/s in time";
    CpuUs, Less, "CPU µs/request";
    ClientCpus, Less, "CPUs of the client";
    P50Us, Less, "median latency, µs";
    P99Us, Less, "99 % latency, µs";
    MaxUs, Less, "worst latency, µs";
    IdleBytes, Less, "bytes/idle connection";
    BodyBytes, Less, "bytes of a body";
    Instructions, Less, "instructions/request";
    ClockLooks, Less, "looks at a clock/request";
    KeptRate, More, "part of the rate kept beside slow readers";
    Served, More, "slow readers served";
    FrontUs, Less, "CPU µs/request of the front-end";
    NodesUs, Less, "CPU µs/request of the nodes";
    AddedUs, Less, "CPU µs/request of client, front-end and nodes";
    DiskShare, Less, "bytes from disks per byte of a body";
    SimulatedRate, More, "requests/s in the simulator";
    StartP50Ms, Less, "ms until a session starts, median";
    StartP99Ms, Less, "ms until a session starts, 99 %";
    OriginShare, Less, "bytes of nodes per byte of a body";
    SimulatedOriginShare, Less, "bytes of the origin per byte of a body in the simulator";
    SimulatedDelayed, Less, "% of starts that miss in the simulator";
    LostRequests, Less, "requests without a right answer";
    EndedConnections, Less, "kept connections ended before an answer";
    Copies, Less, "copied bytes per byte of a body";
    RunUs, Less, "CPU µs/run";
    AnswersS, Less, "s until it answers";
    FoundS, Less, "s until all is found";
    FoundShare, More, "part of the objects found again";
    HitShare, More, "part of a sample that the origin was not asked for";
    SpreadS, Less, "s until the load is spread";
    UserUs, Less, "user µs/request";
    SystemUs, Less, "system µs/request";
    VoluntarySwitches, Less, "voluntary context switches/request";
    InvoluntarySwitches, Less, "involuntary context switches/request";
    SystemCalls, Less, "system calls/request";
    KernelCopyShare, Less, "% of CPU time in copies between user and kernel";
    UserCopyShare, Less, "% of CPU time in copies within user mode";
    CopyUs, Less, "CPU µs/request in copies";
    IoWait, Less, "CPUs that wait for a disk";
    FileCacheBytes, Less, "bytes of files in memory";
    MemoryBytes, Less, "bytes of memory";
    SegmentsReceived, Less, "TCP segments received/request";
    SegmentsSent, Less, "TCP segments sent/request";
    SegmentsRepeated, Less, "TCP segments repeated/request";
    HardwareInstructions, Less, "instructions/request, the kernel's included";
    Cycles, Less, "cycles/request";
    CacheMisses, Less, "cache misses/request";
    BranchMisses, Less, "branch misses/request";
}

impl Quantity {
    /// What the values of a cell say of it.
    pub(crate) fn of(self, values: &BTreeMap<Self, f64>) -> Option<f64> {
        match self {
            Self::RatePerCpu => values.get(&Self::CpuUs).filter(|us| **us > 0.0).map(|us| 1e6 / us),
            kept => values.get(&kept).copied(),
        }
    }
}

/// The values of a recorded cell: what earlier labs told besides is not read.
pub(crate) fn known<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<Quantity, f64>, D::Error> {
    let all = BTreeMap::<String, f64>::deserialize(from)?;
    let known = |(name, value): (String, f64)| {
        let name: Result<_, Error> = Quantity::deserialize(name.as_str().into_deserializer());
        Some((name.ok()?, value))
    };
    Ok(all.into_iter().filter_map(known).collect())
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_cpu_follows_from_the_cpu_time_of_a_request() {
        let values = BTreeMap::from([(Quantity::Rate, 7.0), (Quantity::CpuUs, 20.0)]);
        assert_eq!(Quantity::Rate.of(&values), Some(7.0));
        assert_eq!(Quantity::RatePerCpu.of(&values), Some(50_000.0));
        let unknown = BTreeMap::from([(Quantity::CpuUs, 0.0)]);
        assert_eq!((Quantity::Rate.of(&unknown), Quantity::RatePerCpu.of(&unknown)), (None, None));
    }
}
