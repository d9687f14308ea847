//! A program's output: the records of a request with an offer become an answer, all others are passed on.

use std::os::fd::BorrowedFd;

use baton_fcgi::offer::{Bodies, Offer, Transport};
use baton_fcgi::record::{RecordHeader, RecordType};
use baton_fcgi::response::ProtocolStatus;
use baton_responder::{Answer, Descriptors, Ended, Link};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::inbox::decline;
use crate::link::ServerLink;
use crate::records::{Piece, Records};

/// Programs buffer output in this size (php-fpm and libfcgi alike) and write when the buffer is full. So a shorter
/// write means that the output must be seen; a longer one that there is much output, and more follows at once. If it
/// does not, the answer's clock shows that the program is slow.
const FULL_BUFFER_BYTES: usize = (8 << 10) - 16;

/// A program's output, and the answer made of it.
#[derive(Default)]
pub(crate) struct Outgoing {
    records: Records,
    /// The output is not FastCGI.
    is_unfamiliar: bool,
    /// The request that is answered.
    request_id: Option<u16>,
    /// Made for the first offer, and used again.
    answer: Option<Box<Answer>>,
    /// The answer has memory that belongs to this connection.
    is_bound: bool,
    client_gone: bool,
    /// Something for the error log may not have been sent.
    has_errors: bool,
    fate: Fate,
    /// The part of `FCGI_END_REQUEST`'s content written so far.
    end: [u8; 8],
    end_len: usize,
}

/// Where the current record goes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// To the server, unchanged.
    #[default]
    Pass,
    /// Its content is the response.
    Output,
    /// Its content is for the error log.
    Errors,
    /// It ends the request.
    End,
}

/// The result of a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// All of it was taken: so many bytes.
    All(usize),
    /// Nothing was taken: the client is gone.
    ClientGone,
    /// The server is gone.
    Failed(Errno),
    /// All of it was taken; the connection must not go on.
    Unfinished(usize),
}

/// Why the records of a write were not all taken.
pub(crate) enum Stopped {
    Failed(Errno),
    Unfinished,
}

impl Outgoing {
    /// Whether output becomes an answer.
    pub(crate) const fn is_answering(&self) -> bool {
        self.request_id.is_some()
    }

    /// Whether an offer can be accepted: the one before has been answered, and the program's next output begins a
    /// record.
    pub(crate) fn may_answer(&self) -> bool {
        self.is_between() && self.request_id.is_none()
    }

    /// Takes up an offer, or declines it. Returns how the request's body may come, whose descriptors are the oldest then.
    pub(crate) fn begin(
        &mut self,
        request_id: u16,
        offer: &[u8],
        descriptors: &mut Descriptors,
    ) -> Option<Bodies> {
        let known = Offer::parse(offer).ok().filter(|offer| offer.transport != Transport::Unknown);
        let Some(known) = known else {
            decline(offer, descriptors);
            return None;
        };
        self.is_bound |= matches!(known.transport, Transport::Shm(_));
        self.answer.get_or_insert_default().begin(request_id, Some(offer), descriptors);
        self.request_id = Some(request_id);
        self.client_gone = false;
        self.has_errors = false;
        Some(known.bodies)
    }

    /// Tells the server with the end of the request that is answered that bodies may come by reference.
    pub(crate) fn take_bodies(&mut self) {
        if let Some(answer) = &mut self.answer {
            answer.take_bodies();
        }
    }

    /// Whether a record of ours may be sent: none of the program's is under way.
    pub(crate) const fn is_between(&self) -> bool {
        !self.is_unfamiliar && self.records.is_between()
    }

    /// Closes the client's socket without a word.
    pub(crate) fn abandon(&mut self) {
        if self.request_id.take().is_some()
            && let Some(answer) = &mut self.answer
        {
            answer.abandon();
        }
    }

    /// A request with this number begins, so the one before has ended, unseen: another process may have answered it.
    pub(crate) fn abandon_request(&mut self, request_id: u16) {
        if self.request_id == Some(request_id) {
            self.abandon();
        }
    }

    /// The connection has ended: forgets everything but the memory.
    pub(crate) fn reset(&mut self) {
        self.abandon();
        let answer = self.answer.take().filter(|_| !self.is_bound);
        *self = Self { answer, ..Self::default() };
    }

    /// Tracks output that was sent to the server unchanged.
    pub(crate) fn follow(&mut self, mut bytes: &[u8]) {
        while !self.is_unfamiliar {
            match self.records.next(&mut bytes) {
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(_) => self.is_unfamiliar = true,
            }
        }
    }

