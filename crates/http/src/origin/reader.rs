//! Reads the responses on a connection to an origin, one after the other.

use super::head::{self, BodyEnd, ParsedHead};
use super::{BadResponse, RequestKind, ResponseHead, Trailers};
use crate::{BodyFraming, BodyReader, BodyStep, HeadScanner, Status};
use std::ops::Range;

/// Reads a response from the bytes of a connection, in any split.
///
/// Command: [`begin`](Self::begin). Input: [`read`](Self::read), [`handle_end`](Self::handle_end).
#[derive(Debug)]
pub struct ResponseReader {
    head_bytes_max: usize,
    asked: RequestKind,
    /// The beginning of a head.
    text: Vec<u8>,
    scanner: HeadScanner,
    /// Memory for the next head.
    spare: Vec<u8>,
    interim_heads: usize,
    state: State,
    body: BodyReader,
    is_silent: bool,
    persists: bool,
    idle_s: Option<u64>,
}

/// The next part of the input. Ranges refer to that input and are never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponsePart {
    /// All of the input was consumed.
    NeedMore,
    /// An interim head (1xx): another one follows.
    Interim(ResponseHead),
    /// The head.
    Head(ResponseHead),
    /// The head of a response that switches protocols. What follows in the input, and on the connection, is the other
    /// protocol's.
    Switch(ResponseHead),
    /// Bytes of the body.
    Body(Range<usize>),
    /// The fields behind the body, if it has any that may go on.
    Trailers(Trailers),
    /// The response is complete.
    End {
        /// Whether another request can be sent on the connection. Never if more bytes have come: the origin has not been
        /// asked for them.
        reusable: bool,
    },
}

/// What the end of the connection means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The body ended with it, as its head said, or the response was complete already.
    Complete,
    /// No byte of the response has come.
    Silent,
    /// The response is cut.
    Cut,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Head,
    Body,
    UntilClose,
    /// Nothing is expected.
    Over,
}

impl ResponseReader {
    /// Expects nothing yet. `head_bytes_max`: the longest head in bytes, its blank line included.
    pub fn new(head_bytes_max: usize) -> Self {
        Self {
            head_bytes_max,
            asked: RequestKind::Usual,
            text: Vec::new(),
            scanner: HeadScanner::new(),
            spare: Vec::new(),
            interim_heads: 0,
            state: State::Over,
            body: NO_BODY,
            is_silent: true,
            persists: false,
            idle_s: None,
        }
    }

    /// Whether no byte of the response has come.
    pub const fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// How long the origin says that it keeps an idle connection, in seconds.
    pub const fn idle_s(&self) -> Option<u64> {
        self.idle_s
    }

    /// The next response is expected. `buffer`: memory for its head.
    pub fn begin(&mut self, asked: RequestKind, buffer: Vec<u8>) {
        self.asked = asked;
        self.text.clear();
        self.scanner.reset();
        self.spare = buffer;
        self.interim_heads = 0;
        self.state = State::Head;
        self.is_silent = true;
    }

    /// Reads the next part of `input`, and returns how much of it is used up. The next call gets the rest.
    ///
    /// A part may need no input at all: call until [`ResponsePart::NeedMore`], [`ResponsePart::Switch`] or
    /// [`ResponsePart::End`].
    ///
    /// # Errors
    /// Why the response must not go on. The reader is unusable until it [begins](Self::begin) another one.
    pub fn read(&mut self, input: &[u8]) -> Result<(usize, ResponsePart), BadResponse> {
        self.is_silent &= input.is_empty();
        match self.state {
            State::Head => self.read_head(input),
            State::Body => self.read_body(input),
            State::UntilClose if input.is_empty() => Ok((0, ResponsePart::NeedMore)),
            State::UntilClose => Ok((input.len(), ResponsePart::Body(0..input.len()))),
            State::Over => Ok((0, ResponsePart::End { reusable: self.persists && input.is_empty() })),
        }
    }

    /// Bytes of the body that are still to come without anything between them, and without being looked at; 0 if there is
    /// more to know of them.
    pub fn plain_left(&self) -> u64 {
        if matches!(self.state, State::Body) { self.body.plain_left() } else { 0 }
    }

