//! The end that bytes come from: a file, of which it gives ranges, or anything that can be read.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use baton_buf::{Aggregate, FileSlice, OpenFile};
use baton_pool::CHUNK_BYTES;
use baton_sys::passing;
use rustix::fs::{FileType, SeekFrom};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::allocator::{Allocator, Part};
use crate::memory::{PeerMemory, Returns};
use crate::wire::{self, Found, MARKER_BYTES, Marker, SHOWN_MAX, TO_READER_BYTES, ToReader, WriterNumber};
use crate::{REFERENCE_BYTES_MIN, channel};

/// Reads aggregates from a descriptor: `IOL_read`.
///
/// It may have read more than was asked for: nothing else may read from the descriptor.
pub struct Reader<D> {
    descriptor: D,
    allocator: Allocator,
    source: Source,
    /// Has been read, and is asked for next.
    ready: Aggregate,
}

enum Source {
    /// Its position is the descriptor's.
    File(Arc<OpenFile>),
    Bytes(Input),
    /// A writer has broken the rules: what follows cannot be told.
    Broken,
}

/// What is read piece by piece.
struct Input {
    /// Where the next bytes are read to. In front are `held` bytes of a marker that is not complete.
    space: Part,
    held: usize,
    writers: Option<Writers>,
}

/// The programs that may write references.
struct Writers {
    channel: OwnedFd,
    links: Vec<WriterLink>,
    /// Bytes that have been read from the descriptor.
    read: u64,
    /// Bytes that the descriptor holds.
    capacity: u64,
}

struct WriterLink {
    returns: Arc<Returns>,
    /// Known with its first message.
    number: Option<WriterNumber>,
    /// Those that were shown last, behind so many that are forgotten.
    memories: VecDeque<PeerMemory>,
    forgotten: u32,
    /// How much had been read when the writer had ended.
    ended_at: Option<u64>,
}

impl<D: AsFd> Reader<D> {
    /// Reads from `descriptor`, into memory of `allocator`. From now on writers may send references.
    ///
    /// # Errors
    /// `EBADF`, `EMFILE`.
    pub fn new(descriptor: D, allocator: &Allocator) -> io::Result<Self> {
        let stat = rustix::fs::fstat(descriptor.as_fd())?;
        // Files that the kernel makes up as they are read have no size.
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_size > 0;
        let source = if is_file {
            let file = rustix::io::fcntl_dupfd_cloexec(descriptor.as_fd(), 0)?;
            Source::File(Arc::new(OpenFile::new(file)))
        } else {
            let capacity = channel::capacity(descriptor.as_fd());
            let channel = channel::listen(descriptor.as_fd());
            let writers = channel.map(|channel| Writers { channel, links: Vec::new(), read: 0, capacity });
            Source::Bytes(Input { space: allocator.part(CHUNK_BYTES), held: 0, writers })
        };
        Ok(Self { descriptor, allocator: allocator.clone(), source, ready: Aggregate::new() })
    }

    /// At most `bytes_max` bytes; none at the end. Waits for the first one, unless the descriptor does not block.
    ///
    /// # Errors
    /// Those of `read`; `EPROTO` if a writer refers to what it has not shown; `EMFILE` if there are more writers than
    /// descriptors.
    pub fn read(&mut self, bytes_max: usize) -> io::Result<Aggregate> {
        if bytes_max == 0 {
            return Ok(Aggregate::new());
        }
        if let Source::File(file) = &self.source
            && let Some(range) = range(file, bytes_max)?
        {
            self.ready.push(range);
        }
        while self.ready.is_empty() && self.fill(bytes_max)? {}
        let rest = self.ready.split_off(bytes_max as u64);
        Ok(std::mem::replace(&mut self.ready, rest))
    }

    /// Takes no references from now on: writers that have not begun to send any write bytes.
    pub fn refuse_references(&mut self) {
        if let Source::Bytes(input) = &mut self.source
            && input.writers.as_ref().is_some_and(|writers| writers.links.is_empty())
        {
            input.writers = None;
        }
    }

    /// Reads once; false at the end.
    fn fill(&mut self, bytes_max: usize) -> io::Result<bool> {
        match &mut self.source {
            Source::File(_) => {
                let mut part = self.allocator.part(bytes_max.min(CHUNK_BYTES));
                let count = rustix::io::read(&self.descriptor, &mut *part)?;
                self.ready.push(part.split_front(count).freeze());
                Ok(false)
            }
            Source::Bytes(input) => {
                if input.space.len() < SPACE_BYTES_MIN {
                    input.renew(&self.allocator);
                }
                let count = rustix::io::read(&self.descriptor, &mut input.space[input.held..])?;
                let is_over = count == 0;
                if let Err(error) = input.take(count, &mut self.ready) {
                    self.source = Source::Broken;
                    return Err(error);
                }
                Ok(!is_over)
            }
            Source::Broken => Err(Errno::PROTO.into()),
        }
    }
}

/// The next range of a file, of which the position is moved behind it; `None`: reading it is cheaper, or it has ended.
fn range(file: &Arc<OpenFile>, bytes_max: usize) -> io::Result<Option<FileSlice>> {
    let size = u64::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or(0);
    let position = rustix::fs::seek(file, SeekFrom::Current(0))?;
    let len = size.saturating_sub(position).min(bytes_max as u64).min(RANGE_BYTES_MAX);
    if len < REFERENCE_BYTES_MIN {
        return Ok(None);
    }
    rustix::fs::seek(file, SeekFrom::Start(position + len))?;
    Ok(Some(FileSlice::new(Arc::clone(file), position, len)))
}

