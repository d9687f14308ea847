//! When written blocks leave for the disk, and when for good.
//!
//! The kernel alone would collect dirty pages for half a minute and then stop the writer for as long as the disk takes,
//! and what streamed by once would evict what is read often. So a stretch of slots is given to the disk as soon as it is
//! long enough to be worth a request, and dropped from memory some megabytes later if it is not likely to be read soon.
//! Scattered small blocks are left to the kernel: asking for each costs more than it saves.

use std::collections::VecDeque;

use crate::queue::Reuse;
use crate::slots::{Run, Slot};
use crate::volume::Volume;

/// What has been written lately.
#[derive(Debug, Default)]
pub(crate) struct WriteBack {
    /// The last run, while it grows.
    growing: Option<(Run, Reuse)>,
    /// Runs that are to leave the memory. The last few stay a while: their writing has only begun.
    leaving: VecDeque<Run>,
    leaving_bytes: u64,
}

impl WriteBack {
    /// A block has been written.
    pub(crate) fn handle_written(&mut self, slot: Slot, reuse: Reuse, volume: &Volume) {
        if let Some((run, its_reuse)) = &mut self.growing
            && *its_reuse == reuse
            && bytes(run, volume) < RUN_BYTES_MAX
            && run.extend(slot)
        {
            return;
        }
        if let Some((run, reuse)) = self.growing.replace((Run::new(slot), reuse)) {
            self.end_run(run, reuse, volume);
        }
    }

    fn end_run(&mut self, run: Run, reuse: Reuse, volume: &Volume) {
        if bytes(&run, volume) < RUN_BYTES_MIN {
            return;
        }
        volume.start_write_back(&run);
        if reuse == Reuse::Likely {
            return;
        }
        self.leaving_bytes += bytes(&run, volume);
        self.leaving.push_back(run);
        while self.leaving_bytes > LEAVING_BYTES_MAX
            && let Some(run) = self.leaving.pop_front()
        {
            self.leaving_bytes -= bytes(&run, volume);
            volume.drop_from_memory(&run);
        }
    }
}

fn bytes(run: &Run, volume: &Volume) -> u64 {
    volume.slot_bytes(run.first()) * u64::from(run.len())
}

/// Shorter runs are left to the kernel.
const RUN_BYTES_MIN: u64 = 128 << 10;

/// Longer runs would wait too long for their writing to begin.
const RUN_BYTES_MAX: u64 = 2 << 20;

/// Bytes of blocks that stay in memory although they are unlikely to be read again.
const LEAVING_BYTES_MAX: u64 = 16 << 20;
