//! What slices lie in that this program has not written: a pool of another program, or a range of a file.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use baton_buf::{Aggregate, Buffer, FileSlice, Held, OpenFile, Piece};
use baton_pool::View;
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::allocator::Allocator;
use crate::wire::{RETURNED_MAX, Reference, ToReader, returned_to_bytes};

/// A memory that a writer has shown.
#[derive(Clone)]
pub(crate) enum PeerMemory {
    Pool(Arc<PeerPool>),
    File(Arc<OpenFile>),
}

/// A pool of another program.
pub(crate) struct PeerPool {
    view: View,
    /// To show it to a third program.
    pub(crate) file: OwnedFd,
}

/// Bytes in the pool of another program, which is told when no slice refers to them.
pub(crate) struct Borrowed {
    pub(crate) pool: Arc<PeerPool>,
    pub(crate) offset: u64,
    len: usize,
    id: u32,
    returns: Arc<Returns>,
}

/// The way back: references that this reader does not need any more.
pub(crate) struct Returns {
    pub(crate) channel: OwnedFd,
    waiting: Mutex<Vec<u32>>,
    /// A child of this process has copies of its parent's references, and must not return them.
    process: u32,
}

impl PeerMemory {
    /// The memory that came with a message. `None`: the writer does not keep the rules.
    pub(crate) fn new(message: ToReader, file: OwnedFd) -> Option<Self> {
        match message {
            ToReader::Hello(_) => None,
            ToReader::Pool(bytes) => {
                let view = View::of_pool(&file, usize::try_from(bytes).ok()?).ok()?;
                Some(Self::Pool(Arc::new(PeerPool { view, file })))
            }
            ToReader::File => {
                let kind = FileType::from_raw_mode(rustix::fs::fstat(&file).ok()?.st_mode);
                (kind == FileType::RegularFile).then(|| Self::File(Arc::new(OpenFile::new(file))))
            }
        }
    }

    /// What a reference refers to; `None`: it is beyond the end.
    pub(crate) fn at(&self, reference: &Reference, returns: &Arc<Returns>) -> Option<Piece> {
        let Reference { id, offset, len, .. } = *reference;
        let end = offset.checked_add(u64::from(len))?;
        match self {
            Self::Pool(pool) => {
                (end <= pool.len()).then_some(())?;
                let (pool, returns) = (Arc::clone(pool), Arc::clone(returns));
                Some(Buffer::held(Borrowed { pool, offset, len: len as usize, id, returns }).into())
            }
            Self::File(file) => {
                let size = u64::try_from(rustix::fs::fstat(file).ok()?.st_size).ok()?;
                (end <= size).then(|| FileSlice::new(Arc::clone(file), offset, u64::from(len)).into())
            }
        }
    }
}

impl PeerPool {
    /// Its size in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.view.len() as u64
    }
}

impl Held for Borrowed {
    fn bytes(&self) -> &[u8] {
        let start = self.offset as usize;
        self.pool.view.bytes(start..start + self.len)
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        self.returns.push(self.id);
    }
}

impl Returns {
    pub(crate) fn new(channel: OwnedFd) -> Self {
        Self { channel, waiting: Mutex::default(), process: std::process::id() }
    }

    fn push(&self, id: u32) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(id);
        if waiting.len().is_multiple_of(RETURNED_AT_ONCE) {
            self.send(&mut waiting);
        }
    }

    /// Tells the writer what it can. If the channel is full, or the writer gone, the rest waits.
    fn send(&self, waiting: &mut Vec<u32>) {
        if std::process::id() != self.process {
            return;
        }
        while !waiting.is_empty() {
            let begin = waiting.len().saturating_sub(RETURNED_MAX);
            let message = returned_to_bytes(&waiting[begin..]);
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            if rustix::net::send(&self.channel, &message, flags).is_err() {
                return;
            }
            waiting.truncate(begin);
        }
    }
}

/// A range of a sealed file, mapped.
pub(crate) struct Mapped {
    view: View,
    /// Bytes of the first page in front of the range.
    skipped: usize,
    pub(crate) range: FileSlice,
}

impl Held for Mapped {
    fn bytes(&self) -> &[u8] {
        self.view.bytes(self.skipped..self.view.len())
    }
}

/// Brings the ranges of files in `aggregate` into memory, where nothing changes them any more: a sealed file is mapped, any other
/// read into memory of `allocator` ([0125](../../docs/decisions/0125-ranges-are-read-when-looked-at.md)).
///
/// # Errors
/// Those of `read` and `mmap`; `EIO` if a file was cut off. Then the aggregate is as before.
pub fn look(aggregate: &mut Aggregate, allocator: &Allocator) -> io::Result<()> {
    if is_in_memory(aggregate) {
        return Ok(());
    }
    let mut looked_at = Aggregate::new();
    for piece in aggregate.pieces() {
        match piece {
            Piece::File(range) => bring(range, allocator, &mut looked_at)?,
            other => looked_at.push(other.clone()),
        }
    }
    *aggregate = looked_at;
    Ok(())
}

/// Whether there is nothing to [`look`] at.
pub(crate) fn is_in_memory(aggregate: &Aggregate) -> bool {
    aggregate.pieces().all(|piece| matches!(piece, Piece::Memory(_)))
}

fn bring(range: &FileSlice, allocator: &Allocator, into: &mut Aggregate) -> io::Result<()> {
    let mut rest = Aggregate::new();
    rest.push(range.clone());
    while let Some(Piece::File(range)) = rest.take_front(MAPPED_BYTES_MAX) {
        match map(range.clone()) {
            Ok(mapped) => into.push(Buffer::held(mapped)),
            Err(Errno::INVAL) => read(&range, allocator, into)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Maps a range; `EINVAL`: the file may change.
fn map(range: FileSlice) -> Result<Mapped, Errno> {
    let skipped = range.offset() % PAGE_BYTES_MAX;
    let bytes = (skipped + range.len()) as usize;
    let view = View::of_sealed_file(range.file().as_fd(), range.offset() - skipped, bytes)?;
    Ok(Mapped { view, skipped: skipped as usize, range })
}

fn read(range: &FileSlice, allocator: &Allocator, into: &mut Aggregate) -> Result<(), Errno> {
    let mut blank = allocator.create(range.len() as usize);
    let mut at = range.offset();
    for part in blank.parts() {
        let mut filled = 0;
        while filled < part.len() {
            match rustix::io::pread(range.file(), &mut part[filled..], at) {
                // The file was cut off.
                Ok(0) => return Err(Errno::IO),
                Ok(count) => (filled, at) = (filled + count, at + count as u64),
                Err(Errno::INTR) => (),
                Err(error) => return Err(error),
            }
        }
    }
    into.append(blank.freeze());
    Ok(())
}

/// References that are returned with one call. The writer's pool is larger.
const RETURNED_AT_ONCE: usize = 8;

/// Where one of them begins, a page begins on every machine.
const PAGE_BYTES_MAX: u64 = 64 << 10;

/// Most bytes of one mapping: slices are smaller than 4 GiB.
const MAPPED_BYTES_MAX: u64 = 1 << 30;
