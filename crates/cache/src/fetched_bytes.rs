//! What comes of fetches, with its bytes in memory.
//!
//! Of an application that is faster than its readers, the gateway keeps a part in a file. What of it is not in the kernel's memory
//! any more is read by a thread of the store, so that no loop waits for the disk.

use std::sync::Arc;

use baton_buf::{Aggregate, FileSlice, Piece, Slice};
use baton_sys::blocking::{Blocking, ReadError};
use baton_upstream::{FailureReason, RequestId, ResponseEvent};

use crate::exchange::failed;
use crate::file_reads::{self, FileRead, ReadByThread};
use crate::fill::Mail;
use crate::loop_cache::Caching;

impl Caching<'_> {
    /// The gateway's next event of a fetch, with bytes of this process. `None`: there is none, or a file is being read: then the
    /// fetch becomes due when that is done.
    pub(crate) fn take_of_fetch(&mut self, id: RequestId) -> Option<ResponseEvent> {
        let kept = self.cache.file_reads.remove(id);
        let bytes = match kept {
            Some(FileRead { read: Some(read), behind }) => {
                let Some(done) = read.get().cloned() else {
                    self.cache.file_reads.keep(id, Some(read), behind);
                    return None;
                };
                self.cache.file_reads.keep(id, None, behind);
                return Some(self.body_of_fetch(id, done.map(one)));
            }
            Some(FileRead { read: None, behind }) => behind,
            None => match self.gateway.take(id)? {
                ResponseEvent::Body(bytes) => bytes,
                other => return Some(other),
            },
        };
        let mut first = bytes;
        if let Some(Piece::File(slice)) = first.front() {
            let slice = slice.prefix(READ_BYTES);
            let behind = first.split_off(slice.len());
            return match file_reads::read(&slice, Blocking::Never) {
                Err(ReadError::NeedsDisk) => {
                    let read = self.read_behind(id, slice);
                    self.cache.file_reads.keep(id, Some(read), behind);
                    None
                }
                read => {
                    self.cache.file_reads.keep(id, None, behind);
                    Some(self.body_of_fetch(id, read.ok().flatten().map(one)))
                }
            };
        }
        let in_memory = first.pieces().take_while(|piece| !matches!(piece, Piece::File(_)));
        let len = in_memory.map(Piece::len).sum();
        let behind = first.split_off(len);
        self.cache.file_reads.keep(id, None, behind);
        Some(self.body_of_fetch(id, own(&first)))
    }

    /// Bytes of a fetch, or its end if they cannot be got.
    fn body_of_fetch(&mut self, id: RequestId, bytes: Option<Aggregate>) -> ResponseEvent {
        bytes.map_or_else(
            || {
                self.cache.file_reads.remove(id);
                self.gateway.abandon(id, self.cache.now_ms);
                ResponseEvent::Failed(failed(FailureReason::Ended))
            },
            ResponseEvent::Body,
        )
    }

    /// Has a thread read a part of a file, and makes the fetch due then.
    fn read_behind(&self, id: RequestId, slice: FileSlice) -> ReadByThread {
        let read = ReadByThread::default();
        let (result, home) = (Arc::clone(&read), Arc::clone(&self.cache.home));
        self.cache.shared.blocks.run_behind(move || {
            // It is set once.
            let _ = result.set(file_reads::read(&slice, Blocking::Allowed).ok().flatten());
            home.mailbox.send([Mail::Pump(id)]);
        });
        read
    }
}

fn one(slice: Slice) -> Aggregate {
    let mut bytes = Aggregate::new();
    bytes.push(slice);
    bytes
}

/// These bytes, where those of other processes are copied: they change. `None`: they are in no memory. What the cache asks for
/// does not come through pipes: see `Request::takes_pipes`.
fn own(bytes: &Aggregate) -> Option<Aggregate> {
    let mut own = Aggregate::new();
    for piece in bytes.pieces() {
        match piece {
            Piece::Memory(slice) => own.push(slice.clone()),
            Piece::Shared(slice) => {
                let mut bytes = Vec::with_capacity(slice.len());
                slice.copy_prefix_to(slice.len(), &mut bytes);
                own.push(Slice::from(bytes));
            }
            Piece::File(_) | Piece::Piped(_) => return None,
        }
    }
    Some(own)
}

