//! Work that takes long, cut out of a step so that an architecture can decide which thread does it: waiting for a disk, or
//! the arithmetic of a handshake, of a password or of a content coding.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use baton_buf::{FileSlice, OpenFile, Slice};
use baton_content::{Blocking, Cache, Found, NeedsDisk, Query, Stored, ToCode, Tree, View};
use baton_http::{AcceptedCodings, Coding, Stamp};
use baton_site::documents::Rewriting;
use baton_site::guards::Verification;
use baton_tls::Handshake;
use baton_upstream::ClientSocket;
use rustix::io::Errno;

use crate::context::Context;
use crate::protocol::StreamId;
use crate::send_queue::send_waiting;

/// Work that a step needs and that may block. Run it on any thread, then give the result to
/// [`Session::handle_job`](crate::session::Session::handle_job).
#[derive(Debug)]
pub enum Job {
    /// Find out what a name stands for: resolve it, open it, read it into memory if it is small.
    Find {
        /// The request that waits for it.
        stream: StreamId,
        /// Keeps the result for later requests.
        cache: Arc<Cache>,
        /// The tree to search.
        tree: Arc<Tree>,
        /// The path of the request, as it was sent.
        path: Box<[u8]>,
        /// The codings that the client takes.
        accepted: AcceptedCodings,
        /// How a listing is to look.
        view: View,
        /// The time of the request.
        stamp: Stamp,
    },
    /// Verify a password, which takes long on purpose.
    Verify(StreamId, Box<Verification>),
    /// Replace the links of a page to documents that are away.
    Rewrite(StreamId, Box<Rewriting>),
    /// Code a file, which takes the processor long.
    Code(StreamId, ToCode),
    /// Read a range of a file into the page cache (Flash's read helpers: Pai, section 4.4.1).
    PageIn {
        /// The stream that waits for it; `None`: the whole connection does.
        stream: Option<StreamId>,
        /// What to read.
        slice: FileSlice,
    },
    /// Read a range of a file into memory of the server's own, for a request that needs its bytes.
    Read(StreamId, FileSlice),
    /// Send a range of a file in a call that waits for the client (Harji, section 3.8.1: the workers of `knot-b`).
    Send {
        /// The client.
        socket: Arc<ClientSocket>,
        /// What to send.
        slice: FileSlice,
        /// How long the client may take nothing.
        patience: Duration,
    },
    /// Exchange keys and sign, which takes a processor for a part of a millisecond, or several with a long RSA key.
    Handshake(Box<Handshake>),
}

/// What became of a [`Job`].
#[derive(Debug)]
pub enum JobDone {
    /// What the exchange of this request was to know.
    Request(StreamId, Learned),
    /// The range is in memory up to this offset (or cannot be read, which sending it will show).
    PagedIn {
        /// The stream that waited for it; `None`: the whole connection did.
        stream: Option<StreamId>,
        /// End of the range.
        until: u64,
    },
    /// Bytes of the range that were sent.
    Sent(Result<u64, Errno>),
    /// The handshake after the work.
    Handshake(Box<Handshake>),
}

/// What an exchange knows after a job.
#[derive(Debug)]
pub enum Learned {
    /// What the name stands for.
    Found(Found),
    /// The user, if the password was right.
    Verified(Option<Box<str>>),
    /// A file in its coding, or as it is where that is not shorter.
    Coded(CodedFile),
    /// Bytes of a file; `None`: they cannot be read.
    Read(Option<Slice>),
}

/// A file that a job has coded.
#[derive(Debug)]
pub struct CodedFile {
    /// The coding that was wanted.
    pub coding: Coding,
    /// Its length before.
    pub file_bytes: u64,
    /// What the client gets.
    pub stored: Arc<Stored>,
}

impl Job {
    /// The job of answering a query that might wait for a disk.
    pub fn find(ctx: &Context, stream: StreamId, tree: &Arc<Tree>, query: &Query<'_>) -> Self {
        Self::Find {
            stream,
            cache: Arc::clone(&ctx.cache),
            tree: Arc::clone(tree),
            path: query.path.into(),
            accepted: query.accepted,
            view: query.view,
            stamp: *ctx.clock.stamp(),
        }
    }

    /// Does the work, waiting as long as it takes.
    pub fn run(self) -> JobDone {
        match self {
            Self::Find { stream, cache, tree, path, accepted, view, stamp } => {
                let query = Query { path: &path, accepted, view };
                let found = cache.find(&tree, &query, &stamp, Blocking::Allowed);
                // With `Blocking::Allowed` the cache waits itself.
                let found = found.unwrap_or_else(|NeedsDisk| Found::Failed(Errno::AGAIN));
                JobDone::Request(stream, Learned::Found(found))
            }
            Self::Verify(stream, verification) => {
                JobDone::Request(stream, Learned::Verified(verification.run()))
            }
            Self::Code(stream, to_code) => {
                let (coding, file_bytes) = (to_code.coding(), to_code.file_bytes());
                let coded = CodedFile { coding, file_bytes, stored: to_code.run() };
                JobDone::Request(stream, Learned::Coded(coded))
            }
            Self::Rewrite(stream, rewriting) => {
                JobDone::Request(stream, Learned::Found(Found::File(rewriting.run())))
            }
            Self::Handshake(mut handshake) => {
                handshake.work();
                JobDone::Handshake(handshake)
            }
            Self::Send { socket, slice, patience } => {
                JobDone::Sent(send_waiting(socket.as_fd(), &slice, patience))
            }
            Self::Read(stream, slice) => JobDone::Request(stream, Learned::Read(read(&slice).ok())),
            Self::PageIn { stream, slice } => {
                let (file, offset, len) = (slice.file(), slice.offset(), slice.len());
                if baton_sys::residency::bring_in(file, offset, len).is_err() {
                    touch(file, offset, len);
                }
                JobDone::PagedIn { stream, until: slice.offset() + slice.len() }
            }
        }
    }
}

/// Reads a range.
fn read(slice: &FileSlice) -> Result<Slice, Errno> {
    let mut bytes = vec![0; slice.len() as usize];
    let mut at = 0;
    while at < bytes.len() {
        match rustix::io::pread(slice.file(), &mut bytes[at..], slice.offset() + at as u64)? {
            0 => return Err(Errno::IO),
            count => at += count,
        }
    }
    Ok(Slice::from(bytes))
}

/// Reads a range and discards it: the pages stay. For kernels and file systems without a better call.
fn touch(file: &OpenFile, mut offset: u64, len: u64) {
    let end = offset + len;
    let mut bytes = [0; 64 * 1024];
    while offset < end {
        let want = bytes.len().min((end - offset) as usize);
        match rustix::io::pread(file, &mut bytes[..want], offset) {
            Ok(0) | Err(_) => return,
            Ok(count) => offset += count as u64,
        }
    }
}
