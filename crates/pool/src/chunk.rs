//! Memory that the server writes and applications read: chunks that are used again while they are warm.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::SealFlags;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::mapping::{Mapping, memory_file, seal};

/// Bytes of a chunk: what a session reads at a time.
pub const CHUNK_BYTES: usize = 64 << 10;

/// A memory file of whole chunks, for the applications that get its descriptor.
///
/// Only this process can write to it: the seal refuses every new way to, and the only mapping made before it is here.
#[derive(Clone)]
pub struct ChunkPool(Arc<Inner>);

struct Inner {
    memory: Mapping,
    file: OwnedFd,
    /// Chunks without an owner. The last one is the warmest, and is used first.
    free: Mutex<Vec<u32>>,
}

/// A part of a chunk, with one owner: no other part has any of its bytes. The memory is free for the next chunk when
/// the last of its parts is dropped.
pub struct Chunk {
    whole: Arc<Whole>,
    start: u32,
    end: u32,
}

struct Whole {
    pool: ChunkPool,
    index: u32,
}

impl ChunkPool {
    /// A pool of `chunks` chunks, less than 65,536. Memory is taken by those that are used.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`; `EINVAL` for no chunk, or from a kernel before Linux 5.1.
    pub fn create(chunks: u16) -> Result<Self, Errno> {
        let bytes = usize::from(chunks) * CHUNK_BYTES;
        let file = memory_file("baton-pool", bytes)?;
        let memory = Mapping::new(&file, bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED)?;
        seal(&file, SealFlags::FUTURE_WRITE)?;
        let free = Mutex::new((0..u32::from(chunks)).rev().collect());
        Ok(Self(Arc::new(Inner { memory, file, free })))
    }

    /// A free chunk, with bytes of earlier use; `None`: all are in use.
    pub fn take(&self) -> Option<Chunk> {
        let index = self.free().pop()?;
        let whole = Arc::new(Whole { pool: self.clone(), index });
        Some(Chunk { whole, start: 0, end: CHUNK_BYTES as u32 })
    }

    /// Chunks with an owner.
    pub fn in_use(&self) -> usize {
        self.len() / CHUNK_BYTES - self.free().len()
    }

    /// Its size in bytes.
    pub fn len(&self) -> usize {
        self.0.memory.len()
    }

    /// Always false: it has at least one chunk.
    pub fn is_empty(&self) -> bool {
        self.0.memory.len() == 0
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.0.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for ChunkPool {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl AsFd for ChunkPool {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }
}

impl Chunk {
    /// Where it begins, in bytes from the start of its pool.
    pub fn offset(&self) -> usize {
        self.whole.index as usize * CHUNK_BYTES + self.start as usize
    }

    /// The pool that it lies in.
    pub fn pool(&self) -> &ChunkPool {
        &self.whole.pool
    }

    /// Keeps the first `at` bytes and returns the rest, as a part of its own.
    ///
    /// # Panics
    /// If `at` is larger than the part.
    pub fn split_off(&mut self, at: usize) -> Self {
        assert!(at <= self.len(), "split of a part of {} bytes at {at}", self.len());
        let middle = self.start + at as u32;
        let rest = Self { whole: Arc::clone(&self.whole), start: middle, end: self.end };
        self.end = middle;
        rest
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let len = (self.end - self.start) as usize;
        // SAFETY: the part is within the mapping, which its pool keeps. It is initialised (a memory file reads as
        // zeros), and only its one owner can write to it.
        unsafe { std::slice::from_raw_parts(self.whole.pool.0.memory.address(self.offset(), len), len) }
    }
}

impl DerefMut for Chunk {
    fn deref_mut(&mut self) -> &mut [u8] {
        let len = (self.end - self.start) as usize;
        // SAFETY: as above; parts do not overlap, and this one is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.whole.pool.0.memory.address(self.offset(), len), len) }
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        self.pool.free().push(self.index);
    }
}

impl fmt::Debug for ChunkPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkPool({} of {} chunks in use)", self.in_use(), self.len() / CHUNK_BYTES)
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk({} bytes at {})", self.len(), self.offset())
    }
}
