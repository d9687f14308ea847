//! TLS that is established, on a stream: opens what arrives, seals what is sent.
//!
//! Records are opened and sealed in memory of the thread. A connection keeps only what it must: an incomplete record, data
//! that its reader had no room for, records that the stream did not take. All of that is gone when it is idle.
//!
//! The kernel may seal instead ([`Sealer`]), late and for good: then ranges of files leave by reference, and an application
//! may write to the socket. What arrives is opened here all the same
//! ([0035](../../../../docs/decisions/0035-records-sealed-by-the-kernel.md)).

mod moving;

use std::cell::RefCell;

use baton_buf::{MemorySink, Stop, Unsent};
use baton_telemetry::clock::Clock;
use baton_tls::{
    ALERT_BYTES_MAX, Alert, Established, Facts, Protocol, RECORD_BYTES_MAX, RecordError, Records, Stopped,
};
use rustix::io::Errno;

use super::byte_stream::ByteStream;
use crate::send_queue::SendfileMode;
use crate::send_queue::{Flush, SendPolicy, SendQueue};

/// TLS on a connection.
#[derive(Debug)]
pub(super) struct Secured {
    records: Records,
    facts: Facts,
    /// Records that have arrived and are not opened: an incomplete one, or those behind what the reader had room for.
    sealed: Vec<u8>,
    /// Whether a whole record may be among them.
    sealed_untried: bool,
    /// Data that the reader had no room for, of one record.
    opened: Vec<u8>,
    /// Records that the stream has not taken: at most [`BATCH_BYTES`].
    unsent: Unsent,
    /// Bytes in front of the send queue that are in these records. They count as sent when the records are.
    unsent_data: u64,
    /// Bytes in front of these that have been sent since the send queue counted.
    uncounted_data: u64,
    /// Bytes in these records that the send queue has counted as sent, because more was behind them.
    early_data: u64,
    /// The connection ends behind what the send queue holds: the last record says so.
    ends_behind_output: bool,
    /// Nothing may follow: the client was told that this is the end, or must not be told.
    has_said_end: bool,
    sealer: Sealer,
}

/// Who seals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sealer {
    /// The thread that sends.
    Thread,
    /// The thread that sends, for good: the kernel has refused.
    ThreadForGood,
    /// The kernel. `unsettled`: records may be left with it that TCP has no room for, and that a close would drop.
    Kernel { unsettled: bool },
}

/// What the thread sends first, in small records.
const SENT_BEFORE_KERNEL_MIN: u64 = 64 * 1024;

/// The least range of a file for which the kernel seals: a change costs two system calls, and the thread sends a smaller
/// one in two or three.
const RANGE_FOR_KERNEL_MIN: u64 = 128 * 1024;

/// Records that are sealed before they are sent: a head, and four full records of a file.
const BATCH_BYTES: usize = 5 * RECORD_BYTES_MAX + ALERT_BYTES_MAX;

