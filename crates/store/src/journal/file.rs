//! The journal as a file: read from the beginning, read at a place, appended to.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use baton_sys::blocking::{Blocking, ReadError, read_at};
use rustix::io::Errno;

use crate::file_range::write_all_at;
use crate::journal::entry::Entry;
use crate::journal::frame::{
    FRAME_BYTES_MAX, Frame, HEAD_BYTES, Header, MARK_OFFSET, decode_mark, encode_mark, push_frame, read_frame,
};

/// A journal that can be read.
#[derive(Debug)]
pub(crate) struct JournalFile {
    file: OwnedFd,
    header: Header,
}

/// What is wrong with a journal.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// The file is no journal, has another layout, or durable bytes of it are damaged.
    Void,
    /// The file cannot be read.
    Io(io::Error),
}

impl JournalFile {
    /// Reads the head of a journal; returns it, and up to which byte it is durable.
    pub(crate) fn open(file: OwnedFd, slot_bytes: (u32, u32)) -> Result<(Self, u64), Unusable> {
        let mut head = [0; HEAD_BYTES];
        let filled = read_at(&file, &mut head, 0, Blocking::Allowed).map_err(unusable)?;
        let header = Header::decode(&head).ok_or(Unusable::Void)?;
        let mark = head[MARK_OFFSET as usize..].first_chunk().and_then(|mark| decode_mark(header.id, mark));
        match mark {
            Some(durable) if filled == HEAD_BYTES && header.slot_bytes == slot_bytes => {
                Ok((Self { file, header }, durable))
            }
            _ => Err(Unusable::Void),
        }
    }

    /// Calls `handle_entry` with each entry of the longest valid prefix, the offset of its frame and the frame's length.
    /// Returns where the prefix ends.
    ///
    /// # Errors
    /// What read(2) says.
    pub(crate) fn replay(&self, mut handle_entry: impl FnMut(&Entry<'_>, u64, u32)) -> io::Result<u64> {
        let mut window = Vec::new();
        let mut offset = HEAD_BYTES as u64;
        loop {
            // The end of the window may cut a frame: the next window begins with that frame.
            window.resize(WINDOW_BYTES, 0);
            let filled = match read_at(&self.file, &mut window, offset, Blocking::Allowed) {
                Ok(filled) => filled,
                Err(ReadError::NeedsDisk) => return Err(Errno::AGAIN.into()),
                Err(ReadError::Errno(errno)) => return Err(errno.into()),
            };
            let is_last = filled < WINDOW_BYTES;
            window.truncate(filled);
            let mut at = 0;
            loop {
                match read_frame(&window[at..], self.header.id, offset + at as u64) {
                    Frame::Whole(entry, len) => {
                        handle_entry(&entry, offset + at as u64, len);
                        at += len as usize;
                    }
                    Frame::Cut if !is_last => break,
                    Frame::Cut | Frame::Damaged => return Ok(offset + at as u64),
                }
            }
            offset += at as u64;
        }
    }

    /// The bytes of a frame at a place, for [`entry_of`](Self::entry_of).
    pub(crate) fn read(&self, offset: u64, len: u32, blocking: Blocking) -> Result<Vec<u8>, ReadError> {
        let mut bytes = vec![0; len as usize];
        let filled = read_at(&self.file, &mut bytes, offset, blocking)?;
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// The entry in the bytes of a frame, if they are intact.
    pub(crate) fn entry_of<'a>(&self, bytes: &'a [u8], offset: u64) -> Option<Entry<'a>> {
        match read_frame(bytes, self.header.id, offset) {
            Frame::Whole(entry, len) if len as usize == bytes.len() => Some(entry),
            _ => None,
        }
    }
}

fn unusable(error: ReadError) -> Unusable {
    match error {
        ReadError::NeedsDisk => Unusable::Io(Errno::AGAIN.into()),
        ReadError::Errno(errno) => Unusable::Io(errno.into()),
    }
}

/// The end of a journal: entries are collected, then appended with one call.
#[derive(Debug)]
pub(crate) struct Appender {
    journal: Arc<JournalFile>,
    /// Where the bytes in the file end.
    end: u64,
    collected: Vec<u8>,
}

impl Appender {
    /// Begins a journal in an empty file.
    ///
    /// # Errors
    /// What write(2) says.
    pub(crate) fn begin(file: OwnedFd, header: Header) -> io::Result<Self> {
        let end = HEAD_BYTES as u64;
        write_all_at(&file, &header.encode(end), 0)?;
        Ok(Self { journal: Arc::new(JournalFile { file, header }), end, collected: Vec::new() })
    }

    /// Goes on where the valid prefix of a journal ends.
    ///
    /// # Errors
    /// What ftruncate(2) says.
    pub(crate) fn resume(journal: JournalFile, end: u64) -> io::Result<Self> {
        rustix::fs::ftruncate(&journal.file, end)?;
        Ok(Self { journal: Arc::new(journal), end, collected: Vec::new() })
    }

    /// The journal, for those who read from it.
    pub(crate) fn journal(&self) -> &Arc<JournalFile> {
        &self.journal
    }

    /// Length of the journal in bytes, with what is collected.
    pub(crate) fn len(&self) -> u64 {
        self.end + self.collected.len() as u64
    }

    /// Bytes that are collected.
    pub(crate) fn collected_bytes(&self) -> usize {
        self.collected.len()
    }

    /// Adds an entry; returns where its frame will be, and the frame's length.
    pub(crate) fn push(&mut self, entry: &Entry<'_>) -> (u64, u32) {
        let offset = self.len();
        (offset, push_frame(&mut self.collected, self.journal.header.id, offset, entry))
    }

    /// Writes what is collected. After an error the journal misses it.
    ///
    /// # Errors
    /// What write(2) says.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let written = write_all_at(&self.journal.file, &self.collected, self.end);
        if written.is_ok() {
            self.end += self.collected.len() as u64;
        }
        self.collected.clear();
        // A store that is opened with a long journal collects much at once; later batches are small.
        self.collected.shrink_to(FRAME_BYTES_MAX);
        written
    }

    /// Writes what is collected and waits until the disk has it.
    ///
    /// # Errors
    /// What write(2) and fdatasync(2) say.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        rustix::fs::fdatasync(&self.journal.file)?;
        // Behind the sync: a mark must not reach the disk before what it vouches for.
        write_all_at(&self.journal.file, &encode_mark(self.journal.header.id, self.end), MARK_OFFSET)
    }
}

/// How much of a journal is read at once; more than a frame.
const WINDOW_BYTES: usize = 1 << 20;
const _: () = assert!(WINDOW_BYTES > FRAME_BYTES_MAX);
