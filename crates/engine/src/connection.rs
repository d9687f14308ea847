//! One HTTP/1 connection as a machine: bytes in, requests out. Touches no socket and no clock.
//!
//! Input: [`next`](Http1::next) is given what has arrived and is not done with. Commands:
//! [`read_body`](Http1::read_body) for a client that waits to be told so, [`handle_answered`](Http1::handle_answered)
//! when a request is done with.
//!
//! Nobody wants the bodies of requests, but a request is answered only when its body has been read past: one that is
//! malformed, too large or late is refused in the place of the answer, and what follows an answer is the next
//! request. Of a request whose body arrives in pieces, the head stays in front of the input.

use baton_http::{BodyFraming, BodyReader, BodyStep, HeadScanner, Refusal, RequestHead};

use crate::Limits;

/// What was found at the front of the input.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "taken apart where it is made; a box would be an allocation per request"
)]
pub(crate) enum Taken<'a> {
    /// A request. Until it is answered, it may be asked for again.
    Request(Request<'a>),
    /// A part of one: `input[head_len..][..passed]` is done with; what is around it stays, and more is needed.
    Part {
        /// Length of the head, if that is complete.
        head_len: usize,
        /// Bytes of the body that were read past.
        passed: usize,
    },
}

/// A request whose turn has come.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) head: RequestHead<'a>,
    /// Its bytes at the front of the input: what is to be dropped when it has been answered.
    pub(crate) len: usize,
    /// Whether the next request follows behind it.
    pub(crate) body: Body,
}

/// How far the body of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Read past, or there is none.
    Passed,
    /// The client waits for `100 Continue` before it sends the body.
    Awaited,
    /// It would be larger than the limit.
    TooLarge,
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
    /// In the body behind a head of this length.
    Body { head_len: usize, reader: BodyReader, passed: u64 },
    /// Behind a body: head and what is left of the body have these lengths.
    Passed { head_len: usize, len: usize },
}

impl Http1 {
    /// A connection before its first request.
    pub(crate) fn new() -> Self {
        Self { phase: Phase::Head, scanner: HeadScanner::new() }
    }

    /// Whether the input ahead belongs to a body.
    pub(crate) fn is_in_body(&self) -> bool {
        matches!(self.phase, Phase::Body { .. })
    }

    /// Looks at the input, which begins where the last request that was answered ended.
    pub(crate) fn next<'a>(&mut self, input: &'a [u8], limits: &Limits) -> Result<Taken<'a>, Stop> {
        loop {
            match &mut self.phase {
                Phase::Head => {
                    let Some(head_len) = self.scanner.find_end(input) else {
                        limits.head.check_incomplete(input).map_err(Stop::Refused)?;
                        return Ok(Taken::Part { head_len: 0, passed: 0 });
                    };
                    self.scanner.reset();
                    let head = parse(&input[..head_len], limits)?;
                    let body = match head.framing {
                        framing if framing.is_empty() => Body::Passed,
                        BodyFraming::Length(length) if length > limits.body_bytes_max => Body::TooLarge,
                        // A body that is there already waits for nothing (RFC 9110, section 10.1.1).
                        _ if head.expects_continue && input.len() == head_len => Body::Awaited,
                        framing => {
                            self.read_body(head_len, framing);
                            continue;
                        }
                    };
                    return Ok(Taken::Request(Request { head, len: head_len, body }));
                }
                Phase::Body { head_len, reader, passed } => {
                    let head_len = *head_len;
                    let mut at = head_len;
                    loop {
                        match reader.read(&input[at..]).map_err(Stop::Refused)? {
                            BodyStep::Data { consumed, data } => {
                                at += consumed;
                                *passed += data.len() as u64;
                                if *passed > limits.body_bytes_max {
                                    return Err(Stop::BodyTooLarge);
                                }
                            }
                            BodyStep::NeedMore { consumed } => {
                                return Ok(Taken::Part { head_len, passed: at + consumed - head_len });
                            }
                            BodyStep::End { consumed } => {
                                at += consumed;
                                break;
                            }
                        }
                    }
                    self.phase = Phase::Passed { head_len, len: at };
                }
                Phase::Passed { head_len, len } => {
                    let (head, len) = (parse(&input[..*head_len], limits)?, *len);
                    return Ok(Taken::Request(Request { head, len, body: Body::Passed }));
                }
            }
        }
    }

    /// The body behind this head is to be read past, before the request is taken again.
    pub(crate) fn read_body(&mut self, head_len: usize, framing: BodyFraming) {
        self.phase = Phase::Body { head_len, reader: BodyReader::new(framing), passed: 0 };
    }

    /// The request that was taken has been answered, and its bytes are dropped.
    pub(crate) fn handle_answered(&mut self) {
        self.phase = Phase::Head;
    }
}

fn parse<'a>(head: &'a [u8], limits: &Limits) -> Result<RequestHead<'a>, Stop> {
    RequestHead::parse(head, &limits.head).map_err(Stop::Refused)
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
                let request = match taken {
                    Taken::Request(request) => request,
                    Taken::Part { head_len, passed } => {
                        inbox.drain(head_len..head_len + passed);
                        break;
                    }
                };
                lines.push(String::from_utf8_lossy(request.head.line).into_owned());
                let len = request.len;
                inbox.drain(..len);
                connection.handle_answered();
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

    /// A request may be asked for again until its answer is there (a job came between), also when a part of its body
    /// is gone already.
    #[test]
    fn the_same_request_can_be_taken_twice() {
        let limits = Limits::default();
        let mut connection = Http1::new();
        let head = b"PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n";
        let begun = [&head[..], b"1234"].concat();
        let Ok(Taken::Part { head_len, passed }) = connection.next(&begun, &limits) else {
            panic!("no part")
        };
        assert_eq!((head_len, passed), (head.len(), 4));
        let rest = [&head[..], b"56GET /b"].concat();
        for _ in 0..2 {
            let Ok(Taken::Request(request)) = connection.next(&rest, &limits) else { panic!("no request") };
            assert_eq!(
                (request.head.path, request.len, request.body),
                (&b"/a"[..], head.len() + 2, Body::Passed)
            );
        }
    }

    #[test]
    fn a_request_is_not_taken_before_its_body() {
        let limits = Limits { body_bytes_max: 10, ..Limits::default() };
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (body, stop) in [
            (&b"8\r\n12345678\r\n8\r\n12345678\r\n"[..], Some(Stop::BodyTooLarge)),
            (b"8\r\n12345678\r\nx", Some(Stop::Refused(Refusal::ChunkSize))),
            (b"8\r\n12345678\r\n0\r\n", None),
        ] {
            assert_eq!(feed(&[head, body], &limits), (Vec::new(), stop));
        }
    }

    /// What the client waits for is known when the head is complete, unless it does not wait.
    #[test]
    fn bodies_may_be_awaited_or_too_large() {
        let limits = Limits { body_bytes_max: 10, ..Limits::default() };
        let head = |length: u32| {
            format!("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n")
        };
        let taken = |input: &str| match Http1::new().next(input.as_bytes(), &limits) {
            Ok(Taken::Request(request)) => Some(request.body),
            _ => None,
        };
        assert_eq!(taken(&head(3)), Some(Body::Awaited));
        assert_eq!(taken(&(head(3) + "1")), None);
        assert_eq!(taken(&(head(3) + "123")), Some(Body::Passed));
        assert_eq!(taken(&head(11)), Some(Body::TooLarge));
    }
}
