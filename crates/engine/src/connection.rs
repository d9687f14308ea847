//! One HTTP/1 connection as a machine: bytes in, requests out. Touches no socket and no clock.
//!
//! Input: [`next`](Http1::next) is given what has arrived and is not done with. Commands:
//! [`pass_body`](Http1::pass_body) after a request whose body is of no interest. The caller drops what was passed
//! over before it calls again, and the head with it once it has answered; until then it may ask for the same request
//! again.

use baton_http::{BodyFraming, BodyReader, BodyStep, HeadScanner, Refusal, RequestHead};

use crate::Limits;

/// What was taken from the front of the input.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    /// Bytes in front that were passed over: done with.
    pub(crate) passed: usize,
    /// The request behind them; `None`: it is not complete yet.
    pub(crate) request: Option<RequestHead<'a>>,
    /// Length of its head.
    pub(crate) head_len: usize,
}

impl Taken<'_> {
    fn nothing(passed: usize) -> Self {
        Self { passed, request: None, head_len: 0 }
    }
}

/// Why nothing more can be taken: where the next request begins is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Not HTTP as we speak it.
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
    pub(crate) fn next<'a>(&mut self, input: &'a [u8], limits: &Limits) -> Result<Taken<'a>, Stop> {
        let mut at = 0;
        if let Phase::Passing { body, passed } = &mut self.phase {
            loop {
                match body.read(&input[at..]) {
                    Ok(BodyStep::Data { consumed, data }) => {
                        at += consumed;
                        *passed += data.len() as u64;
                        if *passed > limits.body_bytes_max {
                            return Err(Stop::BodyTooLarge);
                        }
                    }
                    Ok(BodyStep::NeedMore { consumed }) => {
                        return Ok(Taken::nothing(at + consumed));
                    }
                    Ok(BodyStep::End { consumed }) => {
                        at += consumed;
                        break;
                    }
                    Err(refusal) => return Err(Stop::Refused(refusal)),
                }
            }
            self.phase = Phase::Head;
            self.scanner.reset();
        }
        let input = &input[at..];
        let Some(end) = self.scanner.find_end(input) else {
            limits.head.check_incomplete(input).map_err(Stop::Refused)?;
            return Ok(Taken::nothing(at));
        };
        self.scanner.reset();
        let head = RequestHead::parse(&input[..end], &limits.head).map_err(Stop::Refused)?;
        Ok(Taken { passed: at, request: Some(head), head_len: end })
    }

    /// The body that follows the request just taken is to be read past.
    pub(crate) fn pass_body(&mut self, framing: BodyFraming) {
        if !matches!(framing, BodyFraming::None | BodyFraming::Length(0)) {
            self.phase = Phase::Passing { body: BodyReader::new(framing), passed: 0 };
        }
    }
}
