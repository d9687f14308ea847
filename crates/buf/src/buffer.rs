//! Immutable bytes, and ranges of them.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use baton_pool::{Chunk, ChunkPool};

/// Bytes that do not change while more than one owner can see them; cloning shares them.
///
/// IO-Lite's exception holds here too (Pai, section 2.2.1): a buffer that nothing else refers to may be
/// changed in place, see [`Buffer::get_mut`].
#[derive(Clone, Default)]
pub struct Buffer(Arc<Memory>);

/// Where the bytes of a buffer are.
enum Memory {
    Own(Vec<u8>),
    /// Where an application may read them, too.
    Chunk(Chunk),
    Held(Box<dyn Held>),
}

/// Memory of another owner, who learns by the drop that no slice refers to it.
pub trait Held: Any + Send + Sync {
    /// The bytes: always the same ones.
    fn bytes(&self) -> &[u8];
}

impl Buffer {
    /// Takes over `bytes` without copying them.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Memory::Own(bytes)))
    }

    /// Bytes in the memory of another owner.
    pub fn held(memory: impl Held) -> Self {
        Self(Arc::new(Memory::Held(Box::new(memory))))
    }

    /// The bytes, writable, if this is the only reference to the buffer; `None` otherwise.
    pub fn get_mut(&mut self) -> Option<&mut [u8]> {
        match Arc::get_mut(&mut self.0)? {
            Memory::Own(bytes) => Some(bytes),
            Memory::Chunk(chunk) => Some(chunk),
            Memory::Held(_) => None,
        }
    }

    /// The range `start..end` of this buffer, sharing its bytes.
    ///
    /// # Panics
    /// If the range exceeds the buffer, or 4 GiB.
    pub fn slice(&self, start: usize, end: usize) -> Slice {
        assert!(
            start <= end && end <= self.len(),
            "slice {start}..{end} of a buffer of {} bytes",
            self.len()
        );
        let offset = |at: usize| u32::try_from(at).expect("buffers are smaller than 4 GiB");
        Slice { buffer: self.clone(), start: offset(start), end: offset(end) }
    }

    /// Its own memory, if that is where it is.
    pub(crate) fn vec(&self) -> Option<&Vec<u8>> {
        match &*self.0 {
            Memory::Own(bytes) => Some(bytes),
            Memory::Chunk(_) | Memory::Held(_) => None,
        }
    }

    /// The same, writable, if this is the only reference to the buffer.
    pub(crate) fn vec_mut(&mut self) -> Option<&mut Vec<u8>> {
        match Arc::get_mut(&mut self.0)? {
            Memory::Own(bytes) => Some(bytes),
            Memory::Chunk(_) | Memory::Held(_) => None,
        }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::Own(Vec::new())
    }
}

impl From<Chunk> for Buffer {
    fn from(chunk: Chunk) -> Self {
        Self(Arc::new(Memory::Chunk(chunk)))
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &*self.0 {
            Memory::Own(bytes) => bytes,
            Memory::Chunk(chunk) => chunk,
            Memory::Held(memory) => memory.bytes(),
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len())
    }
}

/// A range of one [`Buffer`]; cloning shares the bytes.
#[derive(Clone)]
pub struct Slice {
    buffer: Buffer,
    start: u32,
    end: u32,
}

impl Slice {
    /// Number of bytes.
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether the range is empty.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Where it begins in this pool, in bytes, if it lies there.
    pub fn offset_in(&self, pool: &ChunkPool) -> Option<u32> {
        self.in_pool().filter(|(its, _)| *its == pool).map(|(_, offset)| offset)
    }

    /// The pool that it lies in, and where it begins there, in bytes.
    pub fn in_pool(&self) -> Option<(&ChunkPool, u32)> {
        match &*self.buffer.0 {
            Memory::Chunk(chunk) => Some((chunk.pool(), chunk.offset() as u32 + self.start)),
            _ => None,
        }
    }

    /// The memory of this kind that it lies in, and where it begins there, in bytes.
    pub fn in_held<M: Held>(&self) -> Option<(&M, u32)> {
        match &*self.buffer.0 {
            Memory::Held(memory) => Some(((&**memory as &dyn Any).downcast_ref()?, self.start)),
            _ => None,
        }
    }

    /// Whether anything else refers to its buffer.
    pub fn is_referenced(&self) -> bool {
        Arc::strong_count(&self.buffer.0) > 1
    }

    /// Names its bytes.
    pub fn name(&self) -> SliceName {
        SliceName { memory: Arc::downgrade(&self.buffer.0), start: self.start, end: self.end }
    }

    /// Shortens the slice to its first `at` bytes and returns the rest.
    ///
    /// # Panics
    /// If `at` is larger than the slice.
    pub fn split_off(&mut self, at: usize) -> Self {
        assert!(at <= self.len(), "split of a slice of {} bytes at {at}", self.len());
        let middle = self.start + at as u32;
        let rest = Self { buffer: self.buffer.clone(), start: middle, end: self.end };
        self.end = middle;
        rest
    }

    /// Drops the first `count` bytes from view.
    ///
    /// # Panics
    /// If `count` is larger than the slice.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.len(), "advance of a slice of {} bytes by {count}", self.len());
        self.start += count as u32;
    }
}

/// Names bytes without keeping them, for what is derived from them.
///
/// As long as the name lives, its buffer does not change, and no other buffer takes its place: a name is a generation.
#[derive(Clone, Debug)]
pub struct SliceName {
    memory: Weak<Memory>,
    start: u32,
    end: u32,
}

impl SliceName {
    /// Whether it names the bytes of this slice.
    pub fn is_of(&self, slice: &Slice) -> bool {
        std::ptr::eq(self.memory.as_ptr(), Arc::as_ptr(&slice.buffer.0))
            && (self.start, self.end) == (slice.start, slice.end)
    }
}

impl From<Buffer> for Slice {
    fn from(buffer: Buffer) -> Self {
        let end = u32::try_from(buffer.len()).expect("buffers are smaller than 4 GiB");
        Self { buffer, start: 0, end }
    }
}

impl From<Vec<u8>> for Slice {
    fn from(bytes: Vec<u8>) -> Self {
        Buffer::new(bytes).into()
    }
}

impl Deref for Slice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.start as usize..self.end as usize]
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slice({}..{})", self.start, self.end)
    }
}