impl Input {
    /// Takes fresh space, and what is held along.
    fn renew(&mut self, allocator: &Allocator) {
        let mut space = allocator.part(CHUNK_BYTES);
        space[..self.held].copy_from_slice(&self.space[..self.held]);
        self.space = space;
    }

    /// Appends what has been read, `count` bytes behind what is held, to `ready`. None is the end: what is held is no marker.
    fn take(&mut self, count: usize, ready: &mut Aggregate) -> io::Result<()> {
        if let Some(writers) = &mut self.writers {
            writers.read += count as u64;
        }
        let mut filled = self.held + count;
        let is_cut = count > 0 && filled == self.space.len();
        self.held = 0;
        // Markers in front of it stay in the space, which is used again as a whole if nothing else came.
        let mut at = 0;
        while at < filled {
            match self.next(at..filled, is_cut)? {
                Found::Bytes(len) => {
                    drop(self.space.split_front(at));
                    ready.push(self.space.split_front(len).freeze());
                    filled -= at + len;
                    at = 0;
                }
                Found::Marker(marker) => {
                    let writers = self.writers.as_mut();
                    writers.ok_or(Errno::PROTO)?.resolve(&marker, ready)?;
                    at += MARKER_BYTES;
                }
                Found::Part => {
                    self.held = filled - at;
                    self.space.copy_within(at..filled, 0);
                    break;
                }
            }
        }
        Ok(())
    }

    /// What these bytes of the space begin with.
    fn next(&mut self, bytes: Range<usize>, is_cut: bool) -> io::Result<Found> {
        let Some(writers) = &mut self.writers else { return Ok(Found::Bytes(bytes.len())) };
        match wire::next(&self.space[bytes], is_cut) {
            Found::Marker(marker) if !writers.know(marker.writer)? => Ok(Found::Bytes(MARKER_BYTES)),
            found => Ok(found),
        }
    }
}

impl Writers {
    /// Whether a writer has this number. Every writer that has connected is accepted: it relies on it.
    ///
    /// # Errors
    /// `EMFILE` and the like.
    fn know(&mut self, number: WriterNumber) -> io::Result<bool> {
        let is_its = |link: &WriterLink| link.number == Some(number);
        if self.links.iter().any(is_its) {
            return Ok(true);
        }
        self.links.retain_mut(|link| !link.is_over(self.read, self.capacity));
        loop {
            match channel::accept(&self.channel) {
                Ok(channel) => self.links.push(WriterLink::new(channel)),
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.links.iter_mut().for_each(WriterLink::hear_number);
        Ok(self.links.iter().any(is_its))
    }

    /// Appends what a marker of a known writer refers to.
    fn resolve(&mut self, marker: &Marker, ready: &mut Aggregate) -> io::Result<()> {
        let link = self.links.iter_mut().find(|link| link.number == Some(marker.writer));
        let link = link.ok_or(Errno::PROTO)?;
        for reference in &marker.references {
            let memory = link.memory(reference.memory).ok_or(Errno::PROTO)?;
            ready.push(memory.at(reference, &link.returns).ok_or(Errno::PROTO)?);
        }
        Ok(())
    }
}

impl WriterLink {
    fn new(channel: OwnedFd) -> Self {
        let returns = Arc::new(Returns::new(channel));
        Self { returns, number: None, memories: VecDeque::new(), forgotten: 0, ended_at: None }
    }

    /// The next message, with its descriptor. The writer has sent it before it wrote what needs it.
    fn hear(&self) -> Option<(ToReader, Option<OwnedFd>)> {
        let mut message = [0; TO_READER_BYTES];
        let (count, mut descriptors) = passing::receive(&self.returns.channel, &mut message).ok()?;
        Some((ToReader::from_bytes(&message[..count])?, descriptors.pop()))
    }

    fn hear_number(&mut self) {
        if self.number.is_none()
            && let Some((ToReader::Hello(number), _)) = self.hear()
        {
            self.number = Some(number);
        }
    }

    /// The memory with this number.
    fn memory(&mut self, number: u32) -> Option<PeerMemory> {
        let number = number.checked_sub(self.forgotten)? as usize;
        while number >= self.memories.len() {
            // What a lying writer announces is bounded by what the channel holds.
            let (message, file) = self.hear()?;
            self.memories.push_back(PeerMemory::new(message, file?)?);
        }
        let memory = self.memories[number].clone();
        while self.memories.len() > SHOWN_MAX {
            self.memories.pop_front();
            self.forgotten += 1;
        }
        Some(memory)
    }

    /// Whether the writer has ended, and all its markers have been read: since then more came than
    /// the pipe holds. `read`: bytes until now.
    fn is_over(&mut self, read: u64, capacity: u64) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let ended = rustix::net::recv(&self.returns.channel, &mut [0; 1][..], flags);
        if matches!(ended, Ok((0, _))) {
            self.ended_at.get_or_insert(read);
        }
        self.ended_at.is_some_and(|at| read - at > capacity + CHUNK_BYTES as u64)
    }
}

/// Most bytes of a range. A program that looks at it copies it, and finds the copy in the processor's cache.
const RANGE_BYTES_MAX: u64 = 256 << 10;

/// Space that is worth a read.
const SPACE_BYTES_MIN: usize = 16 << 10;