    /// Takes the program's output during an answer.
    pub(crate) fn send<'a>(
        &mut self,
        link: &mut ServerLink<'_>,
        parts: impl Iterator<Item = &'a [u8]>,
    ) -> Sent {
        let before = self.records;
        let mut bytes = 0;
        let mut only_output = None;
        let mut unfinished = false;
        for part in parts {
            bytes += part.len();
            match self.send_part(link, part, &mut only_output) {
                Ok(()) => {}
                Err(Stopped::Failed(errno)) => {
                    self.abandon();
                    return Sent::Failed(errno);
                }
                Err(Stopped::Unfinished) => unfinished = true,
            }
        }
        if unfinished {
            return Sent::Unfinished(bytes);
        }
        if !self.is_answering() {
            return Sent::All(bytes);
        }
        if self.records.is_between()
            && bytes < FULL_BUFFER_BYTES
            && let Err(Stopped::Failed(errno)) = self.flush(link)
        {
            self.abandon();
            return Sent::Failed(errno);
        }
        if self.client_gone && before.is_between() && only_output == Some(true) {
            // The program's next output begins a record: it was between two before this write, and knows that nothing
            // of it was taken.
            self.records = before;
            return Sent::ClientGone;
        }
        Sent::All(bytes)
    }

    /// `only_output` becomes whether all records that begin are output of the request that is answered.
    fn send_part(
        &mut self,
        link: &mut ServerLink<'_>,
        mut part: &[u8],
        only_output: &mut Option<bool>,
    ) -> Result<(), Stopped> {
        while !self.is_unfamiliar {
            let piece = match self.records.next(&mut part) {
                Ok(Some(piece)) => piece,
                Ok(None) => return Ok(()),
                Err(_) => {
                    self.is_unfamiliar = true;
                    self.abandon();
                    pass_on(link.fd(), self.records.header_begun())?;
                    break;
                }
            };
            if let Piece::Opened(header, _) = piece {
                self.fate = self.fate_of(header);
                let is_output = self.fate == Fate::Output;
                *only_output = Some(is_output && *only_output != Some(false));
            }
            match (self.fate, piece) {
                (Fate::Pass, Piece::Opened(_, bytes)) => pass_on(link.fd(), &bytes)?,
                (Fate::Pass, Piece::Content(bytes) | Piece::Padding(bytes)) => pass_on(link.fd(), bytes)?,
                (Fate::Output, Piece::Content(bytes)) => self.output(link, bytes)?,
                (Fate::Errors, Piece::Content(bytes)) => self.errors(link, bytes)?,
                (Fate::End, Piece::Content(bytes)) => self.collect_end(bytes),
                (Fate::End, Piece::Closed) => self.finish(link)?,
                _ => {}
            }
        }
        pass_on(link.fd(), part)
    }

    fn fate_of(&mut self, header: RecordHeader) -> Fate {
        if self.request_id != Some(header.request_id) {
            return Fate::Pass;
        }
        match RecordType::from_u8(header.kind) {
            Some(RecordType::Stdout) => Fate::Output,
            Some(RecordType::Stderr) => Fate::Errors,
            Some(RecordType::EndRequest) => {
                self.end_len = 0;
                Fate::End
            }
            _ => Fate::Pass,
        }
    }

    fn output(&mut self, link: &mut dyn Link, bytes: &[u8]) -> Result<(), Stopped> {
        let Some(answer) = &mut self.answer else { return Ok(()) };
        let written = answer.write(link, bytes);
        self.notice(written)
    }

    fn errors(&mut self, link: &mut dyn Link, bytes: &[u8]) -> Result<(), Stopped> {
        let Some(answer) = &mut self.answer else { return Ok(()) };
        self.has_errors = true;
        let written = answer.write_error(link, bytes);
        self.notice(written)
    }

    fn flush(&mut self, link: &mut dyn Link) -> Result<(), Stopped> {
        let Some(answer) = &mut self.answer else { return Ok(()) };
        let errors = if std::mem::take(&mut self.has_errors) { answer.flush_errors(link) } else { Ok(()) };
        let flushed = answer.flush(link);
        self.notice(errors)?;
        self.notice(flushed)
    }

    fn notice(&mut self, result: Result<(), Ended>) -> Result<(), Stopped> {
        match result {
            Ok(()) => Ok(()),
            Err(Ended::ClientGone) => {
                self.client_gone = true;
                Ok(())
            }
            Err(Ended::ConnectionLost(errno)) => Err(Stopped::Failed(errno)),
            Err(Ended::Unfinished) => Err(Stopped::Unfinished),
        }
    }

    fn collect_end(&mut self, bytes: &[u8]) {
        let room = &mut self.end[self.end_len..];
        let taken = bytes.len().min(room.len());
        room[..taken].copy_from_slice(&bytes[..taken]);
        self.end_len += taken;
    }

    fn finish(&mut self, link: &mut ServerLink<'_>) -> Result<(), Stopped> {
        let [a, b, c, d, protocol_status, ..] = self.end;
        if protocol_status != ProtocolStatus::RequestComplete as u8 {
            return self.refuse(link);
        }
        self.request_id = None;
        let Some(answer) = &mut self.answer else { return Ok(()) };
        link.before_end();
        let finished = answer.finish(link, u32::from_be_bytes([a, b, c, d]));
        self.notice(finished)
    }

    /// The program refuses the request: tell the server why.
    fn refuse(&mut self, link: &ServerLink<'_>) -> Result<(), Stopped> {
        let Some(request_id) = self.request_id else { return Ok(()) };
        self.abandon();
        let kind = RecordType::EndRequest as u8;
        let header = RecordHeader { kind, request_id, content_len: self.end.len() as u16, padding_len: 0 };
        pass_on(link.fd(), &[&header.to_bytes()[..], &self.end].concat())
    }
}

/// Sends bytes to the server as they are.
pub(crate) fn pass_on(server: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Stopped> {
    while !bytes.is_empty() {
        match rustix::net::send(server, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut writable = [PollFd::from_borrowed_fd(server, PollFlags::OUT)];
                _ = rustix::event::poll(&mut writable, None);
            }
            Err(errno) => return Err(Stopped::Failed(errno)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
