//! An accepted connection that may be a FastCGI server's.

use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering};

use baton_fcgi::application::push_values_result;
use libc::iovec;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use crate::inbox::{Inbox, Stage, TRANSPORTS, decline};
use crate::link::ServerLink;
use crate::outgoing::{Outgoing, Sent};
use crate::turn::Turn;

/// Reads of this size go directly into the program's memory, not into the inbox: copying would cost more than a call.
const BYPASS_BYTES_MIN: usize = 4096;

/// One connection. It is never freed: a call that comes upon it while it ends must find something to look at. It is used
/// again for a later connection instead.
pub(crate) struct Connection {
    /// The next one of all there are.
    pub(crate) next: AtomicPtr<Self>,
    /// The number of its descriptors in the process; 0: it is free, [`ENDING`]: it is about to be.
    pub(crate) descriptors: AtomicU32,
    /// The number of calls that use it, or are about to find that it is not theirs.
    pub(crate) users: AtomicU32,
    /// The process that has accepted it.
    process: AtomicI32,
    phase: AtomicU8,
    /// That process accepts no further connections: it ends, as soon as it may.
    is_leaving: AtomicBool,
    /// Bytes in the inbox that are ready for the program; the kernel does not see them.
    ready: AtomicUsize,
    pub(crate) inbox: Turn<Inbox>,
    pub(crate) outgoing: Turn<Outgoing>,
}

/// What a call returns.
pub(crate) enum Outcome {
    /// So many bytes.
    Bytes(usize),
    /// An error.
    Failed(Errno),
    /// The libc's result.
    NotOurs,
    /// The libc's result, and the connection is left alone from now on.
    Unfamiliar,
}

/// Where a connection that is kept, of a server that makes offers, is in the course of its requests.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum OfferState {
    /// There was no offer so far.
    Other,
    /// There was one for the request at hand.
    Offered,
    /// It has been answered. The next bytes are the next request.
    Answered,
    /// The program will send no more, so it gets no next request.
    Closing,
}

/// Of [`Connection::descriptors`]: no descriptor is left, but a call may be using it.
pub(crate) const ENDING: u32 = u32::MAX;

/// How many connections have bytes ready: as long as there are none, waiting is the kernel's business alone.
static READY: AtomicUsize = AtomicUsize::new(0);

impl Connection {
    pub(crate) fn new() -> Self {
        Self {
            next: AtomicPtr::new(std::ptr::null_mut()),
            descriptors: AtomicU32::new(1),
            users: AtomicU32::new(0),
            process: AtomicI32::new(0),
            phase: AtomicU8::new(OfferState::Other as u8),
            is_leaving: AtomicBool::new(false),
            ready: AtomicUsize::new(0),
            inbox: Turn::new(Inbox::default()),
            outgoing: Turn::new(Outgoing::default()),
        }
    }

    /// Whether any connection has bytes ready that the kernel does not see.
    pub(crate) fn any_is_ready() -> bool {
        READY.load(Ordering::Acquire) > 0
    }

