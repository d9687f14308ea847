//! The application's end: reads requests, writes answers. One request at a time on a connection, as every
//! application that Baton knows does it.

use crate::frames::{Frame, FrameReader};
use crate::handover::{self, Order, slices_in};
use crate::params::{self, Params};
use crate::record::{
    CONTENT_BYTES_MAX, HEADER_BYTES, MANAGEMENT_ID, RecordHeader, RecordType, eight_bytes, header,
    push_record, push_stream,
};
use crate::response::ProtocolStatus;
use crate::{Answered, Broken, Declined, FileRange, RegionSlice, Rest};
use std::ops::Range;

/// The next part of the input. Ranges refer to that input and are never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of the input was consumed.
    NeedMore,
    /// A request begins.
    Begin {
        /// Its id, for everything that is written for it.
        id: u16,
        /// The role: [`RESPONDER`](crate::request::RESPONDER); refuse others with [`ProtocolStatus::UnknownRole`].
        role: u16,
        /// Whether to keep the connection open afterwards.
        keep_connection: bool,
    },
    /// A second request before the first is answered: refuse it with [`ProtocolStatus::CannotMultiplex`]. The rest of
    /// it is skipped.
    BeginAnother {
        /// Its id.
        id: u16,
    },
    /// A piece of the block of name-value pairs.
    Params(Range<usize>),
    /// The block is complete.
    ParamsEnd,
    /// A piece of the request's body.
    Stdin(Range<usize>),
    /// The next pieces of the body are in the pool: see [`RequestReader::slices`].
    Slices,
    /// The next piece of the body is in the file that came with the request.
    File(FileRange),
    /// The body is complete.
    StdinEnd,
    /// The server no longer wants the answer: end the request.
    Abort,
    /// The server asks for values: see [`RequestReader::names`].
    GetValues,
    /// This many bytes of the region may be written again.
    Freed(u32),
    /// Hand the rest of the answer back.
    GiveBack,
    /// A management record of an unknown type: answer with [`push_unknown_type`].
    UnknownType(u8),
}

/// Reads the server's records on one connection.
///
/// Input: [`read`](Self::read). Buffers only records that must be complete, at most 64 KiB, and reuses that memory.
/// Command: [`finish`](Self::finish).
#[derive(Debug)]
pub struct RequestReader {
    request_id: u16,
    stage: Stage,
    frames: FrameReader,
    doing: Doing,
    collected: Vec<u8>,
}

/// How far the request at hand has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There is none, or it has been answered.
    Idle,
    Params,
    Stdin,
    Read,
}

/// How to treat the content of the current record.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Skip,
    Params,
    Stdin,
    /// The content is skipped, the record reported.
    Announce(Announced),
    Collect(Collected),
}

#[derive(Clone, Copy, Debug)]
enum Announced {
    ParamsEnd,
    StdinEnd,
    Abort,
    UnknownType(u8),
}

#[derive(Clone, Copy, Debug)]
enum Collected {
    Begin(u16),
    Names,
    Order,
}

impl Default for RequestReader {
    fn default() -> Self {
        Self::new()
    }
}

impl RequestReader {
    /// For a new connection.
    pub const fn new() -> Self {
        let frames = FrameReader::new();
        Self { request_id: 0, stage: Stage::Idle, frames, doing: Doing::Skip, collected: Vec::new() }
    }

    /// Whether no record is incomplete and no request unanswered, so that the server may close.
    pub const fn is_between_requests(&self) -> bool {
        matches!(self.stage, Stage::Idle) && self.frames.is_between_records()
    }

    /// The request has been answered: what still comes of it is skipped.
    pub const fn finish(&mut self) {
        self.stage = Stage::Idle;
    }

    /// The parameters of the request at hand have been read elsewhere: its body follows.
    pub fn skip_params(&mut self) {
        if self.stage == Stage::Params {
            self.stage = Stage::Stdin;
        }
    }

