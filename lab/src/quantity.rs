//! What a cell may tell: a closed list of quantities, with units.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A quantity that a load, a meter or a procedure measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Quantity {
    Rate,
    /// Requests in a second of the server's CPU time: what decides where the client is the limit.
    RatePerCpu,
    Megabytes,
    /// Bodies that were complete in time, in megabits.
    GoodputMbit,
    TimeoutShare,
    CpuUs,
    ApplicationUs,
    ServerCpus,
    ClientCpus,
    P50Us,
    P99Us,
    MaxUs,
    IdleBytes,
    BodyBytes,
    Instructions,
    ClockLooks,
    DiskMegabytes,
    /// Of the load beside the measured one.
    BesideMegabytes,
    /// Of the measured load without the one beside it.
    AloneRate,
    AloneP99Us,
    /// While slow readers come.
    ComingRate,
    /// With all of them, as a part of the rate without.
    KeptRate,
    Served,
    Refused,
    FrontUs,
    NodesUs,
    AddedUs,
    FrontShare,
    Imbalance,
    DiskShare,
    SimulatedRate,
    StartP50Ms,
    StartP99Ms,
    OriginShare,
    /// In the simulator, as the next.
    SimulatedOriginShare,
    SimulatedDelayed,
    LostRequests,
    /// Kept connections that ended before an answer; the client asked again.
    EndedConnections,
    Copies,
    ByReference,
    /// Of all processes of a chain.
    RunUs,
    AnswersS,
    FoundS,
    FoundShare,
    HitShare,
    /// Until the load is spread.
    SpreadS,
    BeginRate,
    Lent,
    RedirectShare,
    UserUs,
    SystemUs,
    VoluntarySwitches,
    InvoluntarySwitches,
    MinorFaults,
    MajorFaults,
    SystemCalls,
    KernelCopyShare,
    UserCopyShare,
    /// Of server and application, in either mode.
    CopyUs,
    IoWait,
    FileCacheBytes,
    MemoryBytes,
    SegmentsReceived,
    SegmentsSent,
    SegmentsRepeated,
    /// Counted by the processor, those of the kernel included.
    HardwareInstructions,
    Cycles,
    CacheMisses,
    BranchMisses,
}

impl Quantity {
    /// Whether more of it is better.
    pub(crate) fn is_better_if_more(self) -> bool {
        matches!(
            self,
            Self::Rate
                | Self::RatePerCpu
                | Self::Megabytes
                | Self::GoodputMbit
                | Self::DiskMegabytes
                | Self::BesideMegabytes
                | Self::AloneRate
                | Self::ComingRate
                | Self::KeptRate
                | Self::Served
                | Self::SimulatedRate
                | Self::FoundShare
                | Self::HitShare
                | Self::BeginRate
                | Self::ByReference
        )
    }

    /// What the values of a cell say of it.
    pub(crate) fn of(self, values: &BTreeMap<Self, f64>) -> Option<f64> {
        match self {
            Self::RatePerCpu => values.get(&Self::CpuUs).filter(|us| **us > 0.0).map(|us| 1e6 / us),
            kept => values.get(&kept).copied(),
        }
    }

    /// For the axis of a figure.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Rate => "requests/s",
            Self::RatePerCpu => "requests/s of CPU time",
            Self::Megabytes => "MB/s",
            Self::GoodputMbit => "Mb/s in time",
            Self::TimeoutShare => "part of the requests that timed out",
            Self::CpuUs => "CPU µs/request",
            Self::ApplicationUs => "CPU µs/request of the application",
            Self::ServerCpus => "CPUs of the server",
            Self::ClientCpus => "CPUs of the client",
            Self::P50Us => "median latency, µs",
            Self::P99Us => "99 % latency, µs",
            Self::MaxUs => "worst latency, µs",
            Self::IdleBytes => "bytes/idle connection",
            Self::BodyBytes => "bytes of a body",
            Self::Instructions => "instructions/request",
            Self::ClockLooks => "looks at a clock/request",
            Self::DiskMegabytes => "MB/s from disk",
            Self::BesideMegabytes => "MB/s of the load beside",
            Self::AloneRate => "requests/s alone",
            Self::AloneP99Us => "99 % latency alone, µs",
            Self::ComingRate => "requests/s while slow readers come",
            Self::KeptRate => "part of the rate kept beside slow readers",
            Self::Served => "slow readers served",
            Self::Refused => "slow readers refused",
            Self::FrontUs => "CPU µs/request of the front-end",
            Self::NodesUs => "CPU µs/request of the nodes",
            Self::AddedUs => "CPU µs/request of client, front-end and nodes",
            Self::FrontShare => "bytes through the front-end per byte of a body",
            Self::Imbalance => "bytes of the busiest node to the mean",
            Self::DiskShare => "bytes from disks per byte of a body",
            Self::SimulatedRate => "requests/s in the simulator",
            Self::StartP50Ms => "ms until a session starts, median",
            Self::StartP99Ms => "ms until a session starts, 99 %",
            Self::OriginShare => "bytes of nodes per byte of a body",
            Self::SimulatedOriginShare => "bytes of the origin per byte of a body in the simulator",
            Self::SimulatedDelayed => "% of starts that miss in the simulator",
            Self::LostRequests => "requests without a right answer",
            Self::EndedConnections => "kept connections ended before an answer",
            Self::Copies => "copied bytes per byte of a body",
            Self::ByReference => "bytes by reference per byte of a body",
            Self::RunUs => "CPU µs/run",
            Self::AnswersS => "s until it answers",
            Self::FoundS => "s until all is found",
            Self::FoundShare => "part of the objects found again",
            Self::HitShare => "part of a sample that the origin was not asked for",
            Self::SpreadS => "s until the load is spread",
            Self::BeginRate => "documents/s at first",
            Self::Lent => "documents lent",
            Self::RedirectShare => "redirects per document",
            Self::UserUs => "user µs/request",
            Self::SystemUs => "system µs/request",
            Self::VoluntarySwitches => "voluntary context switches/request",
            Self::InvoluntarySwitches => "involuntary context switches/request",
            Self::MinorFaults => "page faults from memory/request",
            Self::MajorFaults => "page faults from disk/request",
            Self::SystemCalls => "system calls/request",
            Self::KernelCopyShare => "% of CPU time in copies between user and kernel",
            Self::UserCopyShare => "% of CPU time in copies within user mode",
            Self::CopyUs => "CPU µs/request in copies",
            Self::IoWait => "CPUs that wait for a disk",
            Self::FileCacheBytes => "bytes of files in memory",
            Self::MemoryBytes => "bytes of memory",
            Self::SegmentsReceived => "TCP segments received/request",
            Self::SegmentsSent => "TCP segments sent/request",
            Self::SegmentsRepeated => "TCP segments repeated/request",
            Self::HardwareInstructions => "instructions/request, the kernel's included",
            Self::Cycles => "cycles/request",
            Self::CacheMisses => "cache misses/request",
            Self::BranchMisses => "branch misses/request",
        }
    }
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
