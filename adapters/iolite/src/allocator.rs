//! Memory for new bytes: pools that other programs may be shown.

use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use baton_buf::{Aggregate, Buffer};
use baton_pool::{CHUNK_BYTES, Chunk, ChunkPool};

/// A pool of memory with one set of readers: every program that was sent some of it may read all of it.
///
/// So bytes for readers that must not see each other's come from allocators of their own.
#[derive(Clone)]
pub struct Allocator(Arc<Inner>);

struct Inner {
    pool: ChunkPool,
    /// What is left of a chunk in which small aggregates lie.
    rest: Mutex<Option<Chunk>>,
}

/// Bytes that are still to be written, by one owner: the result of [`Allocator::create`].
#[derive(Default)]
pub struct Blank(Vec<Part>);

/// Memory with one owner.
pub(crate) enum Part {
    Chunk(Chunk),
    /// When all chunks are in use. It leaves as bytes.
    Own(Vec<u8>),
}

impl Allocator {
    /// A new pool, of 8 MiB. Memory is taken as it is used.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn new() -> io::Result<Self> {
        let pool = ChunkPool::create(CHUNKS)?;
        Ok(Self(Arc::new(Inner { pool, rest: Mutex::new(None) })))
    }

    /// `bytes` bytes with unspecified contents.
    pub fn create(&self, bytes: usize) -> Blank {
        let mut parts = Vec::with_capacity(bytes.div_ceil(CHUNK_BYTES));
        let mut wanted = bytes;
        while wanted > 0 {
            let part = self.part(wanted.min(CHUNK_BYTES));
            wanted -= part.len();
            parts.push(part);
        }
        Blank(parts)
    }

    /// A part of `bytes` bytes, at most a chunk's.
    pub(crate) fn part(&self, bytes: usize) -> Part {
        let part = match bytes {
            CHUNK_BYTES => self.0.pool.take(),
            _ => self.small(bytes),
        };
        part.map_or_else(|| Part::Own(vec![0; bytes]), Part::Chunk)
    }

    /// A part of the chunk that others have parts of, too.
    fn small(&self, bytes: usize) -> Option<Chunk> {
        let mut rest = self.0.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = rest.take().filter(|rest| rest.len() >= bytes);
        let mut part = fits.or_else(|| self.0.pool.take())?;
        *rest = Some(part.split_off(bytes.next_multiple_of(LINE_BYTES).min(part.len())));
        drop(part.split_off(bytes));
        Some(part)
    }
}

impl Blank {
    /// The memory, a part at a time.
    pub fn parts(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.0.iter_mut().map(|part| &mut **part)
    }

    /// The part at byte `at`, from there on.
    pub(crate) fn part_at(&mut self, mut at: usize) -> Option<&mut [u8]> {
        for part in self.parts() {
            if at < part.len() {
                return Some(&mut part[at..]);
            }
            at -= part.len();
        }
        None
    }

    /// Ends the writing: from now on the bytes are immutable.
    pub fn freeze(self) -> Aggregate {
        let mut aggregate = Aggregate::new();
        for part in self.0 {
            aggregate.push(part.freeze());
        }
        aggregate
    }
}

impl Part {
    /// Its first `at` bytes; it keeps the others.
    pub(crate) fn split_front(&mut self, at: usize) -> Self {
        match self {
            Self::Chunk(chunk) => {
                let rest = chunk.split_off(at);
                Self::Chunk(std::mem::replace(chunk, rest))
            }
            Self::Own(bytes) => {
                let rest = bytes.split_off(at);
                Self::Own(std::mem::replace(bytes, rest))
            }
        }
    }

    pub(crate) fn freeze(self) -> Buffer {
        match self {
            Self::Chunk(chunk) => chunk.into(),
            Self::Own(bytes) => Buffer::new(bytes),
        }
    }
}

impl Deref for Part {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Chunk(chunk) => chunk,
            Self::Own(bytes) => bytes,
        }
    }
}

impl DerefMut for Part {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Chunk(chunk) => chunk,
            Self::Own(bytes) => bytes,
        }
    }
}

/// Chunks of a pool: what a full pipe of markers refers to, four times.
const CHUNKS: u16 = 128;

/// Small aggregates begin at multiples of it, so that two programs never write to the same line of a cache.
const LINE_BYTES: usize = 64;
