//! What the server reads: the records of one request's answer; streams are not copied.

use crate::frames::{Frame, FrameReader};
use crate::handover::{Notice, slices_in};
use crate::params::Params;
use crate::record::{MANAGEMENT_ID, RecordHeader, RecordType, eight_bytes};
use crate::{Answered, Broken, Declined, RegionSlice, Rest};
use std::ops::Range;

/// Why a request ended, by the protocol (FastCGI 1.0 section 5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ProtocolStatus {
    /// The request was answered.
    RequestComplete = 0,
    /// Refused: the application does one request per connection at a time.
    CannotMultiplex = 1,
    /// Refused: the application has run out of something.
    Overloaded = 2,
    /// Refused: the application does not know the role.
    UnknownRole = 3,
}

/// The next part of the input. Ranges refer to that input and are never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of the input was consumed.
    NeedMore,
    /// A piece of the response.
    Stdout(Range<usize>),
    /// A piece for the error log.
    Stderr(Range<usize>),
    /// The next bytes of the response are in the region: see [`ResponseReader::slices`].
    Slices,
    /// The application has answered on the client's socket.
    Answered(Answered),
    /// The standard output from here on is the rest of the answer as on the wire.
    Rest(Rest),
    /// Why the application does not use the client's socket.
    Declined(Declined),
    /// The library takes bodies by reference, on this connection.
    TakesBodies,
    /// It no longer looks at so many bytes of the body, in the order in which they were lent.
    Freed(u32),
    /// The request has ended.
    End {
        /// The exit status of the application, in CGI's terms.
        app_status: u32,
        /// The protocol's status of the request.
        protocol_status: ProtocolStatus,
    },
    /// Answers to `FCGI_GET_VALUES`: see [`ResponseReader::values`].
    Values,
    /// The application does not understand management records of this type.
    UnknownType(u8),
}

/// Reads what an application sends on one connection. Requests follow each other on it
/// ([`ResponseReader::begin`]); records of other requests are skipped, as the specification says (section
/// 3.3).
///
/// Input: [`read`](Self::read). Buffers only records that must be complete, at most 64 KiB, and reuses that memory.
#[derive(Debug)]
pub struct ResponseReader {
    request_id: u16,
    ended: bool,
    frames: FrameReader,
    doing: Doing,
    /// The content so far of a record that must be whole, until the next one begins.
    collected: Vec<u8>,
}

/// How to treat the content of the current record.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Skip,
    Stdout,
    Stderr,
    Collect(Collected),
}

#[derive(Clone, Copy, Debug)]
enum Collected {
    End,
    Notice,
    Values,
    UnknownType,
}

impl ResponseReader {
    /// For the answer to this request; [`MANAGEMENT_ID`] if there is none yet, only questions of the
    /// connection.
    pub const fn new(request_id: u16) -> Self {
        let frames = FrameReader::new();
        Self { request_id, ended: false, frames, doing: Doing::Skip, collected: Vec::new() }
    }

    /// Continues with the answer to the next request on the same connection.
    pub const fn begin(&mut self, request_id: u16) {
        self.request_id = request_id;
        self.ended = false;
    }

    /// Whether no record is half read: only then can the connection be used for another request.
    pub const fn is_between_records(&self) -> bool {
        self.frames.is_between_records()
    }

    /// Parses the next part of the input; returns the number of bytes consumed and the part. Call again with the rest
    /// until it needs more.
    ///
    /// # Errors
    /// A protocol error of the application: close the connection.
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
                    Doing::Skip => None,
                    Doing::Stdout => Some(Part::Stdout(consumed - bytes.len()..consumed)),
                    Doing::Stderr => Some(Part::Stderr(consumed - bytes.len()..consumed)),
                    Doing::Collect(_) => {
                        self.collected.extend_from_slice(bytes);
                        None
                    }
                },
                Some(Frame::Padding(_)) => None,
                Some(Frame::Closed) => match self.doing {
                    Doing::Collect(what) => Some(self.close(what)?),
                    _ => None,
                },
            };
            if let Some(part) = part {
                return Ok((consumed, part));
            }
        }
    }

    /// The slices of the last [`Part::Slices`], until the next call of [`read`](Self::read). They may exceed the
    /// region: see [`RegionSlice::is_within`].
    pub fn slices(&self) -> impl ExactSizeIterator<Item = RegionSlice> {
        match Notice::parse(&self.collected) {
            Ok(Notice::Slices(bytes)) => slices_in(bytes),
            _ => slices_in(&[]),
        }
    }

    /// The pairs of the last [`Part::Values`], until the next call of [`read`](Self::read).
    pub fn values(&self) -> Params<'_> {
        Params::new(&self.collected)
    }

    fn open(&mut self, header: RecordHeader) -> Result<Doing, Broken> {
        let RecordHeader { kind, request_id, .. } = header;
        let of_the_connection = request_id == MANAGEMENT_ID;
        let what = match RecordType::from_u8(kind) {
            Some(RecordType::GetValuesResult) if of_the_connection => Collected::Values,
            Some(RecordType::UnknownType) if of_the_connection => Collected::UnknownType,
            _ if of_the_connection || request_id != self.request_id => return Ok(Doing::Skip),
            _ if self.ended => return Err(Broken::AfterEnd),
            Some(RecordType::Stdout) => return Ok(Doing::Stdout),
            Some(RecordType::Stderr) => return Ok(Doing::Stderr),
            Some(RecordType::EndRequest) => Collected::End,
            Some(RecordType::Baton) => Collected::Notice,
            _ => return Err(Broken::UnexpectedType(kind)),
        };
        self.collected.clear();
        Ok(Doing::Collect(what))
    }

    fn close(&mut self, what: Collected) -> Result<Part, Broken> {
        let content = &self.collected[..];
        Ok(match what {
            Collected::Values => Part::Values,
            Collected::Notice => match Notice::parse(content)? {
                Notice::Slices(_) => Part::Slices,
                Notice::Answered(answered) => Part::Answered(answered),
                Notice::Rest(rest) => Part::Rest(rest),
                Notice::Declined(why) => Part::Declined(why),
                Notice::TakesBodies => Part::TakesBodies,
                Notice::Freed(bytes) => Part::Freed(bytes),
            },
            Collected::UnknownType => {
                let [kind, ..] = eight_bytes(content, RecordType::UnknownType)?;
                Part::UnknownType(kind)
            }
            Collected::End => {
                let [a, b, c, d, status, ..] = eight_bytes(content, RecordType::EndRequest)?;
                self.ended = true;
                let app_status = u32::from_be_bytes([a, b, c, d]);
                Part::End { app_status, protocol_status: ProtocolStatus::from_u8(status)? }
            }
        })
    }
}

impl ProtocolStatus {
    fn from_u8(status: u8) -> Result<Self, Broken> {
        Ok(match status {
            0 => Self::RequestComplete,
            1 => Self::CannotMultiplex,
            2 => Self::Overloaded,
            3 => Self::UnknownRole,
            _ => return Err(Broken::ProtocolStatus(status)),
        })
    }
}
