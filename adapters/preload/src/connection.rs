//! An accepted connection that may be a FastCGI server's.

use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use baton_fcgi::application::{push_freed, push_takes_bodies, push_values_result};
use baton_fcgi::offer::Bodies;
use libc::iovec;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use crate::inbox::{Inbox, Stage, TRANSPORTS, decline};
use crate::link::ServerLink;
use crate::outgoing::{Outgoing, Sent, pass_on};
use crate::progress::{OfferState, Progress, refuse_more};
use crate::ready::ReadyBytes;
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
    pub(crate) progress: Progress,
    pub(crate) ready: ReadyBytes,
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

/// Of [`Connection::descriptors`]: no descriptor is left, but a call may be using it.
pub(crate) const ENDING: u32 = u32::MAX;

impl Connection {
    pub(crate) fn new() -> Self {
        Self {
            next: AtomicPtr::new(std::ptr::null_mut()),
            descriptors: AtomicU32::new(1),
            users: AtomicU32::new(0),
            progress: Progress::new(),
            ready: ReadyBytes::new(),
            inbox: Turn::new(Inbox::default()),
            outgoing: Turn::new(Outgoing::default()),
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
        if self.progress.is_in(OfferState::Closing) {
            return Outcome::Bytes(0);
        }
        self.progress.before_receive(socket);
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
                self.return_owed(socket, &mut inbox);
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
        self.ready.note(&inbox);
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
            self.progress.enter(if offered.is_some() && is_kept {
                OfferState::Offered
            } else {
                OfferState::Other
            });
            if let Some((request_id, offer, descriptors)) = offered {
                let taken_up = match self.outgoing.now() {
                    Some(mut outgoing) if outgoing.may_answer() => {
                        outgoing.begin(request_id, offer, descriptors)
                    }
                    _ => {
                        decline(offer, descriptors);
                        None
                    }
                };
                if let Some(words) = taken_up {
                    self.begin_body(socket, inbox, request_id, words);
                }
            }
            inbox.sift();
        }
    }

    /// An offer has been taken up: takes what came with it for the body, and says that bodies may come by reference, at once
    /// if a long one comes.
    fn begin_body(&self, socket: BorrowedFd<'_>, inbox: &mut Inbox, request_id: u16, words: Bodies) {
        if inbox.begin_body(request_id, words).is_err() {
            // The program would take what is left for the whole body.
            if let Some(mut outgoing) = self.outgoing.now() {
                outgoing.abandon();
            }
            _ = rustix::net::shutdown(socket, Shutdown::Both);
        } else if words.asks && inbox.expects_long_body() {
            let mut record = Vec::new();
            push_takes_bodies(&mut record, request_id);
            // If it cannot be sent, the server is gone; the next call finds that.
            _ = pass_on(socket, &record);
        } else if words.asks
            && let Some(mut outgoing) = self.outgoing.now()
        {
            outgoing.take_bodies();
        }
    }

    /// Returns to the server what the program has read of its pool.
    fn return_owed(&self, socket: BorrowedFd<'_>, inbox: &mut Inbox) {
        if let Some(outgoing) = self.outgoing.now()
            && outgoing.is_between()
            && let Some((request_id, bytes)) = inbox.take_owed()
        {
            let mut record = Vec::new();
            push_freed(&mut record, request_id, bytes);
            _ = pass_on(socket, &record);
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
        let mut link = ServerLink::new(&self.inbox, &self.ready, &self.progress, fd);
        // SAFETY: the caller says that these may be read.
        let sent = outgoing.send(&mut link, parts.iter().map(|part| unsafe { bytes_of(part) }));
        if !outgoing.is_answering() && self.progress.is_in(OfferState::Offered) {
            self.progress.enter(OfferState::Answered);
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
        let is_between = self.progress.is_in(OfferState::Answered) && self.progress.is_ours();
        if is_between {
            refuse_more(socket);
            self.progress.enter(OfferState::Closing);
        }
        is_between
    }

    /// Makes it free for another connection, if no call is using it. Otherwise that call does so when it ends.
    pub(crate) fn end(&self) {
        if let (Some(mut inbox), Some(mut outgoing)) = (self.inbox.now(), self.outgoing.now())
            && self.descriptors.load(Ordering::SeqCst) == ENDING
            && self.users.load(Ordering::SeqCst) == 0
        {
            inbox.reset();
            outgoing.reset();
            self.ready.note(&inbox);
            self.descriptors.store(0, Ordering::SeqCst);
        }
    }
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
