//! What records of type 66 say (`docs/handover-protocol.md`, section 3).

use crate::Broken;
use crate::record::{HEADER_BYTES, RecordType, header};

/// The most slices that one record announces.
pub const SLICES_MAX: usize = 1024;

/// A piece of memory that an application shares with the server: of output in its region, or of a request's body in the
/// pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionSlice {
    /// Where it begins, in bytes from the start of the memory.
    pub offset: u32,
    /// Its length in bytes.
    pub len: u32,
}

impl RegionSlice {
    /// Whether it is within a region of this size in bytes.
    pub const fn is_within(self, region_bytes: u64) -> bool {
        self.offset as u64 + self.len as u64 <= region_bytes
    }

    fn from_bytes([a, b, c, d, e, f, g, h]: [u8; SLICE_BYTES]) -> Self {
        Self { offset: u32::from_be_bytes([a, b, c, d]), len: u32::from_be_bytes([e, f, g, h]) }
    }
}

/// How an answer that the application gave on the client's own socket came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AnswerOutcome {
    /// All of it was sent.
    Complete = 0,
    /// The client went away in the middle.
    ClientGone = 1,
    /// The application's body differs from its declared length, or it ended early.
    ApplicationFailed = 2,
}

/// `ANSWERED`: the application has answered on the client's own socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Whether the response is complete.
    pub complete: bool,
    /// Whether the client's connection may go on with another request.
    pub may_go_on: bool,
    /// How it came out.
    pub outcome: AnswerOutcome,
    /// The status sent to the client; 0 if none.
    pub status: u16,
    /// Bytes of the head.
    pub head_bytes: u64,
    /// Bytes of the body, without framing.
    pub body_bytes: u64,
}

/// `REST`: the following standard output is the rest of the answer as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Whether the client's connection may go on once the rest has been sent.
    pub may_go_on: bool,
    /// The status sent to the client.
    pub status: u16,
    /// Bytes of the head that the client's socket has taken.
    pub head_sent: u64,
    /// Bytes of the body that it has taken.
    pub body_sent: u64,
}

/// `DECLINED`: why an application that was offered the client's socket leaves the answer to the server. It is for reports
/// alone: that the socket is declined, the answer itself says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Declined {
    /// The server codes the body.
    Coded = 1,
    /// The head asks the server to act.
    Instruction = 2,
    /// The head is malformed, or too long.
    Head = 3,
    /// A reason that this server does not know yet.
    Other = 0,
}

/// A record of type 66 to the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Notice<'a> {
    /// The slices as they came.
    Slices(&'a [u8]),
    Answered(Answered),
    Rest(Rest),
    Declined(Declined),
    /// This library takes bodies by reference.
    TakesBodies,
    /// It no longer looks at so many bytes of the pool.
    Freed(u32),
}

impl<'a> Notice<'a> {
    pub(crate) fn parse(content: &'a [u8]) -> Result<Self, Broken> {
        match content {
            [SLICES, slices @ ..] => Ok(Self::Slices(checked_slices(slices)?)),
            [TAKES_BODIES] => Ok(Self::TakesBodies),
            [FREED, a, b, c, d] => Ok(Self::Freed(u32::from_be_bytes([*a, *b, *c, *d]))),
            [ANSWERED, report @ ..] => {
                let (flags, outcome, status, head_bytes, body_bytes) = split_report(report)?;
                Ok(Self::Answered(Answered {
                    complete: flags & COMPLETE != 0,
                    may_go_on: flags & MAY_GO_ON != 0,
                    outcome: match outcome {
                        0 => AnswerOutcome::Complete,
                        1 => AnswerOutcome::ClientGone,
                        2 => AnswerOutcome::ApplicationFailed,
                        _ => return Err(Broken::HandOver),
                    },
                    status,
                    head_bytes,
                    body_bytes,
                }))
            }
            [REST, report @ ..] => {
                let (flags, _, status, head_sent, body_sent) = split_report(report)?;
                Ok(Self::Rest(Rest { may_go_on: flags & MAY_GO_ON != 0, status, head_sent, body_sent }))
            }
            [DECLINED, why] => Ok(Self::Declined(match why {
                1 => Declined::Coded,
                2 => Declined::Instruction,
                3 => Declined::Head,
                _ => Declined::Other,
            })),
            _ => Err(Broken::HandOver),
        }
    }
}

/// A record of type 66 to the application.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Order<'a> {
    Freed(u32),
    GiveBack,
    /// The slices of the body as they came.
    Slices(&'a [u8]),
    File(FileRange),
}

/// `FILE`: the next bytes of the body are in the file that came with the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// Where they begin, in bytes from the start of the file.
    pub offset: u64,
    /// How many they are.
    pub len: u64,
}

impl<'a> Order<'a> {
    pub(crate) fn parse(content: &'a [u8]) -> Result<Self, Broken> {
        match content {
            [FREED, a, b, c, d] => Ok(Self::Freed(u32::from_be_bytes([*a, *b, *c, *d]))),
            [GIVE_BACK] => Ok(Self::GiveBack),
            [SLICES, slices @ ..] => Ok(Self::Slices(checked_slices(slices)?)),
            [FILE, range @ ..] => {
                let ([offset, len], []) = range.as_chunks::<8>() else { return Err(Broken::HandOver) };
                Ok(Self::File(FileRange {
                    offset: u64::from_be_bytes(*offset),
                    len: u64::from_be_bytes(*len),
                }))
            }
            _ => Err(Broken::HandOver),
        }
    }
}