    /// Parses the next part of the input; returns the number of bytes consumed and the part. Call again with the rest
    /// until it needs more.
    ///
    /// # Errors
    /// A protocol error of the server: close the connection.
    pub fn read(&mut self, input: &[u8]) -> Result<(usize, Part), Broken> {
        let mut rest = input;
        loop {
            let frame = self.frames.next(&mut rest)?;
            let consumed = input.len() - rest.len();
            let part = match frame {
                None => Some(Part::NeedMore),
                Some(Frame::Opened(header)) => {
                    self.doing = self.open(header)?;
                    None
                }
                Some(Frame::Content(bytes)) => match self.doing {
                    Doing::Skip | Doing::Announce(_) => None,
                    Doing::Params => Some(Part::Params(consumed - bytes.len()..consumed)),
                    Doing::Stdin => Some(Part::Stdin(consumed - bytes.len()..consumed)),
                    Doing::Collect(_) => {
                        self.collected.extend_from_slice(bytes);
                        None
                    }
                },
                Some(Frame::Padding(_)) => None,
                Some(Frame::Closed) => match self.doing {
                    Doing::Announce(what) => Some(self.announce(what)),
                    Doing::Collect(what) => Some(self.close(what)?),
                    _ => None,
                },
            };
            if let Some(part) = part {
                return Ok((consumed, part));
            }
        }
    }

    /// The names of the last [`Part::GetValues`], each with an empty value, until the next call of
    /// [`read`](Self::read).
    pub fn names(&self) -> Params<'_> {
        Params::new(&self.collected)
    }

    /// The slices of the last [`Part::Slices`], until the next call of [`read`](Self::read). They may exceed the pool: see
    /// [`RegionSlice::is_within`].
    pub fn slices(&self) -> impl ExactSizeIterator<Item = RegionSlice> {
        match Order::parse(&self.collected) {
            Ok(Order::Slices(bytes)) => slices_in(bytes),
            _ => slices_in(&[]),
        }
    }

    fn open(&mut self, header: RecordHeader) -> Result<Doing, Broken> {
        let RecordHeader { kind, request_id, content_len, .. } = header;
        let known = RecordType::from_u8(kind);
        let what = match (known, request_id) {
            (Some(RecordType::GetValues), MANAGEMENT_ID) => Collected::Names,
            (_, MANAGEMENT_ID) => return Ok(Doing::Announce(Announced::UnknownType(kind))),
            (Some(RecordType::BeginRequest), id) => Collected::Begin(id),
            _ if request_id != self.request_id || self.stage == Stage::Idle => return Ok(Doing::Skip),
            (Some(RecordType::Baton), _) => Collected::Order,
            _ => return self.open_stream(known, content_len == 0),
        };
        self.collected.clear();
        Ok(Doing::Collect(what))
    }

    /// A record of the request at hand.
    fn open_stream(&self, known: Option<RecordType>, is_empty: bool) -> Result<Doing, Broken> {
        match (known, self.stage) {
            (Some(RecordType::Params), Stage::Params) if is_empty => {
                Ok(Doing::Announce(Announced::ParamsEnd))
            }
            (Some(RecordType::Params), Stage::Params) => Ok(Doing::Params),
            (Some(RecordType::Stdin), Stage::Stdin) if is_empty => Ok(Doing::Announce(Announced::StdinEnd)),
            (Some(RecordType::Stdin), Stage::Stdin) => Ok(Doing::Stdin),
            (Some(RecordType::AbortRequest), _) => Ok(Doing::Announce(Announced::Abort)),
            (Some(RecordType::Params | RecordType::Stdin), _) => Err(Broken::Order),
            _ => Ok(Doing::Skip),
        }
    }

    fn announce(&mut self, what: Announced) -> Part {
        match what {
            Announced::ParamsEnd => {
                self.stage = Stage::Stdin;
                Part::ParamsEnd
            }
            Announced::StdinEnd => {
                self.stage = Stage::Read;
                Part::StdinEnd
            }
            Announced::Abort => Part::Abort,
            Announced::UnknownType(kind) => Part::UnknownType(kind),
        }
    }

    fn close(&mut self, what: Collected) -> Result<Part, Broken> {
        let content = &self.collected[..];
        match what {
            Collected::Names => Ok(Part::GetValues),
            Collected::Order => Ok(match Order::parse(content)? {
                Order::Freed(bytes) => Part::Freed(bytes),
                Order::GiveBack => Part::GiveBack,
                Order::Slices(_) | Order::File(_) if self.stage != Stage::Stdin => {
                    return Err(Broken::Order);
                }
                Order::Slices(_) => Part::Slices,
                Order::File(range) => Part::File(range),
            }),
            Collected::Begin(id) => {
                let [high, low, flags, ..] = eight_bytes(content, RecordType::BeginRequest)?;
                if self.stage != Stage::Idle {
                    return if id == self.request_id {
                        Err(Broken::Order)
                    } else {
                        Ok(Part::BeginAnother { id })
                    };
                }
                self.request_id = id;
                self.stage = Stage::Params;
                let role = u16::from_be_bytes([high, low]);
                Ok(Part::Begin { id, role, keep_connection: flags & KEEP_CONNECTION != 0 })
            }
        }
    }
}