    /// So many bytes of [`plain_left`](Self::plain_left) went to the client another way.
    pub fn pass(&mut self, bytes: u64) {
        self.body.pass(bytes);
    }

    /// The connection has ended.
    pub fn handle_end(&mut self) -> StreamEnd {
        match std::mem::replace(&mut self.state, State::Over) {
            State::UntilClose | State::Over => StreamEnd::Complete,
            State::Head if self.is_silent => StreamEnd::Silent,
            State::Body if self.body.is_finished() => StreamEnd::Complete,
            State::Head | State::Body => StreamEnd::Cut,
        }
    }

    fn read_head(&mut self, input: &[u8]) -> Result<(usize, ResponsePart), BadResponse> {
        let known = self.text.len();
        let visible = &input[..input.len().min(self.head_bytes_max - known)];
        // A head that is there at once is read where it lies, by one walk. One that trickles in is read once its end is there, and
        // judged no sooner: how the bytes come changes no answer.
        let parsed = if known == 0 {
            head::check_beginning(visible)?;
            match head::parse(visible, self.asked, &mut self.spare) {
                Err(_) if self.scanner.find_end(visible).is_none() => None,
                judged => judged?,
            }
        } else {
            self.text.extend_from_slice(visible);
            head::check_beginning(&self.text)?;
            match self.scanner.find_end(&self.text) {
                Some(_) => head::parse(&self.text, self.asked, &mut self.spare)?,
                None => None,
            }
        };
        let Some((len, parsed)) = parsed else {
            if visible.len() < input.len() || known + visible.len() == self.head_bytes_max {
                let read = known + input.len();
                return Err(BadResponse::HeadTooLarge { limit: self.head_bytes_max, read });
            }
            if known == 0 {
                self.text.extend_from_slice(visible);
            }
            return Ok((input.len(), ResponsePart::NeedMore));
        };
        // A connection that rests keeps no memory for it.
        self.text = Vec::new();
        self.scanner.reset();
        Ok((len - known, self.take_head(parsed)?))
    }

    fn take_head(&mut self, parsed: ParsedHead) -> Result<ResponsePart, BadResponse> {
        let ParsedHead { head, body, persists, idle_s } = parsed;
        let is_interim = head.status() < Status::OK && body != BodyEnd::Switch;
        if is_interim {
            self.interim_heads += 1;
            if self.interim_heads > INTERIM_HEADS_MAX {
                return Err(BadResponse::InterimTooMany);
            }
            return Ok(ResponsePart::Interim(head));
        }
        (self.persists, self.idle_s) = (persists, idle_s);
        self.state = match body {
            BodyEnd::None | BodyEnd::Switch => State::Over,
            BodyEnd::Close => State::UntilClose,
            BodyEnd::Length(_) | BodyEnd::Chunked => State::Body,
        };
        self.body = match body {
            BodyEnd::Length(length) => BodyReader::keeping_trailers(BodyFraming::Length(length)),
            BodyEnd::Chunked => BodyReader::keeping_trailers(BodyFraming::Chunked),
            _ => NO_BODY,
        };
        Ok(if body == BodyEnd::Switch { ResponsePart::Switch(head) } else { ResponsePart::Head(head) })
    }

    fn read_body(&mut self, input: &[u8]) -> Result<(usize, ResponsePart), BadResponse> {
        match self.body.read(input).map_err(BadResponse::of_chunks)? {
            BodyStep::Data { consumed, data } => {
                Ok((consumed, ResponsePart::Body(consumed - data.len()..consumed)))
            }
            BodyStep::NeedMore { consumed } => Ok((consumed, ResponsePart::NeedMore)),
            BodyStep::End { consumed } => {
                self.state = State::Over;
                let trailers = Trailers::of_lines(self.body.take_trailers());
                if !trailers.is_empty() {
                    return Ok((consumed, ResponsePart::Trailers(trailers)));
                }
                let reusable = self.persists && consumed == input.len();
                Ok((consumed, ResponsePart::End { reusable }))
            }
        }
    }
}

/// Most interim heads in front of a response. Each may be as long as a head, and costs the client some bytes; servers
/// that report progress (102) do so every few seconds at most.
pub const INTERIM_HEADS_MAX: usize = 100;

const NO_BODY: BodyReader = BodyReader::new(BodyFraming::None);