/// At least one whole slice, and not too many.
fn checked_slices(slices: &[u8]) -> Result<&[u8], Broken> {
    let whole = slices.len().is_multiple_of(SLICE_BYTES);
    let fits = (1..=SLICES_MAX * SLICE_BYTES).contains(&slices.len());
    if whole && fits { Ok(slices) } else { Err(Broken::HandOver) }
}

/// The slices in the content of a `SLICES` record, after its kind.
pub(crate) fn slices_in(bytes: &[u8]) -> impl ExactSizeIterator<Item = RegionSlice> {
    bytes.as_chunks::<SLICE_BYTES>().0.iter().copied().map(RegionSlice::from_bytes)
}

pub(crate) fn push_slices(out: &mut Vec<u8>, request_id: u16, slices: &[RegionSlice]) {
    for some in slices.chunks(SLICES_MAX) {
        out.extend_from_slice(&header(RecordType::Baton, request_id, 1 + some.len() * SLICE_BYTES));
        out.push(SLICES);
        for slice in some {
            out.extend_from_slice(&slice.offset.to_be_bytes());
            out.extend_from_slice(&slice.len.to_be_bytes());
        }
    }
}

pub(crate) fn push_answered(out: &mut Vec<u8>, request_id: u16, answered: &Answered) {
    let flags = flag(answered.complete, COMPLETE) | flag(answered.may_go_on, MAY_GO_ON);
    let outcome = answered.outcome as u8;
    let bytes = (answered.head_bytes, answered.body_bytes);
    push_report(out, request_id, [ANSWERED, flags, outcome], answered.status, bytes);
}

pub(crate) fn push_rest(out: &mut Vec<u8>, request_id: u16, rest: &Rest) {
    let flags = flag(rest.may_go_on, MAY_GO_ON);
    push_report(out, request_id, [REST, flags, 0], rest.status, (rest.head_sent, rest.body_sent));
}

pub(crate) fn push_declined(out: &mut Vec<u8>, request_id: u16, why: Declined) {
    out.extend_from_slice(&header(RecordType::Baton, request_id, 2));
    out.extend_from_slice(&[DECLINED, why as u8]);
}

pub(crate) fn push_freed(out: &mut Vec<u8>, request_id: u16, bytes: u32) {
    out.extend_from_slice(&header(RecordType::Baton, request_id, 1 + size_of::<u32>()));
    out.push(FREED);
    out.extend_from_slice(&bytes.to_be_bytes());
}

pub(crate) fn push_give_back(out: &mut Vec<u8>, request_id: u16) {
    out.extend_from_slice(&header(RecordType::Baton, request_id, 1));
    out.push(GIVE_BACK);
}

pub(crate) fn push_takes_bodies(out: &mut Vec<u8>, request_id: u16) {
    out.extend_from_slice(&header(RecordType::Baton, request_id, 1));
    out.push(TAKES_BODIES);
}

pub(crate) fn push_file(out: &mut Vec<u8>, request_id: u16, range: FileRange) {
    out.extend_from_slice(&header(RecordType::Baton, request_id, 1 + 2 * size_of::<u64>()));
    out.push(FILE);
    out.extend_from_slice(&range.offset.to_be_bytes());
    out.extend_from_slice(&range.len.to_be_bytes());
}

/// Flags, outcome, status and two counts, which two kinds of record share.
fn split_report(content: &[u8]) -> Result<(u8, u8, u16, u64, u64), Broken> {
    let ([flags, outcome, high, low], counts) = content.split_first_chunk().ok_or(Broken::HandOver)?;
    let ([head, body], []) = counts.as_chunks::<8>() else {
        return Err(Broken::HandOver);
    };
    Ok((
        *flags,
        *outcome,
        u16::from_be_bytes([*high, *low]),
        u64::from_be_bytes(*head),
        u64::from_be_bytes(*body),
    ))
}

fn push_report(out: &mut Vec<u8>, request_id: u16, start: [u8; 3], status: u16, (head, body): (u64, u64)) {
    out.reserve(HEADER_BYTES + REPORT_BYTES);
    out.extend_from_slice(&header(RecordType::Baton, request_id, REPORT_BYTES));
    out.extend_from_slice(&start);
    out.extend_from_slice(&status.to_be_bytes());
    out.extend_from_slice(&head.to_be_bytes());
    out.extend_from_slice(&body.to_be_bytes());
}

const fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

const SLICES: u8 = 1;
const ANSWERED: u8 = 2;
const REST: u8 = 3;
const FREED: u8 = 4;
const GIVE_BACK: u8 = 5;
const DECLINED: u8 = 6;
const TAKES_BODIES: u8 = 7;
const FILE: u8 = 8;

const COMPLETE: u8 = 1;
const MAY_GO_ON: u8 = 2;

/// An offset and a length.
const SLICE_BYTES: usize = 8;

/// Kind, flags, outcome, status, two counts.
const REPORT_BYTES: usize = 21;
