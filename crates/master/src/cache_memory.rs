//! How much memory the file cache of each worker may take.
//!
//! A cache that grows beyond the limit of a container's control group does not slow the server down: the kernel kills
//! a worker, with all its clients. So the default is small where memory is small. A configured value is kept, with a
//! warning if it is too large.

use baton_content::CacheSettings;
use baton_sys::memory_bounds::MemoryBounds;

/// The decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CacheMemory {
    /// For each worker, in bytes.
    pub(super) bytes: u64,
    /// The number and its reason, for the status.
    pub(super) told: String,
    /// A warning for the user.
    pub(super) advice: Option<String>,
}

/// One part in so many of a worker's memory is for file contents. The rest is for connections, the allocator, and the
/// kernel's page cache, which holds the files that the workers do not.
const PARTS: u64 = 4;

/// Decides for `workers` workers. `configured`: the user's value, if there is one.
pub(super) fn decide(configured: Option<u64>, bounds: &MemoryBounds, workers: usize) -> CacheMemory {
    let (for_one, whose) = part_of_one(bounds, workers.max(1) as u64);
    let share = for_one / PARTS;
    let usual = CacheSettings::default().memory_bytes_max;
    let bytes = configured.unwrap_or(usual.min(share));
    let why = match configured {
        Some(_) => ", as configured".to_owned(),
        None if bytes < usual => format!(": a quarter of {whose}"),
        None => String::new(),
    };
    // File contents may take half of it: the other half must suffice for everything else.
    let advice = configured.filter(|&bytes| bytes > for_one / 2).map(|bytes| {
        format!(
            "cache.memory_bytes_max = {} is more than half of {whose}: the kernel may kill workers for want of memory. \
             Leave it out, or set {} or less",
            amount(bytes),
            amount(share)
        )
    });
    CacheMemory { bytes, told: format!("{} per worker{why}", amount(bytes)), advice }
}

/// The bytes of memory for everything in one worker, and where the number comes from.
fn part_of_one(bounds: &MemoryBounds, workers: u64) -> (u64, String) {
    let (shared, of_whom) = match &bounds.group {
        Some(group) => (group.bytes, format!("the {} of {}", amount(group.bytes), group.file.display())),
        None => (bounds.machine_bytes, format!("the machine's {}", amount(bounds.machine_bytes))),
    };
    match bounds.address_space_bytes {
        Some(own) if own < shared / workers => (own, format!("a worker's {} of address space", amount(own))),
        _ if workers == 1 => (shared, of_whom),
        _ => (shared / workers, format!("its part of {of_whom}")),
    }
}

/// A number of bytes as humans read it, rounded down.
fn amount(bytes: u64) -> String {
    match bytes {
        0..0x400 => format!("{bytes} bytes"),
        0x400..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use baton_sys::memory_bounds::GroupBound;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn bounds(machine: u64, group: Option<u64>, address_space: Option<u64>) -> MemoryBounds {
        MemoryBounds {
            machine_bytes: machine * MIB,
            group: group.map(|group| GroupBound { bytes: group * MIB, file: "/sys/m/memory.max".into() }),
            address_space_bytes: address_space.map(|bytes| bytes * MIB),
        }
    }

    #[test]
    fn where_memory_is_plenty_the_default_is_the_default() {
        let decided = decide(None, &bounds(8192, Some(4096), Some(8192)), 16);
        assert_eq!(decided, CacheMemory { bytes: 64 * MIB, told: "64 MiB per worker".into(), advice: None });
    }

    #[test]
    fn where_it_is_short_all_workers_together_take_a_quarter() {
        let told = |bounds, workers| {
            let decided = decide(None, &bounds, workers);
            assert_eq!(decided.advice, None);
            (decided.bytes / MIB, decided.told)
        };
        let group = bounds(8192, Some(128), None);
        let own = "32 MiB per worker: a quarter of the 128 MiB of /sys/m/memory.max".to_owned();
        assert_eq!(told(group.clone(), 1), (32, own));
        let part = "8 MiB per worker: a quarter of its part of the 128 MiB of /sys/m/memory.max".to_owned();
        assert_eq!(told(group, 4), (8, part));
        let machine = "16 MiB per worker: a quarter of its part of the machine's 512 MiB".to_owned();
        assert_eq!(told(bounds(512, None, None), 8), (16, machine));
        // Each process has its own addresses.
        let addresses = "50 MiB per worker: a quarter of a worker's 200 MiB of address space".to_owned();
        assert_eq!(told(bounds(8192, Some(4096), Some(200)), 4), (50, addresses));
        assert_eq!(told(bounds(8192, Some(128), Some(200)), 4).0, 8);
    }

    #[test]
    fn what_is_configured_is_kept_and_doubted() {
        let decided = decide(Some(96 * MIB), &bounds(8192, Some(128), None), 4);
        assert_eq!(decided.bytes, 96 * MIB);
        assert_eq!(decided.told, "96 MiB per worker, as configured");
        let advice = decided.advice.unwrap();
        assert!(
            advice.starts_with("cache.memory_bytes_max = 96 MiB is more than half of its part of"),
            "{advice}"
        );
        assert!(advice.ends_with("set 8 MiB or less"), "{advice}");
        assert_eq!(decide(Some(16 * MIB), &bounds(8192, Some(128), None), 4).advice, None);
        assert_eq!(decide(Some(0), &bounds(8, None, None), 1).bytes, 0);
    }
}