    /// Whether this one has.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire) > 0
    }

    /// Call it whenever the inbox has changed.
    pub(crate) fn note_ready(&self, inbox: &Inbox) {
        let now = inbox.ready();
        let before = self.ready.swap(now, Ordering::AcqRel);
        match (before, now) {
            (0, 1..) => _ = READY.fetch_add(1, Ordering::AcqRel),
            (1.., 0) => _ = READY.fetch_sub(1, Ordering::AcqRel),
            _ => {}
        }
    }

    /// The program receives into `parts`.
    ///
    /// # Safety
    /// `parts` are memory that may be written.
    pub(crate) unsafe fn receive(&self, fd: RawFd, parts: &[iovec], flags: libc::c_int) -> Outcome {
        // SAFETY: the program has just called with this descriptor.
        let socket = unsafe { BorrowedFd::borrow_raw(fd) };
        let Some(mut inbox) = self.inbox.wait() else { return Outcome::NotOurs };
        let wanted = parts.iter().map(|part| part.iov_len).sum();
        if wanted == 0 {
            return Outcome::NotOurs;
        }
        if self.is_in(OfferState::Closing) {
            return Outcome::Bytes(0);
        }
        if self.is_leaving.load(Ordering::Relaxed) && self.is_in(OfferState::Answered) {
            refuse_more(socket);
        }
        match inbox.stage() {
            Stage::New if !is_blocking(socket) => return Outcome::Unfamiliar,
            Stage::Unfamiliar if inbox.ready() == 0 => return Outcome::Unfamiliar,
            _ => {}
        }
        let peeks = flags & libc::MSG_PEEK != 0;
        let wants_all = flags & libc::MSG_WAITALL != 0 && !peeks;
        let receive_flags = RecvFlags::from_bits_retain(flags as u32) & RecvFlags::DONTWAIT;
        let mut given = 0;
        let ended = loop {
            self.act_on(socket, &mut inbox);
            // SAFETY: the caller says that they may be written.
            let now = unsafe { scatter(inbox.give(), parts, given) };
            given += now;
            if !peeks {
                inbox.given(now);
            }
            if given == wanted || given > 0 && !wants_all {
                break Ok(());
            }
            if let Some(part) = parts.first().filter(|_| given == 0 && !peeks)
                && let length @ BYPASS_BYTES_MIN.. = part.iov_len.min(inbox.may_bypass())
            {
                // SAFETY: the caller says that it may be written.
                let memory = unsafe { std::slice::from_raw_parts_mut(part.iov_base.cast::<u8>(), length) };
                match inbox.receive_past(socket, memory, receive_flags) {
                    Ok(0) => break Ok(()),
                    Ok(bytes) => given = bytes,
                    Err(errno) => break Err(errno),
                }
                continue;
            }
            match inbox.fill(socket, wanted, receive_flags) {
                Ok(0) if inbox.ready() == 0 => break Ok(()),
                Ok(_) => {}
                Err(errno) => break Err(errno),
            }
        };
        self.note_ready(&inbox);
        match ended {
            // Not a socket: the descriptor was closed and reused without our knowledge.
            Err(Errno::NOTSOCK) if given == 0 => Outcome::Unfamiliar,
            Err(errno) if given == 0 => Outcome::Failed(errno),
            _ => Outcome::Bytes(given),
        }
    }

    /// Handles the bytes that have arrived.
    fn act_on(&self, socket: BorrowedFd<'_>, inbox: &mut Inbox) {
        if inbox.take_asked() {
            let mut result = Vec::new();
            push_values_result(&mut result, &[(TRANSPORTS, "passfd,shm")]);
            // If it cannot be sent the server takes this for a program that can do nothing, or is gone.
            _ = rustix::net::send(socket, &result, SendFlags::NOSIGNAL);
        }
        loop {
            let begins = inbox.take_begins();
            let is_kept = inbox.is_kept();
            if let Some(request_id) = begins
                && let Some(mut outgoing) = self.outgoing.now()
            {
                outgoing.abandon_request(request_id);
            }
            let offered = inbox.take_offer();
            if begins.is_none() && offered.is_none() {
                return;
            }
            self.enter(if offered.is_some() && is_kept { OfferState::Offered } else { OfferState::Other });
            if let Some((request_id, offer, descriptors)) = offered {
                match self.outgoing.now() {
                    Some(mut outgoing) if outgoing.may_answer() => {
                        outgoing.begin(request_id, offer, descriptors);
                    }
                    _ => decline(offer, descriptors),
                }
            }
            inbox.sift();
        }
    }

    /// The program sends `parts`.
    ///
    /// # Safety
    /// `parts` are memory that may be read.
    pub(crate) unsafe fn send(&self, fd: RawFd, parts: &[iovec]) -> Outcome {
        let Some(mut outgoing) = self.outgoing.wait() else { return Outcome::NotOurs };
        if !outgoing.is_answering() {
            return Outcome::NotOurs;
        }
        let mut link = ServerLink::new(self, fd);
        // SAFETY: the caller says that these may be read.
        let sent = outgoing.send(&mut link, parts.iter().map(|part| unsafe { bytes_of(part) }));
        if !outgoing.is_answering() && self.is_in(OfferState::Offered) {
            self.enter(OfferState::Answered);
        }
        match sent {
            Sent::All(bytes) => Outcome::Bytes(bytes),
            Sent::ClientGone => Outcome::Failed(Errno::PIPE),
            Sent::Failed(errno) => Outcome::Failed(errno),
            Sent::Unfinished(bytes) => {
                _ = rustix::net::shutdown(link.fd(), Shutdown::Both);
                Outcome::Bytes(bytes)
            }
        }
    }

    /// The libc's function has sent the first `sent` bytes of `parts`.
    ///
    /// # Safety
    /// `parts` are memory that may be read.
    pub(crate) unsafe fn note_sent(&self, parts: &[iovec], mut sent: usize) {
        let Some(mut outgoing) = self.outgoing.wait() else { return };
        for part in parts {
            // SAFETY: the caller says that it may be read.
            let bytes = unsafe { bytes_of(part) };
            let bytes = &bytes[..bytes.len().min(sent)];
            outgoing.follow(bytes);
            sent -= bytes.len();
        }
    }

    /// Whether something has been received, which the program must do first on a FastCGI connection.
    pub(crate) fn has_begun(&self) -> bool {
        // A thread that is receiving holds it.
        self.inbox.now().is_none_or(|inbox| inbox.stage() != Stage::New)
    }

    /// The program will send no more: its answer stays incomplete.
    ///
    /// Returns whether that is all. Between two requests the program (php-fpm, before it closes) would read and drop
    /// a request that has just arrived. It is left unread instead, so that the server learns that it was not
    /// processed, and cannot send another.
    pub(crate) fn end_output(&self, socket: BorrowedFd<'_>) -> bool {
        if let Some(mut outgoing) = self.outgoing.now() {
            outgoing.abandon();
        }
        let is_between = self.is_in(OfferState::Answered) && self.is_ours();
        if is_between {
            refuse_more(socket);
            self.enter(OfferState::Closing);
        }
        is_between
    }

    /// The process accepts no further connections. The current request is the last; once it is answered, the server
    /// cannot send another. A call that waits for one ends, as if the server had closed the connection.
    ///
    /// Can be called by signal handlers.
    pub(crate) fn leave(&self, socket: BorrowedFd<'_>) {
        if self.is_ours() {
            self.is_leaving.store(true, Ordering::Relaxed);
            if self.is_in(OfferState::Answered) {
                refuse_more(socket);
            }
        }
    }

    /// The request at hand is about to end, and the server about to send the next one.
    pub(crate) fn before_end(&self, socket: BorrowedFd<'_>) {
        if self.is_leaving.load(Ordering::Relaxed) && self.is_in(OfferState::Offered) && self.is_ours() {
            refuse_more(socket);
        }
    }

    /// Starts over, for a connection that this process has accepted.
    pub(crate) fn begin(&self, process: i32) {
        self.process.store(process, Ordering::Relaxed);
        self.is_leaving.store(false, Ordering::Relaxed);
        self.enter(OfferState::Other);
    }

    /// Whether this process has accepted it. Connections of its parent stay the parent's.
    fn is_ours(&self) -> bool {
        self.process.load(Ordering::Relaxed) == rustix::process::getpid().as_raw_nonzero().get()
    }

    fn is_in(&self, phase: OfferState) -> bool {
        self.phase.load(Ordering::Relaxed) == phase as u8
    }

    fn enter(&self, phase: OfferState) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// Makes it free for another connection, if no call is using it. Otherwise that call does so when it ends.
    pub(crate) fn end(&self) {
        if let (Some(mut inbox), Some(mut outgoing)) = (self.inbox.now(), self.outgoing.now())
            && self.descriptors.load(Ordering::SeqCst) == ENDING
            && self.users.load(Ordering::SeqCst) == 0
        {
            inbox.reset();
            outgoing.reset();
            self.note_ready(&inbox);
            self.descriptors.store(0, Ordering::SeqCst);
        }
    }
}

