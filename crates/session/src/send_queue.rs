//! An aggregate and a socket.
//!
//! The send queue writes what it holds with the fewest calls and copies that the kernel allows: neighbouring pieces in
//! memory leave with one `send` or `sendmsg`, ranges of files with `sendfile` ([`Sender`]). What is known to follow is
//! announced (`MSG_MORE`), so that a head shares its packet with the body behind it and a FIN rides on the last
//! segment.
//!
//! Whether `sendfile` waits is decided by a flag of the socket's file description, which an application that was passed
//! the socket can change. On such a socket files are sent through memory: of all calls that send, only those of the
//! `send` family say for themselves that they do not wait (`MSG_DONTWAIT`).

mod moving;

use std::fmt;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use baton_buf::{Aggregate, FileSlice, Piece, Sender, Sink, Stop};
use baton_response::IsResident;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

/// Whether a `sendfile` call returns when the socket's buffer is full, or when the client has taken all
/// (Harji, 2010, sections 3.4 and 6.1: "non-blocking" and "blocking" variants of every server).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SendfileMode {
    /// Returns at once; the rest goes when the socket is writable again.
    #[default]
    NonBlocking,
    /// Waits: the thread is parked until the client has taken everything, or the send timeout is over.
    Blocking,
    /// Blocking for files of at least this size, in bytes; non-blocking for the others.
    BySize(u64),
    /// Ranges of files are read into memory and sent from there.
    Never,
}

impl fmt::Display for SendfileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NonBlocking => f.write_str("non-blocking"),
            Self::Blocking => f.write_str("blocking"),
            Self::Never => f.write_str("never"),
            Self::BySize(bytes) => write!(f, "by-size (blocking from {bytes} bytes on)"),
        }
    }
}

/// How a send queue sends; one per thread that runs steps, so that it can be tuned while the server runs.
#[derive(Clone, Debug)]
pub struct SendPolicy {
    /// Whether `sendfile` waits for the client.
    pub sendfile: SendfileMode,
    /// Bytes that one flush may send before other clients have a turn.
    pub quantum_bytes: u64,
    /// Whether the send queue tests that a file's pages are in memory before it sends them, because this thread must not
    /// wait for a disk.
    pub test_residency: bool,
    /// Says what is in memory: [`is_resident`], but for a simulated disk.
    pub is_resident: IsResident,
    /// Whether the kernel may seal records of TLS.
    pub kernel_tls: bool,
}

impl SendPolicy {
    /// The policy for a client whose other streams must not wait.
    pub(crate) fn without_waiting(&self) -> Self {
        let sendfile = match self.sendfile {
            SendfileMode::Blocking | SendfileMode::BySize(_) => SendfileMode::NonBlocking,
            SendfileMode::NonBlocking | SendfileMode::Never => self.sendfile,
        };
        Self { sendfile, ..self.clone() }
    }

    /// Whether the call that sends so many bytes of a file waits until the client has taken them.
    fn waits_for(&self, len: u64) -> bool {
        match self.sendfile {
            SendfileMode::Blocking => true,
            SendfileMode::BySize(bytes) => len >= bytes,
            SendfileMode::NonBlocking | SendfileMode::Never => false,
        }
    }
}

/// How a flush ended.
#[derive(Debug)]
pub(crate) enum Flush {
    /// Everything has been handed to the kernel.
    Done,
    /// The socket takes no more for now.
    Full,
    /// There is more to send, and the socket may take it, but other clients have a turn first.
    Quantum,
    /// This range is next, and some of it is not in memory.
    NeedsPages(FileSlice),
    /// This range is next, and the call that sends it is to [wait](send_waiting) for the client.
    Waits(FileSlice),
    /// Nothing more can be sent: the client is gone, or the file is not what it was.
    Over(Stop),
}

/// What is still to be sent on one connection.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    sender: Sender,
    /// The offset up to which the file in front is known to be in memory.
    resident_until: u64,
    /// Bytes of a file that are tested for residency at once: for a slow client, little more than it takes. `None`:
    /// all.
    tested_bytes_max: Option<u64>,
    /// The result for the range that [`Flush::Waits`] named.
    waited: Option<Result<u64, Errno>>,
}

/// The least that is tested for a slow client: as much as the kernel reads ahead.
const TESTED_BYTES_MIN: u64 = 128 * 1024;

/// What one segment takes at an MTU of 1,500 bytes, with TCP's timestamps, over IPv6.
const SEGMENT_BYTES: u64 = 1428;