thread_local! {
    /// Where records are opened and sealed.
    static BATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Lends the thread's memory for records. A thread without TLS has none.
pub(super) fn with_batch<R>(act: impl FnOnce(&mut [u8]) -> R) -> R {
    BATCH.with_borrow_mut(|batch| {
        batch.resize(BATCH_BYTES, 0);
        act(batch)
    })
}

impl Secured {
    /// TLS that has just been established; `unsent`: records that the stream has not taken.
    pub(super) fn new(established: Established, unsent: Unsent) -> Self {
        let Established { records, facts, unread } = established;
        let sealed_untried = !unread.is_empty();
        Self { sealed: unread, sealed_untried, unsent, ..Self::with(records, facts) }
    }

    fn with(records: Records, facts: Facts) -> Self {
        Self {
            records,
            facts,
            sealed: Vec::new(),
            sealed_untried: false,
            opened: Vec::new(),
            unsent: Unsent::default(),
            unsent_data: 0,
            uncounted_data: 0,
            early_data: 0,
            ends_behind_output: false,
            has_said_end: false,
            sealer: Sealer::Thread,
        }
    }

    /// Whether the kernel seals: what is written to the stream leaves in records.
    pub(super) fn is_with_kernel(&self) -> bool {
        matches!(self.sealer, Sealer::Kernel { .. })
    }

    /// Whether output is with the kernel and not yet with TCP, as far as is known. [`flush`](Self::flush) finds out.
    pub(super) fn is_unsettled(&self) -> bool {
        self.sealer == Sealer::Kernel { unsettled: true }
    }

    /// An application has written so many bytes to the stream.
    pub(super) fn handle_sent_by_others(&mut self, bytes: u64) {
        self.records.handle_sealed_by_kernel(bytes);
        self.sealer = Sealer::Kernel { unsettled: true };
    }

    /// Has the kernel seal from now on, if it can and nothing is left of what was sealed here. Returns whether it does.
    pub(super) fn give_to_kernel(&mut self, stream: &dyn ByteStream) -> bool {
        if self.sealer != Sealer::Thread || !self.unsent.is_empty() || !self.records.suits_kernel() {
            return self.is_with_kernel();
        }
        self.sealer = match self.records.for_kernel() {
            Ok(keys) if stream.seal(&keys) => {
                self.records.handle_kernel_seals();
                Sealer::Kernel { unsettled: false }
            }
            _ => Sealer::ThreadForGood,
        };
        self.is_with_kernel()
    }

    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Whether there is something to read that has left the stream already.
    pub(super) fn has_input(&self) -> bool {
        self.sealed_untried || !self.opened.is_empty()
    }

    /// Reads data, as far as there is room. 0: the client has ended its input, whether it says so or not: a message that
    /// is cut short by that has a length or a last chunk to show it.
    ///
    /// # Errors
    /// `EAGAIN`: nothing for now. `EPROTO`: what arrived is no TLS, and the client was told so. Others: the client is
    /// gone.
    pub(super) fn receive(
        &mut self,
        stream: &dyn ByteStream,
        into: &mut [u8],
        readable: &mut bool,
        end_announced: bool,
    ) -> Result<usize, Errno> {
        if !self.opened.is_empty() {
            let count = self.opened.len().min(into.len());
            into[..count].copy_from_slice(&self.opened[..count]);
            self.opened.drain(..count);
            if self.opened.is_empty() {
                self.opened = Vec::new();
            }
            return Ok(count);
        }
        with_batch(|batch| {
            loop {
                let mut filled = self.sealed.len();
                batch[..filled].copy_from_slice(&self.sealed);
                if !self.sealed_untried {
                    let count = stream.receive_and_note(&mut batch[filled..], readable, end_announced)?;
                    if count == 0 {
                        return Ok(0);
                    }
                    filled += count;
                }
                match self.open(&mut batch[..filled], into) {
                    Ok(Some(count)) => {
                        self.sealed_untried &= count > 0;
                        return Ok(count);
                    }
                    Ok(None) => {}
                    Err(error) => {
                        self.fail(stream, error);
                        return Err(Errno::PROTO);
                    }
                }
            }
        })
    }

    /// Opens records as long as the reader has room, and keeps the rest. Returns the bytes of data, 0 at the end of the
    /// input, and `None` if there were no data.
    fn open(&mut self, batch: &mut [u8], into: &mut [u8]) -> Result<Option<usize>, RecordError> {
        let (mut filled, opened) = (0, &mut self.opened);
        let (at, stopped) = self.records.open_each(batch, |data| {
            let count = data.len().min(into.len() - filled);
            into[filled..filled + count].copy_from_slice(&data[..count]);
            *opened = data[count..].to_vec();
            filled += count;
            filled < into.len()
        })?;
        let has_ended = stopped == Stopped::End;
        // Behind the end of the input nothing counts; asked again, the records say so again.
        self.sealed = if has_ended { Vec::new() } else { batch[at..].to_vec() };
        self.sealed_untried = has_ended || (stopped == Stopped::Full && at < batch.len());
        Ok(if filled > 0 || has_ended { Some(filled) } else { None })
    }

    /// Sends what the send queue holds in records, as much as the stream takes.
    pub(super) fn flush(
        &mut self,
        stream: &dyn ByteStream,
        send_queue: &mut SendQueue,
        policy: &SendPolicy,
        scratch: &mut [u8],
        last: bool,
        clock: &Clock,
    ) -> Flush {
        if !self.unsent.is_empty() {
            let unsent_len = self.unsent.0.len();
            send_queue.handle_taken(std::mem::take(&mut self.uncounted_data));
            let more = send_queue.queued() > self.unsent_data || last;
            let Ok(is_all) = self.unsent.flush(stream, more) else { return Flush::Over(Stop::PeerGone) };
            self.count(self.early_data, self.unsent_data, unsent_len);
            send_queue.handle_taken(std::mem::take(&mut self.uncounted_data));
            if !is_all {
                return Flush::Full;
            }
        }
        if policy.kernel_tls && self.is_for_kernel(send_queue) {
            if let Some(first @ 1..) = SENT_BEFORE_KERNEL_MIN.checked_sub(send_queue.sent()) {
                let first = SendPolicy { quantum_bytes: first.min(policy.quantum_bytes), ..policy.clone() };
                match self.seal_and_send(stream, send_queue, &first, scratch, last, clock) {
                    Flush::Quantum if self.unsent.is_empty() => {}
                    flush => return flush,
                }
            }
            self.give_to_kernel(stream);
        }
        match self.is_with_kernel() {
            true => self.send_through_kernel(stream, send_queue, policy, scratch, clock),
            false => self.seal_and_send(stream, send_queue, policy, scratch, last, clock),
        }
    }

    /// Whether the kernel had better seal what is next. A frame of HTTP/2 is too short for that.
    fn is_for_kernel(&self, send_queue: &SendQueue) -> bool {
        self.sealer == Sealer::Thread
            && self.facts.protocol == Protocol::Http11
            && send_queue.longest_file_range() >= RANGE_FOR_KERNEL_MIN
            && self.records.suits_kernel()
    }

    /// Sends what the kernel seals. Done when all of it is with TCP: the kernel takes more than TCP has room for, and drops
    /// the rest if the connection is closed before there is.
    fn send_through_kernel(
        &mut self,
        stream: &dyn ByteStream,
        send_queue: &mut SendQueue,
        policy: &SendPolicy,
        scratch: &mut [u8],
        clock: &Clock,
    ) -> Flush {
        let before = send_queue.sent();
        let by_reference = stream.sends_files() && policy.sendfile != SendfileMode::Never;
        let through = (!by_reference).then_some(scratch);
        // Never the last: MSG_MORE would leave a record open, which no timer ends.
        let flush = send_queue.flush(stream, policy, through, false, clock.stamp().unix_seconds);
        self.records.handle_sealed_by_kernel(send_queue.sent() - before);
        match flush {
            Flush::Done if stream.is_writable() => {
                self.sealer = Sealer::Kernel { unsettled: false };
                Flush::Done
            }
            Flush::Done => {
                self.sealer = Sealer::Kernel { unsettled: true };
                Flush::Full
            }
            flush => flush,
        }
    }

    /// Seals and sends what the send queue holds.
    fn seal_and_send(
        &mut self,
        stream: &dyn ByteStream,
        send_queue: &mut SendQueue,
        policy: &SendPolicy,
        scratch: &mut [u8],
        last: bool,
        clock: &Clock,
    ) -> Flush {
        with_batch(|batch| {
            let now_ms = clock.now_ms();
            let mut sealing = Sealing { secured: self, stream, batch, len: 0, early: 0, now_ms, last };
            let sink = MemorySink::new(BATCH_BYTES, |pieces, more| sealing.take(pieces, more));
            // The last piece has nothing behind it, so that it is sent before it counts as sent.
            let flush = send_queue.flush(&sink, policy, Some(scratch), false, clock.stamp().unix_seconds);
            match sealing.send(0, false) {
                Ok(()) | Err(Errno::AGAIN) => flush,
                Err(_) => Flush::Over(Stop::PeerGone),
            }
        })
    }

    /// The send queue has counted the first `early` bytes of data in records of this size, and not the `data` behind them. Those
    /// in what is left of the records are not sent. They are found in proportion, so that a client that takes a little at a
    /// time is seen to take it.
    fn count(&mut self, early: u64, data: u64, records_len: usize) {
        let unsent = ((early + data) * self.unsent.0.len() as u64).div_ceil(records_len.max(1) as u64);
        self.early_data = unsent.saturating_sub(data);
        self.unsent_data = unsent.min(data);
        self.uncounted_data = data - self.unsent_data;
    }

    /// Bytes that the send queue counts as sent, and that are in records which the stream has not taken.
    pub(super) fn early_data(&self) -> u64 {
        self.early_data
    }

    /// What the send queue holds is all. The last record has to say so in the same breath: a stream that is full would take no
    /// other.
    pub(super) fn end_behind_output(&mut self) {
        self.ends_behind_output = true;
    }

    /// Tells the client that nothing follows (RFC 8446, section 6.1), if the stream takes it now. A connection that ends in
    /// the middle of a record says nothing: the client would take a part for the whole.
    pub(super) fn say_end(&mut self, stream: &dyn ByteStream) {
        self.alert(stream, Alert::CLOSE_NOTIFY);
    }

    /// What was sent is not all, and the client must not be told that it is.
    pub(super) fn forbid_end(&mut self) {
        self.has_said_end = true;
    }

    fn fail(&mut self, stream: &dyn ByteStream, error: RecordError) {
        if let Some(alert) = error.alert() {
            self.alert(stream, alert);
        }
        self.has_said_end = true;
    }

    fn alert(&mut self, stream: &dyn ByteStream, alert: Alert) {
        if self.has_said_end || !self.unsent.is_empty() {
            return;
        }
        self.has_said_end = true;
        if self.is_with_kernel() {
            return stream.send_alert(alert);
        }
        let mut record = [0; ALERT_BYTES_MAX];
        if let Ok(len) = self.records.seal_alert(alert, &mut record) {
            // The connection ends in any case.
            let _ = stream.send(&record[..len], false);
        }
    }
}

/// Takes the bytes of a send queue, and sends records.
struct Sealing<'a> {
    secured: &'a mut Secured,
    stream: &'a dyn ByteStream,
    /// Memory for records, of which the first `len` bytes are full.
    batch: &'a mut [u8],
    len: usize,
    /// Bytes of data in them that count as taken.
    early: u64,
    now_ms: u64,
    /// The connection ends behind what the send queue holds.
    last: bool,
}