/// Refuses further data: the server's next send fails, and it asks another process. Earlier data can still be read.
fn refuse_more(socket: BorrowedFd<'_>) {
    // It can only fail because the connection has ended.
    _ = rustix::net::shutdown(socket, Shutdown::Read);
}

/// An application that does not wait for its connection would not want to wait for its client.
fn is_blocking(socket: BorrowedFd<'_>) -> bool {
    rustix::fs::fcntl_getfl(socket).is_ok_and(|flags| !flags.contains(rustix::fs::OFlags::NONBLOCK))
}

/// Copies as much of `bytes` as fits into `parts` after their first `skipped` bytes.
///
/// # Safety
/// `parts` are memory that may be written.
unsafe fn scatter(bytes: &[u8], parts: &[iovec], mut skipped: usize) -> usize {
    let mut rest = bytes;
    for part in parts {
        let skip = skipped.min(part.iov_len);
        skipped -= skip;
        let (now, later) = rest.split_at(rest.len().min(part.iov_len - skip));
        // SAFETY: `skip + now.len()` is at most the length of the part, which the caller says may be written, and our
        // own memory does not overlap with the program's.
        unsafe {
            std::ptr::copy_nonoverlapping(now.as_ptr(), part.iov_base.cast::<u8>().add(skip), now.len());
        };
        rest = later;
    }
    bytes.len() - rest.len()
}

/// The memory of a part.
///
/// # Safety
/// It may be read, as long as the result is used.
unsafe fn bytes_of<'a>(part: &iovec) -> &'a [u8] {
    if part.iov_len == 0 {
        return &[];
    }
    // SAFETY: the caller says that it may be read.
    unsafe { std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len) }
}