impl SendQueue {
    /// Bytes handed to the kernel so far.
    pub(crate) fn sent(&self) -> u64 {
        self.sender.sent()
    }

    /// Where the bytes pushed next will begin, counted like [`sent`](Self::sent).
    pub(crate) fn end(&self) -> u64 {
        self.sender.sent() + self.sender.queue.len()
    }

    /// Bytes still to be sent.
    pub(crate) fn queued(&self) -> u64 {
        self.sender.queue.len()
    }

    /// Whether there is nothing to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.sender.queue.is_empty()
    }

    /// Adds a piece at the end.
    pub(crate) fn push(&mut self, piece: impl Into<Piece>) {
        self.sender.queue.push(piece);
    }

    /// Adds pieces at the end.
    pub(crate) fn append(&mut self, pieces: Aggregate) {
        self.sender.queue.append(pieces);
    }

    /// Bytes of the longest range of a file among what is to be sent.
    pub(crate) fn longest_file_range(&self) -> u64 {
        let len = |piece: &Piece| if let Piece::File(slice) = piece { slice.len() } else { 0 };
        self.sender.queue.pieces().map(len).max().unwrap_or(0)
    }

    /// Whether `MSG_MORE` on the last call may not keep the last packet for a FIN: calls that send by reference have no such
    /// flag, and an acknowledgement of earlier segments pushes what it has kept.
    pub(crate) fn needs_cork(&self) -> bool {
        let last = self.sender.queue.pieces().next_back();
        self.queued() > SEGMENT_BYTES || matches!(last, Some(Piece::File(_) | Piece::Piped(_)))
    }

    /// What is to be sent, for a protocol that frames into it.
    pub(crate) fn queue_mut(&mut self) -> &mut Aggregate {
        &mut self.sender.queue
    }

    /// Drops what has not been sent.
    pub(crate) fn clear(&mut self) {
        self.waited = None;
        self.sender.queue.clear();
    }

    /// The range that [`Flush::NeedsPages`] named is in memory.
    pub(crate) fn handle_pages(&mut self, until: u64) {
        self.resident_until = until;
    }

    /// The client has got so many bytes that a sink had kept, and that a flush did not count.
    pub(crate) fn handle_taken(&mut self, bytes: u64) {
        if bytes > 0 {
            // Fails only for none.
            let _ = self.sender.handle_sent(Ok(bytes));
        }
    }

    /// [`send_waiting`] returned this for the range that [`Flush::Waits`] named.
    pub(crate) fn handle_waited(&mut self, sent: Result<u64, Errno>) {
        self.waited = Some(sent);
    }

    /// Sends as much as the sink takes. `through`: memory through which ranges of files go; `None`: the socket's flags
    /// are what the server has made them, and ranges of files may go by reference. `last`: the connection ends behind
    /// it, so that the kernel may keep the last packet until the FIN joins it.
    pub(crate) fn flush(
        &mut self,
        sink: &(impl Sink + ?Sized),
        policy: &SendPolicy,
        mut through: Option<&mut [u8]>,
        last: bool,
        unix_seconds: u64,
    ) -> Flush {
        let sent_before = self.sent();
        let quantum_end = sent_before.saturating_add(policy.quantum_bytes);
        loop {
            let sent = match self.sender.queue.front() {
                None => return Flush::Done,
                Some(_) if self.sent() >= quantum_end => return Flush::Quantum,
                Some(Piece::Memory(_) | Piece::Shared(_)) => self.sender.send_memory(sink, last, &[]),
                Some(Piece::Piped(_)) => self.sender.send_piped(sink),
                Some(Piece::File(slice)) => {
                    let mut window = slice.len().min(quantum_end - self.sent());
                    let waits = through.is_none() && policy.waits_for(slice.len());
                    if waits && self.waited.is_none() {
                        return Flush::Waits(slice.prefix(window));
                    }
                    let range = slice.offset()..slice.offset() + window;
                    let known =
                        range.end <= self.resident_until || slice.file().was_resident(range, unix_seconds);
                    if policy.test_residency && !known && !waits {
                        window = window.min(self.tested_bytes_max.unwrap_or(u64::MAX));
                        if !(policy.is_resident)(slice, window, unix_seconds) {
                            return Flush::NeedsPages(slice.prefix(window));
                        }
                        self.resident_until = slice.offset() + window;
                        self.tested_bytes_max = self.tested_bytes_max.map(|bytes| bytes.saturating_mul(2));
                    }
                    match self.waited.take() {
                        Some(sent) => self.sender.handle_sent(sent),
                        None => self.sender.send_file(sink, window, through.as_deref_mut(), last),
                    }
                }
            };
            match sent {
                Ok(()) => {
                    if !matches!(self.sender.queue.front(), Some(Piece::File(_))) {
                        self.resident_until = 0;
                    }
                }
                Err(Stop::Full) => {
                    // By the time the client takes more, the kernel may have evicted the pages.
                    self.resident_until = 0;
                    self.tested_bytes_max = Some(((self.sent() - sent_before) * 2).max(TESTED_BYTES_MIN));
                    return Flush::Full;
                }
                Err(stop) => return Flush::Over(stop),
            }
        }
    }
}

