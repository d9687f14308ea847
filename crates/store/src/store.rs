//! The store: what loops, and what the owner of the index, may ask of it.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use baton_buf::{Buffer, Piece, Slice};
use baton_sys::blocking::{Blocking, NeedsDisk};

use crate::journal::frame::RECORD_BYTES_MAX;
use crate::key::{BlockId, Key};
use crate::object::Record;
use crate::objects::Objects;
use crate::page_in::PageIn;
use crate::queue::{Done, NotDurable, Op, Refused, Reuse};
use crate::reading::StoredObject;
use crate::settings::StoreSettings;
use crate::shared::Shared;
use crate::stats::{DiskState, Stats};
use crate::table::Found;
use crate::writer::Writer;

/// The bytes of a cache: one for all event loops of a process.
///
/// It keeps what it is told to keep, within its bounds, and decides nothing: who evicts is the owner of the index.
/// Except for [`objects`](Self::objects), no call waits for a disk unless it is allowed to.
///
/// ```
/// use baton_store::{BlockId, Blocking, Key, Reuse, StoreSettings, Store};
///
/// # let folder = tempfile::tempdir()?;
/// let settings = StoreSettings { folder: Some(folder.path().join("cache")), ..StoreSettings::default() };
/// let store = Store::open(settings)?;
/// let (opened, is_opened) = std::sync::mpsc::channel();
/// store.sync(move |durable| drop(opened.send(durable)));
/// is_opened.recv()?.expect("the folder can be used");
/// assert_eq!(store.objects().count(), 0, "here an index would be built");
///
/// let key = Key::from(0x1234);
/// store.put_object(key, 1, 0, b"ETag: \"a\"".to_vec()).expect("there is room");
/// let block = BlockId { key, generation: 1, number: 0 };
/// store.put_block(&block, b"hello".to_vec().into(), Reuse::Likely).expect("there is room");
/// let piece = store.block(&block, Blocking::Allowed).unwrap().expect("it was just put");
/// assert_eq!(piece.len(), 5); // ready for an `Aggregate`, from memory or from its file
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Store {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
    page_in: PageIn,
}

/// Why something is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotStored {
    /// There is no object of this key and generation.
    Unknown,
    /// The block is empty, or longer than a block or a record may be.
    Length,
    /// The bound on objects is reached: evict one.
    ObjectsFull,
    /// The bound on disk space is reached: evict blocks.
    DiskFull,
    /// The bound on memory is reached: release blocks.
    MemoryFull,
    /// Too much waits for the disk already.
    QueueFull,
    /// There is no disk, or it does not work.
    NoDisk,
}

impl NotStored {
    /// The word for it in logs and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Length => "length",
            Self::ObjectsFull => "objects-full",
            Self::DiskFull => "disk-full",
            Self::MemoryFull => "memory-full",
            Self::QueueFull => "queue-full",
            Self::NoDisk => "no-disk",
        }
    }
}

