//! What meters read, as quantities of a cell: counts for each request, times and shares of the span.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::meters::Reading;
use crate::quantity::Quantity;

/// What a reading is divided by.
#[derive(Clone, Copy, Debug)]
enum Per {
    Request,
    /// Seconds become microseconds.
    RequestUs,
    Second,
    /// A state or a share already.
    Nothing,
}

const METERED: [(&str, Quantity, Per); 19] = [
    ("user_s", Quantity::UserUs, Per::RequestUs),
    ("system_s", Quantity::SystemUs, Per::RequestUs),
    ("voluntary_switches", Quantity::VoluntarySwitches, Per::Request),
    ("involuntary_switches", Quantity::InvoluntarySwitches, Per::Request),
    ("minor_faults", Quantity::MinorFaults, Per::Request),
    ("major_faults", Quantity::MajorFaults, Per::Request),
    ("system_calls", Quantity::SystemCalls, Per::Request),
    ("kernel_copy_share", Quantity::KernelCopyShare, Per::Nothing),
    ("user_copy_share", Quantity::UserCopyShare, Per::Nothing),
    ("io_wait_s", Quantity::IoWait, Per::Second),
    ("file_cache_bytes", Quantity::FileCacheBytes, Per::Nothing),
    ("memory_bytes", Quantity::MemoryBytes, Per::Nothing),
    ("segments_received", Quantity::SegmentsReceived, Per::Request),
    ("segments_sent", Quantity::SegmentsSent, Per::Request),
    ("segments_repeated", Quantity::SegmentsRepeated, Per::Request),
    ("instructions", Quantity::HardwareInstructions, Per::Request),
    ("cycles", Quantity::Cycles, Per::Request),
    ("cache_misses", Quantity::CacheMisses, Per::Request),
    ("branch_misses", Quantity::BranchMisses, Per::Request),
];

/// Readings that are not here, each of which is told once.
#[derive(Debug, Default)]
pub(super) struct NotHere(RefCell<BTreeSet<&'static str>>);

impl NotHere {
    /// Adds what was read to the values of a cell.
    pub(super) fn or_tell(
        &self,
        readings: &[Reading],
        requests: u64,
        span: Duration,
        values: &mut BTreeMap<Quantity, f64>,
    ) {
        for Reading { name, value, .. } in readings {
            let known = METERED.iter().find(|(metered, ..)| metered == name);
            match (known, value) {
                (Some((_, quantity, per)), Ok(value)) => {
                    let requests = requests.max(1) as f64;
                    let value = match per {
                        Per::Request => value / requests,
                        Per::RequestUs => value * 1e6 / requests,
                        Per::Second => value / span.as_secs_f64(),
                        Per::Nothing => *value,
                    };
                    values.insert(*quantity, value);
                }
                (_, Err(why)) => {
                    if self.0.borrow_mut().insert(name) {
                        eprintln!("{name} is not here: {why}");
                    }
                }
                // `cpu_s`, which every cell tells anyway, and parts that no figure shows.
                (None, Ok(_)) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meters::MeterName;

    /// Goal: no entry of the table is misspelt. Method: each is looked for among the readings of all meters.
    #[test]
    fn all_that_is_known_can_be_read() {
        let all = [
            MeterName::Cpu,
            MeterName::Switches,
            MeterName::SystemCalls,
            MeterName::Copies,
            MeterName::Waiting,
            MeterName::FileCache,
            MeterName::Memory,
            MeterName::Packets,
            MeterName::Hardware,
        ];
        let readings: Vec<&str> =
            all.iter().flat_map(|meter| meter.readings()).map(|(name, _)| *name).collect();
        for (name, ..) in METERED {
            assert!(readings.contains(&name), "{name}");
        }
    }

    #[test]
    fn counts_are_divided_by_requests_and_times_by_the_span() {
        let reading = |name, value: f64| Reading { name, unit: "", value: Ok(value) };
        let readings = [
            reading("user_s", 0.5),
            reading("system_calls", 600.0),
            reading("io_wait_s", 1.0),
            reading("cpu_s", 7.0),
            Reading { name: "cycles", unit: "", value: Err("a virtual machine".into()) },
        ];
        let mut values = BTreeMap::new();
        NotHere::default().or_tell(&readings, 200, Duration::from_secs(4), &mut values);
        let expected = [(Quantity::UserUs, 2500.0), (Quantity::SystemCalls, 3.0), (Quantity::IoWait, 0.25)];
        assert_eq!(values, expected.into());
    }
}
