//! What the loops and the writer of a store share.

use std::sync::{Arc, Mutex, PoisonError};

use baton_buf::Buffer;

use crate::key::Key;
use crate::object::Record;
use crate::queue::Queue;
use crate::settings::StoreSettings;
use crate::slots::SlotSizes;
use crate::stats::{Counters, DiskState};
use crate::table::Table;

/// What the loops and the writer of a store share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: StoreSettings,
    pub(crate) sizes: SlotSizes,
    pub(crate) table: Table,
    pub(crate) queue: Queue,
    pub(crate) counters: Arc<Counters>,
    disk: Mutex<DiskState>,
}

impl Shared {
    pub(crate) fn new(settings: StoreSettings) -> Self {
        let counters = Arc::new(Counters::default());
        let (sizes, disk) = (
            SlotSizes::new(rustix::param::page_size(), settings.block_bytes_max),
            if settings.folder.is_some() { DiskState::Opening } else { DiskState::Off },
        );
        Self {
            sizes,
            table: Table::new(Arc::clone(&counters)),
            queue: Queue::new(settings.queue_bytes_max, settings.folder.is_some()),
            counters,
            disk: Mutex::new(disk),
            settings,
        }
    }

    pub(crate) fn disk(&self) -> DiskState {
        *self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_disk(&self, state: DiskState) {
        *self.disk.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Keeps a record in memory that the disk has not taken, or forgets its object if there is no room.
    pub(crate) fn keep_record(&self, key: &Key, record: &Buffer) {
        let mut shard = self.table.of(key);
        if !shard.move_record(key, record, Record::Memory(record.clone())) {
            return;
        }
        if !self.counters.memory_bytes.try_add(record.len() as u64, self.settings.memory_bytes_max) {
            self.counters.memory_bytes.add(record.len() as u64);
            shard.remove(key);
        }
    }
}