impl Store {
    /// Starts a store. Its writer opens the folder and reads the journal meanwhile; [`sync`](Self::sync) tells when that
    /// is done. What is found joins what has been stored until then, which is newer.
    ///
    /// # Errors
    /// If the thread of the writer cannot be started. A folder that cannot be used is reported in the error log and
    /// [`Stats::disk`], and tried again; the store works in memory meanwhile.
    pub fn open(settings: StoreSettings) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(settings.normalized()));
        let writer = match shared.settings.folder.clone() {
            Some(path) => {
                let writer = Writer::new(Arc::clone(&shared), path);
                let thread = std::thread::Builder::new().name("store".into());
                Some(thread.spawn(move || writer.run())?)
            }
            None => None,
        };
        Ok(Self { shared, writer, page_in: PageIn::default() })
    }

    /// Gives an object a record of at most [`RECORD_BYTES_MAX`] bytes. Blocks of the same generation stay, others are
    /// removed. `kind` is the owner's.
    ///
    /// # Errors
    /// [`NotStored`]; nothing has changed then.
    pub fn put_object(&self, key: Key, generation: u32, kind: u8, record: Vec<u8>) -> Result<(), NotStored> {
        if record.len() > RECORD_BYTES_MAX {
            return Err(NotStored::Length);
        }
        let Shared { settings, table, queue, counters, .. } = &*self.shared;
        let record = Buffer::new(record);
        let mut shard = table.of(&key);
        // Loops that race may exceed the bound by an object each.
        if shard.object(&key).is_none() && counters.objects.get() >= settings.objects_max as u64 {
            return Err(NotStored::ObjectsFull);
        }
        let replaces = !shard.has_content(&key, generation);
        let op = Op::Object { key, generation, kind, replaces, record: record.clone() };
        match queue.push(op) {
            Ok(()) => shard.put_object(key, generation, kind, Record::Queued(record)),
            Err(Refused::Full) => return Err(NotStored::QueueFull),
            Err(Refused::Closed) => {
                let memory_bytes = &counters.memory_bytes;
                if !memory_bytes.try_add(record.len() as u64, settings.memory_bytes_max) {
                    return Err(NotStored::MemoryFull);
                }
                shard.put_object(key, generation, kind, Record::Memory(record));
            }
        }
        Ok(())
    }

    /// Gives an object a record that must not be lost, whatever the bounds are: if the queue has no room, the
    /// journal is written anew before the next [`sync`](Self::sync) succeeds, as for a removal.
    ///
    /// # Panics
    /// If the record is longer than [`RECORD_BYTES_MAX`].
    pub fn put_mark(&self, key: Key, kind: u8, record: Vec<u8>) {
        assert!(record.len() <= RECORD_BYTES_MAX, "a record of {} bytes", record.len());
        let Shared { table, queue, counters, .. } = &*self.shared;
        let record = Buffer::new(record);
        let mut shard = table.of(&key);
        let op = Op::Object { key, generation: 0, kind, replaces: true, record: record.clone() };
        let record = if queue.push_mark(op) {
            Record::Queued(record)
        } else {
            counters.memory_bytes.add(record.len() as u64);
            Record::Memory(record)
        };
        shard.put_object(key, 0, kind, record);
    }

    /// An object's record.
    ///
    /// # Errors
    /// [`NeedsDisk`] only with [`Blocking::Never`].
    pub fn object(&self, key: &Key, blocking: Blocking) -> Result<Option<StoredObject>, NeedsDisk> {
        self.shared.object(key, blocking)
    }

    /// Stores a block of an object on the disk, behind what waits already. Until it is there it is served from memory. A
    /// block that is there already stays as it is.
    ///
    /// # Errors
    /// [`NotStored`].
    pub fn put_block(&self, id: &BlockId, bytes: Slice, reuse: Reuse) -> Result<(), NotStored> {
        let Shared { settings, table, queue, counters, .. } = &*self.shared;
        if bytes.is_empty() || bytes.len() > settings.block_bytes_max as usize {
            return Err(NotStored::Length);
        }
        let mut shard = table.of(&id.key);
        if !shard.has_content(&id.key, id.generation) {
            return Err(NotStored::Unknown);
        }
        if shard.has_block(id) {
            return Ok(());
        }
        // A block that is held is written as it is held.
        let bytes = shard.memory_block(id).map_or(bytes, |block| block.bytes.clone());
        let volume = Arc::clone(&shard.disk().ok_or(NotStored::NoDisk)?.volume);
        let allocated = volume.allocate(bytes.len()).ok_or(NotStored::DiskFull)?;
        match queue.push(Op::Block { id: *id, bytes: bytes.clone(), allocated, reuse }) {
            Ok(()) => {
                shard.queue_block(id, &bytes);
                Ok(())
            }
            Err(refused) => {
                volume.free(allocated.slot);
                Err(match refused {
                    Refused::Full => {
                        counters.queue_full.add(1);
                        NotStored::QueueFull
                    }
                    Refused::Closed => NotStored::NoDisk,
                })
            }
        }
    }

    /// A block as bytes to send; `None` if it is not here, or turns out to be damaged. A block on the disk keeps its place
    /// until it is sent, even if it is evicted meanwhile.
    ///
    /// # Errors
    /// [`NeedsDisk`] only with [`Blocking::Never`], and only for the first look at a block since the start: it is compared
    /// with its checksum then.
    pub fn block(&self, id: &BlockId, blocking: Blocking) -> Result<Option<Piece>, NeedsDisk> {
        let Some(found) = self.shared.table.of(&id.key).find(id) else { return Ok(None) };
        match found {
            Found::Memory(bytes) => Ok(Some(bytes.into())),
            Found::Disk { block, file, volume } => {
                if !block.is_verified && self.shared.verified(id, &block, &volume, blocking)?.is_none() {
                    return Ok(None);
                }
                Ok(Some(volume.slice(file, block.slot(), block.len).into()))
            }
        }
    }

    /// Reads a block behind the caller, after [`block`](Self::block) has said [`NeedsDisk`]; then calls `done`, on one of
    /// a few threads. `done` must not block. The block is verified then, or gone; if the store ends before, `done` is
    /// dropped.
    pub fn page_in(&self, id: &BlockId, done: impl FnOnce() + Send + 'static) {
        self.page_in.read(&self.shared, Some(*id), Box::new(done));
    }

    /// Has a read of the caller's own made on one of these threads; if the store ends before, it is dropped.
    pub fn run_behind(&self, read: impl FnOnce() + Send + 'static) {
        self.page_in.read(&self.shared, None, Box::new(read));
    }

    /// The bytes of a block, to [hold](Self::hold) them; `None` as for [`block`](Self::block).
    ///
    /// # Errors
    /// [`NeedsDisk`] only with [`Blocking::Never`].
    pub fn read_block(&self, id: &BlockId, blocking: Blocking) -> Result<Option<Slice>, NeedsDisk> {
        let Some(found) = self.shared.table.of(&id.key).find(id) else { return Ok(None) };
        match found {
            Found::Memory(bytes) => Ok(Some(bytes)),
            // The open file keeps the slot until the bytes are read.
            Found::Disk { block, file: _file, volume } => {
                Ok(self.shared.verified(id, &block, &volume, blocking)?.map(Slice::from))
            }
        }
    }

    /// Holds a block in memory, whether it is on the disk or not. The bound counts the slice's bytes, not those of the
    /// buffer behind it.
    ///
    /// # Errors
    /// [`NotStored`].
    pub fn hold(&self, id: &BlockId, bytes: &Slice) -> Result<(), NotStored> {
        let Shared { settings, table, counters, .. } = &*self.shared;
        if bytes.is_empty() || bytes.len() > settings.block_bytes_max as usize {
            return Err(NotStored::Length);
        }
        let mut shard = table.of(&id.key);
        if !shard.has_content(&id.key, id.generation) {
            return Err(NotStored::Unknown);
        }
        if shard.memory_block(id).is_some_and(|block| block.is_held) {
            return Ok(());
        }
        if !counters.memory_bytes.try_add(bytes.len() as u64, settings.memory_bytes_max) {
            return Err(NotStored::MemoryFull);
        }
        shard.hold(id, bytes);
        Ok(())
    }

    /// Whether the bytes of a block in memory are being sent or written: without the block, their memory would not be free.
    pub fn is_referenced(&self, id: &BlockId) -> bool {
        let shard = self.shared.table.of(&id.key);
        shard.memory_block(id).is_some_and(|block| block.bytes.is_referenced())
    }

    /// Ends [holding](Self::hold) a block. Clients that are being sent it keep it.
    pub fn release(&self, id: &BlockId) {
        self.shared.table.of(&id.key).release(id);
    }

    /// Removes a block from the disk. Its slot is free once no client is sent from it.
    pub fn evict_block(&self, id: &BlockId) {
        let mut shard = self.shared.table.of(&id.key);
        if shard.evict_block(id) {
            let _ = self.shared.queue.push(Op::BlockGone { key: id.key, number: id.number });
        }
    }

    /// Removes an object and its blocks, at once for this process; once a [`sync`](Self::sync) after it succeeds, for
    /// those that follow, too.
    pub fn remove(&self, key: &Key) {
        let mut shard = self.shared.table.of(key);
        shard.remove(key);
        // Also if there is none here: the journal may not have been read yet.
        let _ = self.shared.queue.push(Op::ObjectGone { key: *key });
    }

    /// Calls `done` when all that was done before is durable, or is known not to be, usually on the writer's thread. `done`
    /// must not block. Without a folder nothing is durable.
    pub fn sync(&self, done: impl FnOnce(Result<(), NotDurable>) + Send + 'static) {
        self.shared.queue.push_sync(Done(Box::new(done)));
    }

    /// Walks over all objects, in no order, reading their records: at the start, to build an index. It may wait for the
    /// disk; objects that come or go meanwhile may be in it or not.
    pub fn objects(&self) -> Objects<'_> {
        Objects::new(&self.shared)
    }

    /// Bytes that a block of `len` bytes takes of [`StoreSettings::bytes_max`]; 0 if it is too long.
    pub fn footprint(&self, len: u64) -> u64 {
        let sizes = self.shared.sizes;
        sizes.class_of(len).map_or(0, |class| sizes.bytes(class))
    }

    /// What the disk does.
    pub fn disk(&self) -> DiskState {
        self.shared.disk()
    }

    /// What the store has and has done.
    pub fn stats(&self) -> Stats {
        let Shared { table, queue, counters, .. } = &*self.shared;
        let disk_bytes = table.shard(0).disk().map_or(0, |disk| disk.volume.used_bytes());
        Stats {
            objects: counters.objects.get(),
            disk_blocks: counters.disk_blocks.get(),
            disk_bytes,
            memory_bytes: counters.memory_bytes.get(),
            queue_bytes: queue.bytes(),
            blocks_written: counters.blocks_written.get(),
            bytes_written: counters.bytes_written.get(),
            queue_full: counters.queue_full.get(),
            forgotten: counters.forgotten.get(),
            compactions: counters.compactions.get(),
            disk: self.shared.disk(),
        }
    }
}

impl Drop for Store {
    /// Waits until the writer has written what is queued.
    fn drop(&mut self) {
        self.page_in.end();
        self.shared.queue.end();
        if let Some(writer) = self.writer.take() {
            // A panic of the writer has been reported by the thread itself.
            let _ = writer.join();
        }
    }
}
