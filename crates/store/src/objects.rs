//! A walk over all objects, from which an index is built.

use baton_buf::Slice;
use baton_sys::blocking::Blocking;

use crate::key::Key;
use crate::reading::StoredObject;
use crate::replay::SHARDS;
use crate::shared::Shared;

/// An object with its blocks.
#[derive(Clone, Debug)]
pub struct WalkedObject {
    /// Its name.
    pub key: Key,
    /// Which of the object's contents.
    pub generation: u32,
    /// What the owner has chosen.
    pub kind: u8,
    /// What the owner has written.
    pub record: Slice,
    /// The blocks on the disk, by number, and their lengths in bytes.
    pub blocks: Vec<(u32, u32)>,
}

/// The iterator of [`Store::objects`](crate::Store::objects).
#[derive(Debug)]
pub struct Objects<'a> {
    shared: &'a Shared,
    /// `None`: of all kinds.
    kind: Option<u8>,
    /// The shard after the one that `keys` are from.
    shard: usize,
    keys: Vec<Key>,
}

impl<'a> Objects<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self { shared, kind: None, shard: 0, keys: Vec::new() }
    }

    /// Only those of one kind: the records of others are not read.
    #[must_use]
    pub fn of_kind(self, kind: u8) -> Self {
        Self { kind: Some(kind), ..self }
    }
}

impl Iterator for Objects<'_> {
    type Item = WalkedObject;

    fn next(&mut self) -> Option<WalkedObject> {
        loop {
            while let Some(key) = self.keys.pop() {
                let Ok(Some(object)) = self.shared.object(&key, Blocking::Allowed) else { continue };
                let StoredObject { generation, kind, record } = object;
                let shard = self.shared.table.of(&key);
                // The object may have another content by now.
                let Some(object) = shard.object(&key).filter(|object| object.generation == generation) else {
                    continue;
                };
                let blocks = object.disk_blocks().iter().map(|block| (block.number, block.len)).collect();
                return Some(WalkedObject { key, generation, kind, record, blocks });
            }
            if self.shard == SHARDS {
                return None;
            }
            self.keys = self.shared.table.shard(self.shard).keys(self.kind);
            self.shard += 1;
        }
    }
}