/// Whether the next `window` bytes can be sent without waiting for a disk. Where the kernel cannot tell (it is old, or
/// the file system has no page cache), they are sent.
pub fn is_resident(slice: &FileSlice, window: u64, unix_seconds: u64) -> bool {
    let (file, range) = (slice.file(), slice.offset()..slice.offset() + window);
    if file.was_resident(range.clone(), unix_seconds) {
        return true;
    }
    let resident = baton_sys::residency::is_resident(file, slice.offset(), window).unwrap_or(true);
    if resident {
        file.note_resident(range, unix_seconds);
    }
    resident
}

/// Sends a range of a file in one call that returns when the client has taken all of it, or nothing for `patience`.
///
/// The socket is in blocking mode during this call, and nothing else uses it. The call removes the socket's timeout
/// again: an application that is passed the socket would not expect one.
pub(crate) fn send_waiting(
    socket: BorrowedFd<'_>,
    slice: &FileSlice,
    patience: Duration,
) -> Result<u64, Errno> {
    set_socket_timeout(socket, Timeout::Send, Some(patience))?;
    let flags = rustix::fs::fcntl_getfl(socket)?;
    let is_accepted_so = !flags.contains(OFlags::NONBLOCK);
    if !is_accepted_so {
        rustix::fs::fcntl_setfl(socket, flags - OFlags::NONBLOCK)?;
    }
    let sent = socket.send_file(slice, slice.len());
    if !is_accepted_so {
        rustix::fs::fcntl_setfl(socket, flags)?;
    }
    set_socket_timeout(socket, Timeout::Send, None)?;
    sent
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use baton_buf::{Buffer, OpenFile};

    use super::*;
    use crate::cold_file::cold_file;

    fn policy() -> SendPolicy {
        SendPolicy {
            sendfile: SendfileMode::NonBlocking,
            quantum_bytes: u64::MAX,
            test_residency: false,
            is_resident,
            kernel_tls: false,
        }
    }

    /// Two ends of a connection; ours does not block.
    fn pair() -> (UnixStream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (ours, theirs)
    }

    fn file_of(bytes: &[u8]) -> Arc<OpenFile> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Arc::new(OwnedFd::from(file).into())
    }

    /// Memory and file pieces in turn, more of them than one call takes, arrive in order and complete, through a
    /// socket that is full again and again.
    #[test]
    fn everything_arrives_in_order() {
        let (ours, theirs) = pair();
        everything_arrives(&ours, theirs, None);
    }

    /// Goal: an application may have changed the flags of a socket, and still no call waits for the client.
    #[test]
    fn no_call_waits_at_a_socket_in_blocking_mode() {
        let (ours, theirs) = pair();
        ours.set_nonblocking(false).unwrap();
        everything_arrives(&ours, theirs, Some(&mut [0; 64 * 1024]));
    }

    fn everything_arrives(ours: &UnixStream, theirs: UnixStream, mut through: Option<&mut [u8]>) {
        let mut send_queue = SendQueue::default();
        let mut expected = Vec::new();
        for round in 0_u8..4 {
            for piece in 0_u8..100 {
                let bytes = vec![round ^ piece; 1000];
                expected.extend_from_slice(&bytes);
                send_queue.push(Buffer::new(bytes));
            }
            let bytes = vec![round; 300_000];
            expected.extend_from_slice(&bytes);
            send_queue.push(FileSlice::new(file_of(&bytes), 0, bytes.len() as u64));
        }
        let total = expected.len();
        let mut theirs = Some(theirs);
        let mut reader = None;
        loop {
            match send_queue.flush(&ours.as_fd(), &policy(), through.as_deref_mut(), false, 1) {
                Flush::Done => break,
                Flush::Full => {
                    // The reader starts only now: one that keeps up would test nothing.
                    if let Some(mut theirs) = theirs.take() {
                        reader = Some(std::thread::spawn(move || {
                            let mut received = vec![0; total];
                            theirs.read_exact(&mut received).unwrap();
                            received
                        }));
                    }
                    let mut poll = [rustix::event::PollFd::new(ours, rustix::event::PollFlags::OUT)];
                    rustix::event::poll(&mut poll, None).unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(send_queue.sent() as usize, total);
        let received = reader.expect("more than the socket holds").join();
        assert!(received.unwrap() == expected);
    }

    /// A file that is shorter than promised is never made up for.
    #[test]
    fn a_file_that_shrank_ends_the_response() {
        let (ours, _theirs) = pair();
        let mut send_queue = SendQueue::default();
        send_queue.push(FileSlice::new(file_of(b"12345"), 0, 10));
        assert!(matches!(
            send_queue.flush(&ours.as_fd(), &policy(), None, false, 1),
            Flush::Over(Stop::FileShrank)
        ));
        assert_eq!(send_queue.sent(), 5);
    }

    #[test]
    fn no_client_gets_more_than_a_quantum_at_a_time() {
        let (ours, _theirs) = pair();
        let mut send_queue = SendQueue::default();
        send_queue.push(FileSlice::new(file_of(&[7; 5000]), 0, 5000));
        let policy = SendPolicy { quantum_bytes: 2000, ..policy() };
        for sent in [2000, 4000] {
            assert!(matches!(send_queue.flush(&ours.as_fd(), &policy, None, false, 1), Flush::Quantum));
            assert_eq!(send_queue.sent(), sent);
        }
        assert!(matches!(send_queue.flush(&ours.as_fd(), &policy, None, false, 1), Flush::Done));
    }

    /// A range that is not in memory is asked for, not waited for; once it has been brought in, it is sent.
    #[test]
    fn what_is_not_resident_is_asked_for() {
        const LEN: u64 = 64 * 1024;
        let policy = SendPolicy { test_residency: true, ..policy() };
        let (ours, _theirs) = pair();
        let mut send_queue = SendQueue::default();
        send_queue.push(FileSlice::new(cold_file(LEN), 0, LEN));
        let Flush::NeedsPages(missing) = send_queue.flush(&ours.as_fd(), &policy, None, false, 1) else {
            panic!("the send queue did not ask");
        };
        assert_eq!((missing.offset(), missing.len(), send_queue.sent()), (0, LEN, 0));
        crate::job::Job::PageIn { stream: None, slice: missing }.run();
        assert!(matches!(send_queue.flush(&ours.as_fd(), &policy, None, false, 1), Flush::Done));
    }

    /// Of a file for a slow client, little more is looked for than the client takes; for a faster one again more.
    #[test]
    fn what_is_looked_for_follows_what_is_taken() {
        const LEN: usize = 8 << 20;
        let named = tempfile::NamedTempFile::new_in(".").unwrap();
        let bytes: Vec<u8> = (0..LEN).map(|at| (at / 4096) as u8).collect();
        named.as_file().write_all(&bytes).unwrap();
        let file = Arc::new(OpenFile::new(File::open(named.path()).unwrap().into()));
        let (ours, mut theirs) = pair();
        let mut send_queue = SendQueue::default();
        send_queue.push(FileSlice::new(file, 0, LEN as u64));
        let policy = SendPolicy { test_residency: true, ..policy() };
        assert!(matches!(send_queue.flush(&ours.as_fd(), &policy, None, false, 1), Flush::Full));
        let expected = (send_queue.sent() * 2).max(TESTED_BYTES_MIN);
        assert!(expected < LEN as u64, "the socket took all of it: the test tests nothing");
        assert_eq!(send_queue.tested_bytes_max, Some(expected));
        let mut received = vec![0; LEN];
        let mut until = 0;
        loop {
            until += theirs.read(&mut received[until..]).unwrap();
            match send_queue.flush(&ours.as_fd(), &policy, None, false, 2) {
                Flush::Done => break,
                Flush::Full => assert!(send_queue.tested_bytes_max.unwrap() < LEN as u64),
                other => panic!("{other:?}"),
            }
        }
        theirs.read_exact(&mut received[until..]).unwrap();
        assert!(received == bytes);
    }

    #[test]
    fn a_client_that_is_gone_is_noticed() {
        let (ours, theirs) = pair();
        drop(theirs);
        let mut send_queue = SendQueue::default();
        send_queue.push(Buffer::new(b"hello".to_vec()));
        assert!(matches!(
            send_queue.flush(&ours.as_fd(), &policy(), None, true, 1),
            Flush::Over(Stop::PeerGone)
        ));
    }
}
