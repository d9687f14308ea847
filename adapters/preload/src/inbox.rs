//! Input for the program, without offers and records of the hand-over protocol.
//!
//! ```text
//!   0        start         clear                    end
//!   ├──────────┼─────────────┼────────────────────────┼─────────┤
//!   │ given to │ ready to be │ begins with a header   │ free    │
//!   │ the      │ given       │ or an offer of which   │         │
//!   │ program  │             │ not all has arrived    │         │
//! ```
//!
//! Methods: `fill` reads bytes, `give` hands them to the program; `take_*` returns what was found in them.

use std::os::fd::BorrowedFd;

use baton_fcgi::Broken;
use baton_fcgi::application::{Part, RequestReader};
use baton_fcgi::offer::{Bodies, Offer, WHOLE_BYTES};
use baton_fcgi::record::{CONTENT_BYTES_MAX, HEADER_BYTES, MANAGEMENT_ID, RecordHeader, RecordType};
use baton_responder::{Control, Descriptors};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::lent::LentBody;
use crate::pair::FirstPair;

/// The name of the value that lists our transports for the server (section 1 of the protocol).
pub(crate) const TRANSPORTS: &str = "BATON_TRANSPORTS";

/// Read ahead of the program: most requests without their bodies fit. The server relies on it (section 2 of the
/// protocol).
const READ_AHEAD_BYTES: usize = WHOLE_BYTES;

/// A whole offer must fit, and can be as long as its record.
const BYTES_MAX: usize = READ_AHEAD_BYTES + HEADER_BYTES + CONTENT_BYTES_MAX;

/// Received bytes of a connection, not yet read by the program.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    clear: usize,
    end: usize,
    stage: Stage,
    record: Record,
    /// Understands requests' beginnings and the records that are for us.
    reader: RequestReader,
    descriptors: Descriptors,
    /// What comes behind the bytes up to `clear` and in front of all others.
    lent: LentBody,
    /// Pending messages of the server about the current request: bytes of the region freed, and whether it wants the
    /// rest of the response.
    freed: u32,
    is_wanted_back: bool,
    /// The request that begins, until taken.
    begins: Option<u16>,
    /// A request has begun, and the first record of its parameters is outstanding.
    begun: Option<u16>,
    /// Whether another request may follow it on the connection.
    is_kept: bool,
    /// The request with an offer, whose value is `offer`.
    offered: Option<u16>,
    offer: Vec<u8>,
    is_asked: bool,
}

/// What kind of connection it is, as far as known.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing has arrived yet.
    #[default]
    New,
    /// It began as FastCGI does.
    FastCgi,
    /// It is something else: every byte goes to the program unchanged.
    Unfamiliar,
}

/// The rest of the record at hand.
#[derive(Debug, Default, Clone, Copy)]
struct Record {
    left: usize,
    fate: Fate,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is the program's.
    #[default]
    Pass,
    /// For the program, but we read it, too.
    Overhear,
    /// It is ours.
    Keep,
    /// Discard it.
    Drop,
}

impl Inbox {
    pub(crate) const fn stage(&self) -> Stage {
        self.stage
    }

    /// How many bytes can be given now.
    pub(crate) fn ready(&self) -> usize {
        self.give().len()
    }

    /// How many bytes of the record at hand the program may read from the connection itself, past the inbox.
    pub(crate) fn may_bypass(&self) -> usize {
        if self.start == self.end && self.record.fate == Fate::Pass { self.record.left } else { 0 }
    }

    /// So many bytes have been read past the inbox.
    pub(crate) fn bypassed(&mut self, bytes: usize) {
        self.record.left -= bytes;
    }

    /// Whether more can be read, and understood, although the program reads nothing: what stands behind a piece that is lent is
    /// not looked at before.
    pub(crate) fn has_room(&self) -> bool {
        self.lent.is_read() && self.end - self.start < READ_AHEAD_BYTES
    }

    /// Reads once. The first bytes of a connection are not read ahead of the program, which wants `wanted` bytes: the
    /// connection may not be FastCGI. Returns the number of bytes read; 0 is the end of the connection, and then all
    /// that is left is ready.
    ///
    /// # Errors
    /// Those of `recvmsg`.
    pub(crate) fn fill(
        &mut self,
        socket: BorrowedFd<'_>,
        wanted: usize,
        flags: RecvFlags,
    ) -> Result<usize, Errno> {
        self.make_room();
        let most = if self.stage == Stage::FastCgi { usize::MAX } else { wanted };
        let free = &mut self.bytes[self.end..];
        let most = free.len().min(most);
        let arrived = self.descriptors.receive(socket, &mut free[..most], flags)?;
        self.end += arrived;
        if arrived == 0 {
            self.clear = self.end;
        }
        self.sift();
        Ok(arrived)
    }

