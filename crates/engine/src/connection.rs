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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives a connection its input in pieces and keeps what it leaves, as a session does. Returns the request lines
    /// seen, and what stopped it.
    fn feed(pieces: &[&[u8]], limits: &Limits) -> (Vec<String>, Option<Stop>) {
        let mut connection = Http1::new();
        let (mut inbox, mut lines) = (Vec::new(), Vec::new());
        for piece in pieces {
            inbox.extend_from_slice(piece);
            loop {
                let taken = match connection.next(&inbox, limits) {
                    Ok(taken) => taken,
                    Err(stop) => return (lines, Some(stop)),
                };
                let Some(head) = taken.request else {
                    inbox.drain(..taken.passed);
                    break;
                };
                lines.push(String::from_utf8_lossy(head.line).into_owned());
                let framing = head.framing;
                inbox.drain(..taken.passed + taken.head_len);
                connection.pass_body(framing);
            }
        }
        (lines, None)
    }

    const STREAM: &[u8] = b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n\
        POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 29\r\n\r\nGET /no HTTP/1.1\r\nHost: a\r\n\r\n\
        PUT /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nGET /\r\n0\r\nTrailer: x\r\n\r\n\
        HEAD /4 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n\
        GET /5 HTTP/1.1\r\nHost: a\r\n\r\n";

    fn expected() -> Vec<String> {
        ["GET /1", "POST /2", "PUT /3", "HEAD /4", "GET /5"].map(|line| format!("{line} HTTP/1.1")).into()
    }

    /// However the input is cut, the same requests come out, and no body is taken for one.
    #[test]
    fn requests_are_found_at_every_cut() {
        for cut in 0..=STREAM.len() {
            let (lines, stop) = feed(&[&STREAM[..cut], &STREAM[cut..]], &Limits::default());
            assert_eq!((lines, stop), (expected(), None), "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = STREAM.chunks(1).collect();
        assert_eq!(feed(&bytes, &Limits::default()), (expected(), None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn requests_are_found_however_they_are_cut(sizes in proptest::collection::vec(1_usize..60, 1..40)) {
            let (mut rest, mut pieces) = (STREAM, Vec::new());
            for size in sizes {
                let (piece, behind) = rest.split_at(size.min(rest.len()));
                pieces.push(piece);
                rest = behind;
            }
            pieces.push(rest);
            prop_assert_eq!(feed(&pieces, &Limits::default()), (expected(), None));
        }
    }

    /// A request may be asked for again until its answer is there (a job came between): the body of the one before
    /// it is not passed over a second time.
    #[test]
    fn the_same_request_can_be_taken_twice() {
        let limits = Limits::default();
        let mut connection = Http1::new();
        connection.pass_body(BodyFraming::Length(4));
        let input = b"bodyGET /next HTTP/1.1\r\nHost: a\r\n\r\n";
        let first = connection.next(input, &limits).unwrap();
        assert_eq!((first.passed, first.head_len), (4, input.len() - 4));
        let again = connection.next(&input[first.passed..], &limits).unwrap();
        assert_eq!((again.passed, again.head_len), (0, input.len() - 4));
        assert_eq!(again.request.unwrap().path, b"/next");
    }

    #[test]
    fn a_body_beyond_the_limit_stops_the_connection() {
        let limits = Limits { body_bytes_max: 10, ..Limits::default() };
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let (lines, stop) = feed(&[head, b"8\r\n12345678\r\n8\r\n12345678\r\n"], &limits);
        assert_eq!((lines.len(), stop), (1, Some(Stop::BodyTooLarge)));
    }
}