/// Appends a part of the response; nothing for no bytes.
pub fn push_stdout(out: &mut Vec<u8>, id: u16, bytes: &[u8]) {
    push_stream(out, RecordType::Stdout, id, bytes);
}

/// The header of a record with `len` bytes of the response, which are written from where they are; no padding
/// follows.
///
/// # Panics
/// If `len` is not within 1 and [`CONTENT_BYTES_MAX`].
pub const fn stdout_header(id: u16, len: usize) -> [u8; HEADER_BYTES] {
    assert!(len > 0 && len <= CONTENT_BYTES_MAX, "an empty record ends the response");
    header(RecordType::Stdout, id, len)
}

/// Appends output for the error log; nothing for no bytes.
pub fn push_stderr(out: &mut Vec<u8>, id: u16, bytes: &[u8]) {
    push_stream(out, RecordType::Stderr, id, bytes);
}

/// Appends the end of the request; the streams need no end records before it.
pub fn push_end(out: &mut Vec<u8>, id: u16, app_status: u32, protocol_status: ProtocolStatus) {
    let [a, b, c, d] = app_status.to_be_bytes();
    push_record(out, RecordType::EndRequest, id, &[a, b, c, d, protocol_status as u8, 0, 0, 0]);
}

/// Appends `SLICES`: the next bytes of the response are in the region. Nothing for no slices; more than
/// [`SLICES_MAX`](crate::SLICES_MAX) take several records.
pub fn push_slices(out: &mut Vec<u8>, id: u16, slices: &[RegionSlice]) {
    handover::push_slices(out, id, slices);
}

/// Appends `ANSWERED`.
pub fn push_answered(out: &mut Vec<u8>, id: u16, answered: &Answered) {
    handover::push_answered(out, id, answered);
}

/// Appends `REST`: the following standard output goes to the client unchanged.
pub fn push_rest(out: &mut Vec<u8>, id: u16, rest: &Rest) {
    handover::push_rest(out, id, rest);
}

/// Appends `DECLINED`, for a server whose offer says what is coded: others do not know it.
pub fn push_declined(out: &mut Vec<u8>, id: u16, why: Declined) {
    handover::push_declined(out, id, why);
}

/// Appends `TAKES_BODIES`, for a server whose offer asks for it: others do not know it.
pub fn push_takes_bodies(out: &mut Vec<u8>, id: u16) {
    handover::push_takes_bodies(out, id);
}

/// Appends `FREED`: so many bytes of the body, in the order in which they came, are not looked at any more.
pub fn push_freed(out: &mut Vec<u8>, id: u16, bytes: u32) {
    handover::push_freed(out, id, bytes);
}

/// Appends the answer to [`Part::GetValues`].
///
/// # Panics
/// If the pairs do not fit into one record.
pub fn push_values_result(out: &mut Vec<u8>, values: &[(&str, &str)]) {
    let mut block = Vec::new();
    for (name, value) in values {
        params::push(&mut block, name.as_bytes(), value.as_bytes());
    }
    push_record(out, RecordType::GetValuesResult, MANAGEMENT_ID, &block);
}

/// Appends the answer to [`Part::UnknownType`].
pub fn push_unknown_type(out: &mut Vec<u8>, kind: u8) {
    push_record(out, RecordType::UnknownType, MANAGEMENT_ID, &[kind, 0, 0, 0, 0, 0, 0, 0]);
}

/// The only flag of `FCGI_BEGIN_REQUEST`.
const KEEP_CONNECTION: u8 = 1;