/// The pieces of a body that [`Caching::take_of_fetch`] has given.
pub(crate) fn in_memory(bytes: &Aggregate) -> impl Iterator<Item = &Slice> {
    bytes.pieces().filter_map(|piece| match piece {
        Piece::Memory(slice) => Some(slice),
        Piece::Shared(_) | Piece::File(_) | Piece::Piped(_) => None,
    })
}

/// Bytes of a file that are read at a time: as many as the gateway keeps in memory for a slow client.
const READ_BYTES: u64 = 256 << 10;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use baton_buf::OpenFile;

    use super::*;
    use crate::test_bench::Bench;

    fn part(text: &[u8], offset: u64, len: u64) -> FileSlice {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        FileSlice::new(Arc::new(OpenFile::new(file.into())), offset, len)
    }

    fn taken(bench: &mut Bench, id: RequestId) -> Option<Vec<u8>> {
        let event = bench.caching().take_of_fetch(id)?;
        let ResponseEvent::Body(bytes) = event else { panic!("{event:?}") };
        let mut text = Vec::new();
        bytes.pieces().for_each(|piece| match piece {
            Piece::Memory(slice) => text.extend_from_slice(slice),
            other => panic!("{other:?}"),
        });
        Some(text)
    }

    /// Goal: what lies in a file comes in its place, in memory.
    #[test]
    fn a_body_comes_in_order() {
        let mut bench = Bench::new("file-order");
        let mut body = Aggregate::new();
        body.push(Slice::from(b"before".to_vec()));
        body.push(part(b"-file-", 1, 4));
        body.push(Slice::from(b"behind".to_vec()));
        let id = RequestId::new(7);
        bench.cache.file_reads.keep(id, None, body);
        let mut all = Vec::new();
        while !bench.cache.file_reads.is_empty() {
            match taken(&mut bench, id) {
                Some(text) => all.push(text),
                // The file system cannot tell whether it is in memory.
                None => bench.wait_for_mail(),
            }
        }
        assert_eq!(all, [&b"before"[..], b"file", b"behind"]);
    }

    /// Goal: a fetch waits for the thread that reads for it, and for nothing else.
    #[test]
    fn what_is_on_the_disk_alone_is_read_by_a_thread() {
        let mut bench = Bench::new("file-thread");
        let id = RequestId::new(7);
        let waiting = ReadByThread::default();
        bench.cache.file_reads.keep(id, Some(Arc::clone(&waiting)), Aggregate::new());
        assert_eq!(taken(&mut bench, id), None, "it is not read yet");
        waiting.set(Some(Slice::from(b"read".to_vec()))).unwrap();
        assert_eq!(taken(&mut bench, id), Some(b"read".to_vec()));
        let read = bench.caching().read_behind(id, part(b"file", 0, 4));
        bench.wait_for_mail();
        assert_eq!(read.get().cloned().flatten().as_deref(), Some(&b"file"[..]));
    }

    /// Goal: a file that is shorter than it was ends the fetch.
    #[test]
    fn a_file_that_cannot_be_read_ends_the_fetch() {
        let mut bench = Bench::new("file-short");
        let mut body = Aggregate::new();
        body.push(part(b"file", 0, 5));
        let id = RequestId::new(7);
        bench.cache.file_reads.keep(id, None, body);
        let event = bench.caching().take_of_fetch(id).or_else(|| {
            bench.wait_for_mail();
            bench.caching().take_of_fetch(id)
        });
        assert!(matches!(event, Some(ResponseEvent::Failed(_))), "{event:?}");
        assert!(bench.cache.file_reads.is_empty());
    }
}