    /// Reads past the inbox into `buffer`, which is no longer than [`may_bypass`](Self::may_bypass) allows.
    ///
    /// # Errors
    /// Those of `recvmsg`.
    pub(crate) fn receive_past(
        &mut self,
        socket: BorrowedFd<'_>,
        buffer: &mut [u8],
        flags: RecvFlags,
    ) -> Result<usize, Errno> {
        let arrived = self.descriptors.receive(socket, buffer, flags)?;
        self.bypassed(arrived);
        Ok(arrived)
    }

    /// The bytes that are ready. There may be more behind them.
    pub(crate) fn give(&self) -> &[u8] {
        if self.start < self.clear { &self.bytes[self.start..self.clear] } else { self.lent.give() }
    }

    /// So many of them have been given.
    pub(crate) fn given(&mut self, bytes: usize) {
        if self.start < self.clear {
            self.start += bytes;
        } else if !self.lent.is_read() {
            self.lent.given(bytes);
            // What stands behind it.
            self.sift();
        }
    }

    /// The request that begins: an earlier one with this number has ended. Call [`sift`](Self::sift) afterwards.
    pub(crate) fn take_begins(&mut self) -> Option<u16> {
        self.begins.take()
    }

    /// The request with an offer, the offer's value, and the descriptors; the oldest belong to it. Call
    /// [`sift`](Self::sift) afterwards.
    pub(crate) fn take_offer(&mut self) -> Option<(u16, &[u8], &mut Descriptors)> {
        let request_id = self.offered.take()?;
        Some((request_id, &self.offer, &mut self.descriptors))
    }

    /// Maps what the server lends for the body of a request whose offer has been taken.
    ///
    /// # Errors
    /// See [`LentBody::begin`].
    pub(crate) fn begin_body(&mut self, request_id: u16, words: Bodies) -> Result<(), Errno> {
        self.lent.begin(request_id, words, &mut self.descriptors)
    }

    /// Whether a long body follows, as far as the parameters are here that say so. In front of a name is the length of its
    /// value: this one has six digits or more. To be wrong does no harm.
    pub(crate) fn expects_long_body(&self) -> bool {
        let ready = self.give();
        let name = memchr::memmem::find(ready, b"CONTENT_LENGTH");
        name.and_then(|at| ready.get(at.checked_sub(1)?)).is_some_and(|value_len| *value_len >= 6)
    }

    /// Bytes of the pool to return to the server now, if they are worth a record, and their request.
    pub(crate) fn take_owed(&mut self) -> Option<(u16, u32)> {
        self.lent.take_owed()
    }

    /// The request ends. The server uses its pool again.
    pub(crate) fn end_request(&mut self) {
        self.lent.end();
    }

    /// Whether another request may follow the one that has begun.
    pub(crate) const fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Whether the server has asked what we can do.
    pub(crate) fn take_asked(&mut self) -> bool {
        std::mem::take(&mut self.is_asked)
    }

    /// The server's messages about the current request.
    pub(crate) fn take_control(&mut self) -> Option<Control> {
        if std::mem::take(&mut self.is_wanted_back) {
            return Some(Control::GiveBack);
        }
        Some(std::mem::take(&mut self.freed)).filter(|bytes| *bytes > 0).map(Control::Freed)
    }

    /// The connection has ended: forgets everything but the memory.
    pub(crate) fn reset(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let offer = std::mem::take(&mut self.offer);
        *self = Self { bytes, offer, ..Self::default() };
    }

    fn make_room(&mut self) {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.clear -= self.start;
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.bytes.len() {
            // Beyond the usual read-ahead only for an incomplete offer.
            let more = if self.bytes.is_empty() { READ_AHEAD_BYTES } else { BYTES_MAX };
            self.bytes.resize(more, 0);
        }
    }

