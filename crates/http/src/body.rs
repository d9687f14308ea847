//! Reads a body as it arrives, and knows where it ends: a request's, or that of an origin's response.

use crate::fields::{is_token_byte, is_value_byte};
use crate::{BodyFraming, Refusal};

/// Reads one body, piece by piece, without copying it. Bytes after its end are never consumed: they are the next
/// request.
#[derive(Clone, Debug)]
pub struct BodyReader {
    state: State,
    extension_bytes: usize,
    trailer_bytes: usize,
    /// The lines of the trailer section, where they are wanted.
    trailers: Option<Vec<u8>>,
}

/// What [`BodyReader::read`] found. `consumed` counts from the beginning of the input that it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyStep<'a> {
    /// Content, never empty. There may be more of it in the same input.
    Data {
        /// Bytes of input that are used up: `data` and its framing.
        consumed: usize,
        /// Some bytes of the content.
        data: &'a [u8],
    },
    /// The input is used up, but the body is incomplete.
    NeedMore {
        /// Bytes of input that are used up: all of them.
        consumed: usize,
    },
    /// The body is complete.
    End {
        /// Bytes of input that are used up; the rest belongs to the next request.
        consumed: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the content, in a chunk or with a length: at least one more byte.
    Data {
        remaining: u64,
        in_chunk: bool,
    },
    /// Between the contents of chunks.
    Framing(Framing),
    End,
}

/// The position of the next byte in the grammar of RFC 9112 section 7.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// In a chunk's size, of which `digits` digits were read.
    Size {
        size: u64,
        digits: u8,
    },
    /// After a blank that follows a size: only an extension may come (the grammar's "bad white space").
    BeforeExtension {
        size: u64,
    },
    Extension {
        size: u64,
    },
    SizeLineFeed {
        size: u64,
    },
    DataCarriageReturn,
    DataLineFeed,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLineFeed,
    LastLineFeed,
}

impl BodyReader {
    /// A reader at the beginning of a body.
    pub const fn new(framing: BodyFraming) -> Self {
        let state = match framing {
            // Frames are taken apart by the connection, not by a reader of its bytes.
            BodyFraming::None | BodyFraming::Length(0) | BodyFraming::Frames => State::End,
            BodyFraming::Length(remaining) => State::Data { remaining, in_chunk: false },
            BodyFraming::Chunked => State::Framing(CHUNK_START),
        };
        Self { state, extension_bytes: 0, trailer_bytes: 0, trailers: None }
    }

    /// A reader at the beginning of a body, which keeps the trailer fields.
    pub(crate) fn keeping_trailers(framing: BodyFraming) -> Self {
        Self { trailers: Some(Vec::new()), ..Self::new(framing) }
    }

    /// The lines of the trailer section, checked, with their ends.
    pub(crate) fn take_trailers(&mut self) -> Vec<u8> {
        self.trailers.take().unwrap_or_default()
    }

