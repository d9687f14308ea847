//! The body of an application's or origin's response on its way into a content coding.
//!
//! ```text
//!   events ─► take ─► pending ─► code: a bounded part in each turn ─► the client
//!                       ▲ │        └── flush, where nothing more has come for now
//!                       └─┴ what is in a file is read by a job first
//! ```
//!
//! The next event is asked for once all of the last one is coded and sent, so a slow client stops the application as it
//! does without a coder.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use baton_buf::{Aggregate, Buffer, FileSlice, Piece, PipedSlice, Slice};
use baton_compress::{Effort, Encoder};
use baton_http::Coding;

use baton_telemetry::metrics::{Metric, Tally};

/// A response that is coded.
#[derive(Debug)]
pub struct Coder {
    /// `None`: it has failed, or the body is complete.
    encoder: Option<Encoder>,
    /// Of the body, what is not coded yet.
    pending: Aggregate,
    /// Bytes that the application still owes, if it has said how many there are.
    owed: Option<u64>,
    /// Bytes that were coded since other clients had a turn.
    coded: u64,
    /// The client cannot decode all that was coded.
    is_held_back: bool,
    /// What is next is in a file, and a job reads it.
    is_reading: bool,
    _permit: Permit,
}

/// What ends a coded response.
#[derive(Debug)]
pub enum CoderError {
    /// The body is shorter than the application has said.
    TooShort,
    /// There is no memory, or a part of the body cannot be read.
    Failed,
}

impl Coder {
    /// A coder for a body of which the application says that it has `declared` bytes. `None`: enough others work.
    pub(crate) fn new(coding: Coding, declared: Option<u64>, tally: &mut Tally) -> Option<Self> {
        let permit = Permit::take()?;
        let encoder = Some(Encoder::new(coding, Effort::Stream).ok()?);
        tally.add(Metric::of_coded_response(coding), 1);
        Some(Self {
            encoder,
            pending: Aggregate::new(),
            owed: declared,
            coded: 0,
            is_held_back: false,
            is_reading: false,
            _permit: permit,
        })
    }

    /// More of the body. What exceeds the length that was declared is dropped.
    pub fn take(&mut self, mut body: Aggregate) {
        if let Some(owed) = &mut self.owed {
            body.split_off(*owed);
            *owed -= body.len();
        }
        self.pending.append(body);
    }

    /// Whether more has come than was coded.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether other clients are to have a turn first.
    pub fn takes_turn(&mut self) -> bool {
        let takes_turn = self.coded >= TURN_BYTES;
        if takes_turn {
            self.coded = 0;
        }
        takes_turn
    }

    /// Codes what has come, at most as much as one turn allows. Returns what the client gets of it.
    pub fn code(&mut self, tally: &mut Tally) -> Result<Aggregate, CoderError> {
        let mut bytes = Vec::new();
        let mut encoder = self.encoder.take().ok_or(CoderError::Failed)?;
        while self.coded < TURN_BYTES
            && self.file_at_front().is_none()
            && let Some(piece) = self.pending.take_front(TURN_BYTES - self.coded)
        {
            let len = piece.len();
            bytes.clear();
            match &piece {
                Piece::Memory(slice) => encoder.write(slice),
                Piece::Shared(slice) => {
                    slice.copy_prefix_to(slice.len(), &mut bytes);
                    encoder.write(&bytes)
                }
                Piece::Piped(slice) => {
                    bytes.resize(slice.len() as usize, 0);
                    read_all(slice, &mut bytes).and_then(|()| encoder.write(&bytes))
                }
                Piece::File(_) => Err(io::ErrorKind::Unsupported.into()),
            }
            .map_err(|_| CoderError::Failed)?;
            self.coded += len;
            self.is_held_back = true;
            tally.add(Metric::CompressionBytesIn, len);
        }
        let coded = counted(encoder.take(), tally);
        self.encoder = Some(encoder);
        Ok(coded)
    }

    /// What is next is in a file: the part of it for [`handle_read`](Self::handle_read), which has to follow.
    pub fn to_read(&mut self) -> Option<FileSlice> {
        debug_assert!(!self.is_reading, "a part is read once");
        let slice = self.file_at_front().map(|slice| slice.prefix(TURN_BYTES));
        self.is_reading = slice.is_some();
        slice
    }

    /// Whether what was [to be read](Self::to_read) has not been: nothing can be coded until then.
    pub fn is_reading(&self) -> bool {
        self.is_reading
    }

    /// What was [to be read](Self::to_read); `None`: it cannot be.
    pub fn handle_read(&mut self, bytes: Option<Slice>) {
        debug_assert!(self.is_reading, "a part that was to be read");
        self.is_reading = false;
        match bytes {
            Some(bytes) => {
                self.pending.take_front(bytes.len() as u64);
                self.pending.prepend(bytes);
            }
            None => self.encoder = None,
        }
    }

    fn file_at_front(&self) -> Option<&FileSlice> {
        match self.pending.front()? {
            Piece::File(slice) => Some(slice),
            _ => None,
        }
    }

    /// Nothing more has come for now: what the client gets so that it can decode all that has.
    pub fn flush(&mut self, tally: &mut Tally) -> Result<Aggregate, CoderError> {
        let encoder = self.encoder.as_mut().ok_or(CoderError::Failed)?;
        if std::mem::take(&mut self.is_held_back) {
            encoder.flush().map_err(|_| CoderError::Failed)?;
        }
        Ok(counted(encoder.take(), tally))
    }

