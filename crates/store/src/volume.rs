//! The data files: a file for each size of slots, and who reads which slot.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_buf::{FileSlice, OpenFile};
use baton_sys::blocking::{Blocking, ReadError, read_at};
use rustix::fs::{Advice, fadvise, ftruncate};
use rustix::io::Errno;

use crate::file_range::{deallocate, write_all_at};
use crate::probe::keeps_what_is_sent;
use crate::slots::{Allocation, Allocator, Run, Slot, SlotSizes};

/// The data files of a folder.
#[derive(Debug)]
pub(crate) struct Volume {
    /// One per class of slots.
    files: Vec<Arc<OwnedFd>>,
    sizes: SlotSizes,
    /// Held briefly, and never while another lock is taken.
    allocator: Mutex<Allocator>,
}

impl Volume {
    /// The slots `used` are in use; the files' ends beyond them are cut off.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if the file system cannot deallocate a range of a file, or not so that what is being sent stays as it
    /// is; `EROFS`, `EIO`, `ENOSPC`.
    pub(crate) fn new(
        files: Vec<OwnedFd>,
        sizes: SlotSizes,
        bytes_max: u64,
        used: impl IntoIterator<Item = Slot>,
    ) -> io::Result<Self> {
        let allocator = Allocator::new(sizes, bytes_max, used);
        for (class, file) in sizes.classes().zip(&files) {
            let end = sizes.offset(Slot { class, index: allocator.end(class) });
            let len = sizes.bytes(class);
            // The kernel reads ahead in pieces that may span two slots, and cannot take such a piece apart while a socket
            // refers to it: it would zero what is on its way to a client.
            fadvise(file, 0, None, Advice::Random)?;
            ftruncate(file, end)?;
            if class == 0 && !keeps_what_is_sent(file, end, len as usize, || deallocate(file, end, len))? {
                return Err(Errno::OPNOTSUPP.into());
            }
            ftruncate(file, end)?;
        }
        let files = files.into_iter().map(Arc::new).collect();
        Ok(Self { files, sizes, allocator: Mutex::new(allocator) })
    }

    /// A slot for a block of `len` bytes; `None` if the bound is reached.
    pub(crate) fn allocate(&self, len: usize) -> Option<Allocation> {
        self.allocator().allocate(len as u64)
    }

    /// Gives a slot back.
    pub(crate) fn free(&self, slot: Slot) {
        self.allocator().free(slot);
    }

    /// Bytes of slots that are in use.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.allocator().used_bytes()
    }

    /// A slot as a file, which keeps its bytes while it is open.
    pub(crate) fn open(self: &Arc<Self>, slot: Slot) -> Arc<OpenFile> {
        self.allocator().begin_reading(slot);
        let lease = Arc::new(Lease { volume: Arc::clone(self), slot });
        Arc::new(OpenFile::sharing(Arc::clone(&self.files[usize::from(slot.class)]), lease))
    }

    /// The first `len` bytes of a slot, as bytes to send.
    pub(crate) fn slice(&self, file: Arc<OpenFile>, slot: Slot, len: u32) -> FileSlice {
        FileSlice::new(file, self.sizes.offset(slot), u64::from(len))
    }

    /// Reads the first `len` bytes of a slot. Fewer bytes: the file has become shorter.
    pub(crate) fn read(&self, slot: Slot, len: u32, blocking: Blocking) -> Result<Vec<u8>, ReadError> {
        let mut bytes = vec![0; len as usize];
        let filled = read_at(self.file(slot), &mut bytes, self.sizes.offset(slot), blocking)?;
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// Writes a block into its slot.
    ///
    /// # Errors
    /// `ENOSPC`, `EFBIG`, `EIO`, `EROFS` and the like.
    pub(crate) fn write(&self, Allocation { slot, was_sent }: Allocation, bytes: &[u8]) -> io::Result<()> {
        if was_sent {
            self.deallocate(slot)?;
            self.allocator().handle_emptied_in_use(slot);
        }
        write_all_at(self.file(slot), bytes, self.sizes.offset(slot))
    }

    /// The file system has no space: the store takes no more than it uses, and gives back what it does not.
    ///
    /// # Errors
    /// `EIO` and the like.
    pub(crate) fn limit_to_used(&self) -> io::Result<()> {
        self.allocator().limit_to_used();
        self.empty_slots()
    }

    /// The file system has space again.
    pub(crate) fn lift_limit(&self) {
        self.allocator().lift_limit();
    }

    /// Deallocates the slots whose space another size needs.
    ///
    /// # Errors
    /// `EIO` and the like.
    pub(crate) fn empty_slots(&self) -> io::Result<()> {
        let slots = self.allocator().take_to_empty();
        for slot in slots {
            self.deallocate(slot)?;
            self.allocator().handle_emptied(slot);
        }
        Ok(())
    }

    /// Has the kernel begin to write a run of slots.
    pub(crate) fn start_write_back(&self, run: &Run) {
        let (file, offset, len) = self.range(run);
        // Only a hint; what it may fail with, a later write fails with, too.
        let _ = baton_sys::write_back::start(file, offset, len);
    }

    /// Drops a run of slots from memory, unless one of them was requested lately. Waits for the disk.
    pub(crate) fn drop_from_memory(&self, run: &Run) {
        if run.slots().any(|slot| self.allocator().is_read(slot)) {
            return;
        }
        let (file, offset, len) = self.range(run);
        if baton_sys::write_back::finish(file, offset, len).is_ok() {
            let _ = fadvise(file, offset, std::num::NonZero::new(len), Advice::DontNeed);
        }
    }

    /// Size of a slot in bytes.
    pub(crate) fn slot_bytes(&self, slot: Slot) -> u64 {
        self.sizes.bytes(slot.class)
    }

    fn range(&self, run: &Run) -> (&OwnedFd, u64, u64) {
        let first = run.first();
        (self.file(first), self.sizes.offset(first), self.sizes.bytes(first.class) * u64::from(run.len()))
    }

    fn deallocate(&self, slot: Slot) -> io::Result<()> {
        deallocate(self.file(slot), self.sizes.offset(slot), self.sizes.bytes(slot.class))
    }

    fn file(&self, slot: Slot) -> &OwnedFd {
        &self.files[usize::from(slot.class)]
    }

    fn allocator(&self) -> MutexGuard<'_, Allocator> {
        self.allocator.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader of a slot.
#[derive(Debug)]
struct Lease {
    volume: Arc<Volume>,
    slot: Slot,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.volume.allocator().end_reading(self.slot);
    }
}