impl Sealing<'_> {
    /// Takes from the data in `pieces`, which is not empty; `more`: other data follow.
    fn take(&mut self, pieces: &[&[u8]], more: bool) -> Result<u64, Errno> {
        let mut taken = self.seal(pieces)?;
        if taken == 0 {
            self.send(0, true)?;
            taken = self.seal(pieces)?;
        }
        let is_all = taken == pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        // Data that is followed by more waits for it, if there is room.
        if more && is_all {
            self.early += taken;
            return Ok(taken);
        }
        if !more && is_all {
            self.seal_end()?;
        }
        self.send(taken, more || !is_all).map(|()| taken)
    }

    fn seal(&mut self, pieces: &[&[u8]]) -> Result<u64, Errno> {
        let room = &mut self.batch[self.len..];
        let sealed = self.secured.records.seal(pieces, self.now_ms, room).map_err(|_| Errno::PIPE)?;
        self.len += sealed.written;
        Ok(sealed.taken as u64)
    }

    /// Says behind the last data that they were the last.
    fn seal_end(&mut self) -> Result<(), Errno> {
        if !self.secured.ends_behind_output || self.secured.has_said_end {
            return Ok(());
        }
        if self.batch.len() - self.len < ALERT_BYTES_MAX {
            return Ok(()); // There is another chance at the end of the connection.
        }
        let room = &mut self.batch[self.len..];
        self.len += self.secured.records.seal_alert(Alert::CLOSE_NOTIFY, room).map_err(|_| Errno::PIPE)?;
        self.secured.has_said_end = true;
        Ok(())
    }

    /// Sends the records that are ready; the last `data` bytes in them do not count as taken yet.
    fn send(&mut self, data: u64, more: bool) -> Result<(), Errno> {
        let (len, early) = (std::mem::take(&mut self.len), std::mem::take(&mut self.early));
        if len == 0 {
            return Ok(());
        }
        match self.secured.unsent.send(self.stream, &self.batch[..len], more || self.last) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.secured.count(early, data, len);
                Err(Errno::AGAIN)
            }
            Err(error) => {
                self.secured.early_data = early;
                Err(error)
            }
        }
    }
}
