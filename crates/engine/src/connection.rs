//! One HTTP/1 connection as a machine: bytes in, requests out. Touches no socket and no clock.
//!
//! Input: [`next`](Http1::next) is given what has arrived and not been consumed yet. Commands:
//! [`pass_body`](Http1::pass_body) after a request whose body is of no interest. The caller drops what was consumed
//! before it calls again.

use baton_http::{BodyFraming, BodyReader, BodyStep, HeadScanner, Refusal, RequestHead};

use crate::Limits;

/// What the input holds next.
#[derive(Debug)]
pub(crate) enum Incoming<'a> {
    /// A request; `consumed` bytes of input are its head.
    Request {
        /// The head.
        head: RequestHead<'a>,
        /// Its length.
        consumed: usize,
    },
    /// Nothing complete; `consumed` bytes of input are done with (of a body that is passed over).
    NeedMore {
        /// Bytes done with.
        consumed: usize,
    },
    /// Not HTTP as we speak it. The connection cannot go on: where the next request begins is unknown.
    Refused(Refusal),
    /// The body that is passed over is larger than the limit.
    BodyTooLarge,
}

/// The receiving half of one HTTP/1 connection.
#[derive(Debug)]
pub(crate) struct Http1 {
    phase: Phase,
    scanner: HeadScanner,
}

#[derive(Debug)]
enum Phase {
    /// Before or in a head.
    Head,
    /// In a body that nobody wants: it is read so that the next request is found behind it.
    Passing { body: BodyReader, passed: u64 },
}

impl Http1 {
    /// A connection before its first request.
    pub(crate) fn new() -> Self {
        Self { phase: Phase::Head, scanner: HeadScanner::new() }
    }

    /// Whether the input ahead belongs to a body.
    pub(crate) fn is_in_body(&self) -> bool {
        matches!(self.phase, Phase::Passing { .. })
    }

    /// Looks at the input from where the last consumed byte ended.
    pub(crate) fn next<'a>(&mut self, input: &'a [u8], limits: &Limits) -> Incoming<'a> {
        let mut at = 0;
        if let Phase::Passing { body, passed } = &mut self.phase {
            loop {
                match body.read(&input[at..]) {
                    Ok(BodyStep::Data { consumed, data }) => {
                        at += consumed;
                        *passed += data.len() as u64;
                        if *passed > limits.body_bytes_max {
                            return Incoming::BodyTooLarge;
                        }
                    }
                    Ok(BodyStep::NeedMore { consumed }) => {
                        return Incoming::NeedMore { consumed: at + consumed };
                    }
                    Ok(BodyStep::End { consumed }) => {
                        at += consumed;
                        break;
                    }
                    Err(refusal) => return Incoming::Refused(refusal),
                }
            }
            self.phase = Phase::Head;
            self.scanner.reset();
        }
        let input = &input[at..];
        let Some(end) = self.scanner.find_end(input) else {
            return match limits.head.check_incomplete(input) {
                Ok(()) => Incoming::NeedMore { consumed: at },
                Err(refusal) => Incoming::Refused(refusal),
            };
        };
        self.scanner.reset();
        match RequestHead::parse(&input[..end], &limits.head) {
            Ok(head) => Incoming::Request { head, consumed: at + end },
            Err(refusal) => Incoming::Refused(refusal),
        }
    }

    /// The body that follows the request just taken is to be read past.
    pub(crate) fn pass_body(&mut self, framing: BodyFraming) {
        if !matches!(framing, BodyFraming::None | BodyFraming::Length(0)) {
            self.phase = Phase::Passing { body: BodyReader::new(framing), passed: 0 };
        }
    }
}
