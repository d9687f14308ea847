//! The end that bytes go to: by reference where the reader takes references, else as bytes.

use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use baton_buf::{Aggregate, FileSlice, Piece, Slice};
use baton_pool::{CHUNK_BYTES, ChunkPool};
use baton_sys::passing;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::memory::{Borrowed, Mapped, PeerPool};
use crate::wire::{
    Marker, REFERENCES_MAX, RETURNED_MAX, Reference, SHOWN_MAX, ToReader, WriterNumber, returned_from_bytes,
};
use crate::{REFERENCE_BYTES_MIN, UNREAD_BYTES_MAX, channel};

/// Writes aggregates to a descriptor: `IOL_write`.
pub struct Writer<D> {
    descriptor: D,
    link: Link,
}

enum Link {
    /// The reader has not been found. So many bytes were written.
    Sought(u64),
    Agreed(Box<ReaderLink>),
    /// For good.
    Bytes,
}

/// A reader that takes references.
struct ReaderLink {
    channel: OwnedFd,
    number: WriterNumber,
    /// Memories that it was shown last, behind so many that it has forgotten.
    shown: VecDeque<Memory>,
    forgotten: u32,
    /// What it may look at.
    lent: HashMap<u32, Slice>,
    next_id: u32,
    /// Calls since it was last asked what it returns.
    calls: usize,
    /// The child of a process must not take what is returned to its parent.
    process: u32,
}

/// Memory that a reader can be shown.
#[derive(Clone)]
enum Memory {
    Own(ChunkPool),
    /// It came from a third program.
    Peer(Arc<PeerPool>),
    File(FileSlice),
}

impl<D: AsFd> Writer<D> {
    /// Writes to `descriptor`.
    pub fn new(descriptor: D) -> Self {
        let link = if channel::is_possible(descriptor.as_fd()) { Link::Sought(0) } else { Link::Bytes };
        Self { descriptor, link }
    }

    /// What it writes to.
    pub fn descriptor(&self) -> &D {
        &self.descriptor
    }

    /// Writes `aggregate`; returns how many bytes: fewer only if the descriptor does not block, or after an error, which
    /// the next call reports.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn write(&mut self, aggregate: &Aggregate) -> io::Result<u64> {
        let mut rest = aggregate.clone();
        while !rest.is_empty() {
            self.prepare(rest.len());
            match self.write_some(&rest) {
                Ok(count) => rest.advance(count),
                Err(_) if rest.len() < aggregate.len() => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(aggregate.len() - rest.len())
    }

    /// Looks for the reader, or for what it has returned.
    fn prepare(&mut self, len: u64) {
        match &mut self.link {
            Link::Sought(_) if len < REFERENCE_BYTES_MIN => (),
            Link::Sought(bytes) => {
                let found = channel::connect(self.descriptor.as_fd()).and_then(ReaderLink::new);
                if let Some(link) = found {
                    self.link = Link::Agreed(Box::new(link));
                } else if *bytes > UNREAD_BYTES_MAX {
                    // The reader has read some by now, and does not listen.
                    self.link = Link::Bytes;
                }
            }
            Link::Agreed(link) => {
                link.calls += 1;
                if link.calls >= CALLS_BETWEEN && !link.collect() {
                    self.link = Link::Bytes;
                }
            }
            Link::Bytes => (),
        }
    }

    /// Writes what is in front, by one call if all is well.
    fn write_some(&mut self, rest: &Aggregate) -> Result<u64, Errno> {
        if let Link::Agreed(link) = &mut self.link {
            let (marker, slices) = link.marker(rest);
            if !slices.is_empty() {
                write_whole(self.descriptor.as_fd(), &marker.to_bytes())?;
                return Ok(link.lend(&marker, slices));
            }
        }
        let sent = self.write_copies(rest)?;
        if let Link::Sought(bytes) = &mut self.link {
            *bytes += sent;
        }
        Ok(sent)
    }

    /// The same as bytes: while the reader is sought few at a time, since it may have begun to listen behind them.
    fn write_copies(&self, rest: &Aggregate) -> Result<u64, Errno> {
        let is_agreed = matches!(self.link, Link::Agreed(_));
        let is_sought = matches!(self.link, Link::Sought(_));
        let bytes_max = if is_sought { CHUNK_BYTES } else { usize::MAX };
        let is_for_marker =
            |piece: &&Piece| is_agreed && piece.len() >= REFERENCE_BYTES_MIN && Memory::of(piece).is_some();
        if let Some(Piece::File(range)) = rest.front() {
            return match send_range(self.descriptor.as_fd(), range, bytes_max) {
                Err(Errno::INVAL) => copy_range(self.descriptor.as_fd(), range, bytes_max),
                sent => sent,
            };
        }
        // The first piece goes in any case: its memory could not be shown.
        let first = rest.pieces().take(1);
        let others = rest.pieces().skip(1).take_while(|piece| !is_for_marker(piece));
        write_bytes(self.descriptor.as_fd(), first.chain(others), bytes_max)
    }
}

impl<D> Writer<D> {
    /// Writes bytes from now on, whatever the reader takes.
    pub fn refuse_references(&mut self) {
        if let Link::Agreed(link) = std::mem::replace(&mut self.link, Link::Bytes) {
            linger(*link);
        }
    }
}

impl<D> Drop for Writer<D> {
    fn drop(&mut self) {
        self.refuse_references();
    }
}

/// Keeps what a reader may still look at, though nothing more is written to it. Drops what others have returned.
fn linger(link: ReaderLink) {
    static LINGERING: Mutex<Vec<ReaderLink>> = Mutex::new(Vec::new());
    let mut lingering = LINGERING.lock().unwrap_or_else(PoisonError::into_inner);
    lingering.push(link);
    let is_ours = |link: &ReaderLink| link.process == std::process::id();
    lingering.retain_mut(|link| is_ours(link) && link.collect() && !link.lent.is_empty());
}

/// Writes from pieces in memory, up to the first that is not.
fn write_bytes<'a>(
    descriptor: BorrowedFd<'_>,
    pieces: impl Iterator<Item = &'a Piece>,
    bytes_max: usize,
) -> Result<u64, Errno> {
    let mut left = bytes_max;
    let vector = |piece: &'a Piece| match piece {
        Piece::Memory(slice) if left > 0 => {
            let len = slice.len().min(left);
            left -= len;
            Some(IoSlice::new(&slice[..len]))
        }
        _ => None,
    };
    let vectors: Vec<_> = pieces.map_while(vector).take(VECTORS_MAX).collect();
    if vectors.is_empty() {
        return Err(Errno::INVAL);
    }
    rustix::io::writev(descriptor, &vectors).map(|count| count as u64)
}