    /// Parses the input, record by record. Stops at a new request while something of the one before is not taken.
    pub(crate) fn sift(&mut self) {
        if self.stage == Stage::New && self.end > self.clear {
            if self.bytes[self.clear..self.end] == [1] {
                // The kind of the record is still to come.
                return;
            }
            let begins_like_fastcgi = matches!(
                self.bytes[self.clear..self.end],
                [1, kind, ..] if [RecordType::BeginRequest as u8, RecordType::GetValues as u8].contains(&kind)
            );
            self.stage = if begins_like_fastcgi { Stage::FastCgi } else { Stage::Unfamiliar };
        }
        while self.stage == Stage::FastCgi {
            if !self.lent.is_read() {
                return;
            }
            match self.sift_record() {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) => self.stage = Stage::Unfamiliar,
            }
        }
        self.clear = self.end;
    }

    /// Continues in the current record, or opens the next one. False when it needs more input.
    fn sift_record(&mut self) -> Result<bool, Broken> {
        let here = self.record.left.min(self.end - self.clear);
        if here > 0 {
            self.record.left -= here;
            if matches!(self.record.fate, Fate::Overhear | Fate::Keep) {
                self.overhear(self.clear..self.clear + here)?;
            }
            match self.record.fate {
                Fate::Pass | Fate::Overhear => self.clear += here,
                Fate::Keep | Fate::Drop => self.remove(here),
            }
        }
        if self.record.left > 0 {
            return Ok(false);
        }
        let Some(header) = self.bytes[self.clear..self.end].first_chunk() else {
            return Ok(false);
        };
        let header = RecordHeader::parse(header)?;
        self.open(header)
    }

    /// Decides where a record goes. False when it needs more of it.
    fn open(&mut self, header: RecordHeader) -> Result<bool, Broken> {
        let begun = self.begun.take_if(|id| *id == header.request_id);
        let fate = match (RecordType::from_u8(header.kind), header.request_id) {
            // The state of the request before must be taken first.
            (Some(RecordType::BeginRequest), _) if self.begins.or(self.offered).is_some() => {
                return Ok(false);
            }
            (Some(RecordType::BeginRequest), id) => {
                self.begins = Some(id);
                // Messages about the request before are too late.
                self.freed = 0;
                self.is_wanted_back = false;
                self.reader.finish();
                Fate::Overhear
            }
            (Some(RecordType::GetValues), MANAGEMENT_ID) => Fate::Overhear,
            (Some(RecordType::Params), _) if header.content_len == 0 => {
                self.reader.skip_params();
                Fate::Pass
            }
            // What came with the offer must be mapped before a place in it is named.
            (Some(RecordType::Baton), id) if id != MANAGEMENT_ID && self.offered.is_some() => {
                return Ok(false);
            }
            (Some(RecordType::Baton), id) if id != MANAGEMENT_ID => Fate::Keep,
            (Some(RecordType::Params), id) if begun.is_some() => return self.open_params(id, header),
            _ => Fate::Pass,
        };
        self.record = Record { left: bytes_of(header), fate };
        Ok(true)
    }

    fn open_params(&mut self, request_id: u16, header: RecordHeader) -> Result<bool, Broken> {
        let content_len = usize::from(header.content_len);
        match FirstPair::of(&self.bytes[self.clear + HEADER_BYTES..self.end], content_len) {
            FirstPair::Unfinished => {
                self.begun = Some(request_id);
                return Ok(false);
            }
            FirstPair::Other => self.record = Record { left: bytes_of(header), fate: Fate::Pass },
            FirstPair::Offer { value, bytes } => {
                let content = self.clear + HEADER_BYTES;
                self.offer.clear();
                self.offer.extend_from_slice(&self.bytes[content + value.start..content + value.end]);
                self.offered = Some(request_id);
                self.cut_out_pair(header, bytes);
            }
        }
        Ok(true)
    }

    /// Makes the record that begins at `clear` shorter by its first pair.
    fn cut_out_pair(&mut self, header: RecordHeader, pair_bytes: usize) {
        let content_len = usize::from(header.content_len) - pair_bytes;
        if content_len == 0 {
            // An empty record would be the end of the parameters.
            self.record = Record { left: bytes_of(header), fate: Fate::Drop };
            return;
        }
        // Moves the shorter part, before it: the record that began the request.
        self.bytes.copy_within(self.start..self.clear, self.start + pair_bytes);
        self.start += pair_bytes;
        self.clear += pair_bytes;
        let header = RecordHeader { content_len: content_len as u16, ..header };
        self.bytes[self.clear..self.clear + HEADER_BYTES].copy_from_slice(&header.to_bytes());
        self.record = Record { left: bytes_of(header), fate: Fate::Pass };
    }

    fn remove(&mut self, bytes: usize) {
        self.bytes.copy_within(self.clear + bytes..self.end, self.clear);
        self.end -= bytes;
    }

    fn overhear(&mut self, range: std::ops::Range<usize>) -> Result<(), Broken> {
        let mut input = &self.bytes[range];
        loop {
            let (consumed, part) = self.reader.read(input)?;
            input = &input[consumed..];
            match part {
                Part::NeedMore => return Ok(()),
                Part::Begin { id, keep_connection, .. } => {
                    self.begun = Some(id);
                    self.is_kept = keep_connection;
                }
                Part::Freed(bytes) => self.freed = self.freed.saturating_add(bytes),
                Part::GiveBack => self.is_wanted_back = true,
                Part::Slices => self.reader.slices().try_for_each(|slice| self.lent.push_slice(slice))?,
                Part::File(range) => self.lent.push_file(range)?,
                Part::GetValues => {
                    self.is_asked |=
                        self.reader.names().flatten().any(|(name, _)| name == TRANSPORTS.as_bytes());
                }
                _ => {}
            }
        }
    }
}

/// Closes the descriptors of an offer that is not taken up.
pub(crate) fn decline(offer: &[u8], descriptors: &mut Descriptors) {
    if let Ok(offer) = Offer::parse(offer) {
        descriptors.discard(offer.fds);
    }
}

/// Its length with header and padding.
fn bytes_of(header: RecordHeader) -> usize {
    HEADER_BYTES + usize::from(header.content_len) + usize::from(header.padding_len)
}

#[cfg(test)]
mod tests;