    /// Whether the rest can be coded in this turn.
    pub fn can_finish(&self) -> bool {
        let is_in_file = self.pending.pieces().any(|piece| matches!(piece, Piece::File(_)));
        self.coded + self.pending.len() <= TURN_BYTES && !is_in_file
    }

    /// The body is complete, and all of it [fits into this turn](Self::can_finish): the last bytes that the client gets.
    pub fn finish(&mut self, tally: &mut Tally) -> Result<Aggregate, CoderError> {
        if self.owed.is_some_and(|owed| owed > 0) {
            return Err(CoderError::TooShort);
        }
        let mut body = self.code(tally)?;
        let encoder = self.encoder.take().ok_or(CoderError::Failed)?;
        body.append(counted(encoder.finish().map_err(|_| CoderError::Failed)?, tally));
        Ok(body)
    }
}

fn counted(bytes: Vec<u8>, tally: &mut Tally) -> Aggregate {
    let mut body = Aggregate::new();
    if !bytes.is_empty() {
        tally.add(Metric::CompressionBytesOut, bytes.len() as u64);
        body.push(Buffer::new(bytes));
    }
    body
}

/// Takes bytes out of a pipe, in which they are.
fn read_all(slice: &PipedSlice, bytes: &mut [u8]) -> io::Result<()> {
    let mut at = 0;
    while at < bytes.len() {
        match slice.read(&mut bytes[at..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => at += count,
        }
    }
    Ok(())
}

/// One of the coders that a process may have.
#[derive(Debug)]
struct Permit(());

impl Permit {
    fn take() -> Option<Self> {
        let more = |count| (count < CODERS_MAX).then_some(count + 1);
        CODERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Self(()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        CODERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Coders of this process, whose memory they share.
static CODERS: AtomicUsize = AtomicUsize::new(0);

/// Coders that a process has at the most: one takes up to two megabytes. Further responses go out as they are.
const CODERS_MAX: usize = 128;

/// Bytes that one response codes before other clients have a turn: about a millisecond.
pub const TURN_BYTES: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::Arc;

    use baton_buf::OpenFile;
    use baton_telemetry::metrics::Counters;

    use super::*;

    fn tally() -> Tally {
        Tally::new(Counters::allocate(1).unwrap().remove(0), None)
    }

    fn body(bytes: &[u8]) -> Aggregate {
        let mut body = Aggregate::new();
        body.push(Buffer::new(bytes.to_vec()));
        body
    }

    fn bytes_of(body: &Aggregate) -> Vec<u8> {
        let memory = body.pieces().map(|piece| match piece {
            Piece::Memory(slice) => slice.to_vec(),
            other => panic!("{other:?}"),
        });
        memory.flatten().collect()
    }

    /// Bug: what was in a file was read once for each event that came while it was read, and came twice in the body.
    #[test]
    fn a_part_of_a_file_is_read_once() {
        let tally = &mut tally();
        let mut coder = Coder::new(Coding::Gzip, None, tally).unwrap();
        let file = Arc::new(OpenFile::new(tempfile::tempfile().unwrap().into()));
        let mut first = Aggregate::new();
        first.push(FileSlice::new(file, 0, 4));
        coder.take(first);
        assert_eq!(coder.to_read().map(|slice| slice.len()), Some(4));
        coder.take(body(b", then this"));
        assert!(coder.is_reading() && bytes_of(&coder.code(tally).unwrap()).is_empty());
        coder.handle_read(Some(Slice::from(b"this".to_vec())));
        assert!(!coder.is_reading() && coder.to_read().is_none());
        let coded = bytes_of(&coder.finish(tally).unwrap());
        let mut decoded = String::new();
        flate2::read::GzDecoder::new(&coded[..]).read_to_string(&mut decoded).unwrap();
        assert_eq!(decoded, "this, then this");
    }

    /// Goal: one response does not keep the others waiting. Method: more than a turn at once, counted turn by turn.
    #[test]
    fn a_long_body_is_coded_turn_by_turn() {
        let tally = &mut tally();
        let mut coder = Coder::new(Coding::Gzip, None, tally).unwrap();
        let text = b"All work and no play. ".repeat(20_000);
        coder.take(body(&text));
        let mut out = Vec::new();
        let mut turns = 0;
        while !coder.can_finish() {
            out.extend(bytes_of(&coder.code(tally).unwrap()));
            assert!(coder.takes_turn(), "after as much as one turn allows");
            turns += 1;
        }
        out.extend(bytes_of(&coder.finish(tally).unwrap()));
        assert_eq!(turns, text.len() as u64 / TURN_BYTES);
        let mut decoded = Vec::new();
        flate2::read::GzDecoder::new(&out[..]).read_to_end(&mut decoded).unwrap();
        assert!(decoded == text);
    }

    #[test]
    fn a_body_that_is_too_short_is_no_end() {
        let tally = &mut tally();
        let mut coder = Coder::new(Coding::Zstd, Some(5), tally).unwrap();
        coder.take(body(b"four"));
        assert!(matches!(coder.finish(tally), Err(CoderError::TooShort)));
        let mut coder = Coder::new(Coding::Zstd, Some(4), tally).unwrap();
        coder.take(body(b"fourteen"));
        assert_eq!(coder.pending.len(), 4, "what exceeds the length is dropped");
        assert!(coder.finish(tally).is_ok());
    }
}