/// Writes from a range of a file by the kernel. `EINVAL`: not to this descriptor.
fn send_range(descriptor: BorrowedFd<'_>, range: &FileSlice, bytes_max: usize) -> Result<u64, Errno> {
    let count = usize::try_from(range.len()).unwrap_or(usize::MAX).min(bytes_max);
    match rustix::fs::sendfile(descriptor, range.file(), Some(&mut range.offset()), count)? {
        // The file was cut off.
        0 => Err(Errno::IO),
        count => Ok(count as u64),
    }
}

/// The same through memory: to files that are open for appending the kernel sends nothing.
fn copy_range(descriptor: BorrowedFd<'_>, range: &FileSlice, bytes_max: usize) -> Result<u64, Errno> {
    let count = usize::try_from(range.len()).unwrap_or(usize::MAX).min(bytes_max).min(CHUNK_BYTES);
    let mut bytes = vec![0; count];
    match rustix::io::pread(range.file(), &mut bytes[..], range.offset())? {
        0 => Err(Errno::IO),
        count => rustix::io::write(descriptor, &bytes[..count]).map(|count| count as u64),
    }
}

/// Writes a marker. Pipes take it at once or not at all; a socket that does not block might take a part.
fn write_whole(descriptor: BorrowedFd<'_>, marker: &[u8]) -> Result<(), Errno> {
    let mut written = 0;
    while written < marker.len() {
        match rustix::io::write(descriptor, &marker[written..]) {
            Ok(count) => written += count,
            Err(Errno::AGAIN | Errno::INTR) if written > 0 => {
                let _ = poll(&mut [PollFd::new(&descriptor, PollFlags::OUT)], None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl ReaderLink {
    /// Begins with a number that no other writer has; `None`: the reader is gone.
    fn new(channel: OwnedFd) -> Option<Self> {
        let mut number = [0; 16];
        rustix::rand::getrandom(&mut number[..], rustix::rand::GetRandomFlags::empty()).ok()?;
        passing::send(&channel, &ToReader::Hello(number).to_bytes(), &[]).ok()?;
        let (shown, lent) = (VecDeque::new(), HashMap::new());
        let process = std::process::id();
        Some(Self { channel, number, shown, forgotten: 0, lent, next_id: 0, calls: 0, process })
    }

    /// A marker for what is in front of `rest`, and what it refers to: nothing if that is too short, or unknown to the
    /// reader. It refers to a chunk's worth of memory, so that a full pipe does not hold a whole pool.
    fn marker(&mut self, rest: &Aggregate) -> (Marker, Vec<Piece>) {
        let mut marker = Marker { writer: self.number, references: Vec::new() };
        let mut pieces = Vec::new();
        let mut in_memory = 0;
        let mut id = self.next_id;
        for piece in rest.pieces() {
            let is_enough = marker.references.len() == REFERENCES_MAX || in_memory >= CHUNK_BYTES as u64;
            if piece.len() < REFERENCE_BYTES_MIN || is_enough || self.lent.len() + pieces.len() >= LENT_MAX {
                break;
            }
            let Some((memory, offset)) = Memory::of(piece) else { break };
            let Some(number) = self.number_of(&memory, pieces.is_empty()) else { break };
            if !matches!(memory, Memory::File(_)) {
                in_memory += piece.len();
            }
            // The rest of a larger piece has the next marker.
            let len = u32::try_from(piece.len()).unwrap_or(u32::MAX);
            // Ids begin anew after 2^32, which a reader may keep some through.
            while self.lent.contains_key(&id) {
                id = id.wrapping_add(1);
            }
            marker.references.push(Reference { id, memory: number, offset, len });
            pieces.push(piece.clone());
            id = id.wrapping_add(1);
            if piece.len() > u64::from(len) {
                break;
            }
        }
        (marker, pieces)
    }

    /// Keeps what a marker that was written refers to, until it is returned. Returns its length in bytes.
    fn lend(&mut self, marker: &Marker, pieces: Vec<Piece>) -> u64 {
        for (reference, piece) in marker.references.iter().zip(pieces) {
            // A file is nothing that could be used again.
            if let Piece::Memory(slice) = piece
                && slice.in_held::<Mapped>().is_none()
            {
                self.lent.insert(reference.id, slice);
            }
        }
        self.next_id = marker.references.last().map_or(self.next_id, |last| last.id.wrapping_add(1));
        marker.references.iter().map(|reference| u64::from(reference.len)).sum()
    }

    /// The number by which the reader knows a memory. It is shown what it does not know, if it `may_forget` another or has
    /// room. `None`: it cannot be shown it now.
    fn number_of(&mut self, memory: &Memory, may_forget: bool) -> Option<u32> {
        if let Some(at) = self.shown.iter().rposition(|shown| shown.is(memory)) {
            return Some(self.forgotten + at as u32);
        }
        if self.shown.len() == SHOWN_MAX {
            if !may_forget {
                return None;
            }
            self.shown.pop_front();
            self.forgotten += 1;
        }
        memory.show(&self.channel).ok()?;
        self.shown.push_back(memory.clone());
        Some(self.forgotten + self.shown.len() as u32 - 1)
    }

    /// Takes back what the reader has returned; false if it is gone.
    fn collect(&mut self) -> bool {
        self.calls = 0;
        let mut message = [0; 4 * RETURNED_MAX];
        loop {
            match rustix::net::recv(&self.channel, &mut message, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return false,
                Ok((count, _)) => {
                    let Some(ids) = returned_from_bytes(&message[..count]) else { return false };
                    for id in ids {
                        self.lent.remove(&id);
                    }
                }
                Err(error) => return error == Errno::AGAIN,
            }
        }
    }
}

impl Memory {
    /// What a piece lies in, and where; `None`: in memory of this process alone.
    fn of(piece: &Piece) -> Option<(Self, u64)> {
        match piece {
            Piece::File(range) => Some((Self::File(range.clone()), range.offset())),
            Piece::Memory(slice) => {
                if let Some((pool, offset)) = slice.in_pool() {
                    return Some((Self::Own(pool.clone()), u64::from(offset)));
                }
                if let Some((borrowed, start)) = slice.in_held::<Borrowed>() {
                    let offset = borrowed.offset + u64::from(start);
                    return Some((Self::Peer(Arc::clone(&borrowed.pool)), offset));
                }
                let (mapped, start) = slice.in_held::<Mapped>()?;
                Some((Self::File(mapped.range.clone()), mapped.range.offset() + u64::from(start)))
            }
            Piece::Shared(_) | Piece::Piped(_) => None,
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Own(one), Self::Own(other)) => one == other,
            (Self::Peer(one), Self::Peer(other)) => Arc::ptr_eq(one, other),
            (Self::File(one), Self::File(other)) => one.is_of_same_file(other),
            _ => false,
        }
    }

    fn show(&self, channel: &OwnedFd) -> io::Result<()> {
        let (message, file) = match self {
            Self::Own(pool) => (ToReader::Pool(pool.len() as u64), pool.as_fd()),
            Self::Peer(pool) => (ToReader::Pool(pool.len()), pool.file.as_fd()),
            Self::File(range) => (ToReader::File, range.file().as_fd()),
        };
        passing::send(channel, &message.to_bytes(), &[file])
    }
}

/// Calls between two looks at what the reader returns.
const CALLS_BETWEEN: usize = 8;

/// References that are not returned. With more, bytes go as bytes.
const LENT_MAX: usize = 4096;

/// Pieces that leave as bytes with one call.
const VECTORS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Allocator, Reader};

    /// Goal: a reader that keeps what it has for 2^32 references goes on to see its own bytes. Method: ids that begin anew.
    #[test]
    fn ids_in_use_are_passed_over() {
        let allocator = Allocator::new().unwrap();
        let (from, to) = rustix::pipe::pipe().unwrap();
        let _reader = Reader::new(from, &allocator).unwrap();
        let mut writer = Writer::new(to);
        for next_id in [0, u32::MAX, 0, u32::MAX] {
            if let Link::Agreed(link) = &mut writer.link {
                link.next_id = next_id;
            }
            writer.write(&allocator.create(CHUNK_BYTES).freeze()).unwrap();
        }
        let Link::Agreed(link) = &writer.link else { panic!("the reader takes references") };
        let mut ids: Vec<u32> = link.lent.keys().copied().collect();
        ids.sort_unstable();
        assert_eq!(ids, [0, 1, 2, u32::MAX]);
    }
}