    /// Reads on in `input`, which begins where the last call stopped consuming.
    ///
    /// # Errors
    /// The reason why a chunked body is malformed or beyond a limit. The reader is unusable afterwards.
    pub fn read<'a>(&mut self, input: &'a [u8]) -> Result<BodyStep<'a>, Refusal> {
        let mut consumed = 0;
        loop {
            let available = &input[consumed..];
            match (self.state, available) {
                (State::End, _) => return Ok(BodyStep::End { consumed }),
                (_, []) => return Ok(BodyStep::NeedMore { consumed }),
                (State::Framing(framing), [byte, ..]) => {
                    self.state = self.frame(framing, *byte)?;
                    consumed += 1;
                }
                (State::Data { remaining, in_chunk }, _) => {
                    // Fits a usize: at most `available`.
                    let len = remaining.min(available.len() as u64) as usize;
                    self.state = match remaining - len as u64 {
                        0 if in_chunk => State::Framing(Framing::DataCarriageReturn),
                        0 => State::End,
                        remaining => State::Data { remaining, in_chunk },
                    };
                    return Ok(BodyStep::Data { consumed: consumed + len, data: &available[..len] });
                }
            }
        }
    }

    /// Bytes that are still to come of a body with a length, which have no framing between them; 0 of others.
    pub const fn plain_left(&self) -> u64 {
        match self.state {
            State::Data { remaining, in_chunk: false } => remaining,
            _ => 0,
        }
    }

    /// So many bytes of [`plain_left`](Self::plain_left) went another way.
    pub fn pass(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.plain_left(), "more than the rest of the body");
        let remaining = self.plain_left().saturating_sub(bytes);
        self.state = if remaining > 0 { State::Data { remaining, in_chunk: false } } else { State::End };
    }

    /// Whether the body is complete: [`read`](Self::read) would answer `End` without any input.
    pub fn is_finished(&self) -> bool {
        self.state == State::End
    }

    /// A lower bound for the content still to come: the rest of a length or chunk, or the value of a chunk size's
    /// digits so far, which further digits can only enlarge.
    pub const fn announced(&self) -> u64 {
        match self.state {
            State::Data { remaining, .. } => remaining,
            State::Framing(
                Framing::Size { size, .. }
                | Framing::BeforeExtension { size }
                | Framing::Extension { size }
                | Framing::SizeLineFeed { size },
            ) => size,
            State::Framing(_) | State::End => 0,
        }
    }

    /// The state after a byte that frames.
    fn frame(&mut self, framing: Framing, byte: u8) -> Result<State, Refusal> {
        let next = match (framing, byte) {
            (Framing::Size { size, digits: 1.. }, b'\r') => Framing::SizeLineFeed { size },
            (Framing::Size { size, digits: 1.. }, b';') => self.extend(Framing::Extension { size })?,
            (Framing::Size { size, digits: 1.. }, b' ' | b'\t') => {
                self.extend(Framing::BeforeExtension { size })?
            }
            (Framing::Size { size, digits: digits @ ..SIZE_DIGITS_MAX }, _) => {
                let digit = char::from(byte).to_digit(16).ok_or(Refusal::ChunkSize)?;
                Framing::Size { size: size << 4 | u64::from(digit), digits: digits + 1 }
            }
            (Framing::BeforeExtension { .. }, b' ' | b'\t') => self.extend(framing)?,
            (Framing::BeforeExtension { size }, b';') => self.extend(Framing::Extension { size })?,
            (Framing::Extension { size }, b'\r') => Framing::SizeLineFeed { size },
            (Framing::Extension { .. }, _) if is_value_byte(byte) => self.extend(framing)?,
            (Framing::Extension { .. }, _) => return Err(Refusal::ChunkExtension),
            (Framing::SizeLineFeed { size: 0 }, b'\n') => Framing::TrailerStart,
            (Framing::SizeLineFeed { size }, b'\n') => {
                return Ok(State::Data { remaining: size, in_chunk: true });
            }
            (Framing::Size { .. } | Framing::BeforeExtension { .. } | Framing::SizeLineFeed { .. }, _) => {
                return Err(Refusal::ChunkSize);
            }

            (Framing::DataCarriageReturn, b'\r') => Framing::DataLineFeed,
            (Framing::DataLineFeed, b'\n') => CHUNK_START,
            (Framing::DataCarriageReturn | Framing::DataLineFeed, _) => return Err(Refusal::ChunkEnd),

            (Framing::TrailerStart, b'\r') => Framing::LastLineFeed,
            (Framing::TrailerName, b':') => self.trail(byte, Framing::TrailerValue)?,
            (Framing::TrailerStart | Framing::TrailerName, _) if is_token_byte(byte) => {
                self.trail(byte, Framing::TrailerName)?
            }
            (Framing::TrailerValue, b'\r') => self.trail(byte, Framing::TrailerLineFeed)?,
            (Framing::TrailerValue, _) if is_value_byte(byte) => self.trail(byte, framing)?,
            (Framing::TrailerLineFeed, b'\n') => self.trail(byte, Framing::TrailerStart)?,
            (Framing::LastLineFeed, b'\n') => return Ok(State::End),
            _ => return Err(Refusal::TrailerInvalid),
        };
        Ok(State::Framing(next))
    }

    fn extend(&mut self, next: Framing) -> Result<Framing, Refusal> {
        self.extension_bytes += 1;
        if self.extension_bytes > EXTENSION_BYTES_MAX { Err(Refusal::ChunkExtension) } else { Ok(next) }
    }

    fn trail(&mut self, byte: u8, next: Framing) -> Result<Framing, Refusal> {
        self.trailer_bytes += 1;
        if let Some(trailers) = &mut self.trailers {
            trailers.push(byte);
        }
        if self.trailer_bytes > TRAILER_BYTES_MAX { Err(Refusal::TrailerTooLarge) } else { Ok(next) }
    }
}

const CHUNK_START: Framing = Framing::Size { size: 0, digits: 0 };

/// Sixteen hexadecimal digits are 64 bits: more would overflow, or be endless leading zeros.
const SIZE_DIGITS_MAX: u8 = 16;

/// Most bytes of chunk extensions in one body. Only attackers use them, to make a server read a lot (RFC 9112 section
/// 7.1.1 asks for a bound).
pub const EXTENSION_BYTES_MAX: usize = 1024;

/// Most bytes of trailer fields in one body.
pub const TRAILER_BYTES_MAX: usize = 8192;
