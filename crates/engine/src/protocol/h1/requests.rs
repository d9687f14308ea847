//! The receiving half: heads, bodies, and what is read past.
//!
//! What has arrived of a body is read before its request is taken: a malformed or too large one is refused in the place of
//! the answer. The [`BodySink`] says whether the request waits for the rest. If it does, the head stays in front of the
//! input. If it does not, the rest is read past behind the answer; the connection ends where that cannot be done.

use baton_http::{BodyFraming, BodyReader, BodyStep, Refusal, RequestHead};

use super::Http1;
use super::responses::Response;
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
    /// So many bytes at the front belong to the body of a request that was answered without them.
    Unwanted(usize),
    /// That body is malformed or too large: where the next request begins is unknown.
    Unusable,
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
    /// The head as it was sent.
    pub(crate) head_bytes: &'a [u8],
    /// Its bytes at the front of the input: what is to be dropped when it has been answered.
    pub(crate) len: usize,
    /// Whether the next request follows behind it.
    pub(crate) body: Body,
}

/// How far the body of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Read, or there is none.
    Passed,
    /// It begins behind the head: to be answered by [`Http1::read_body`], or by a response without it.
    Ahead {
        /// The client waits for `100 Continue` before it sends it.
        awaited: bool,
    },
    /// All that has arrived was read. The rest is read past behind the answer, or by the gateway.
    Begun,
    /// It turned out to be larger than the limit.
    TooLarge,
}

/// Where the contents of a body go.
pub(crate) trait BodySink {
    /// Takes some bytes of a body; `false`: there is no room for them.
    fn take(&mut self, data: &[u8]) -> bool;
    /// Whether the request can be taken now that all that has arrived was taken in, though more is to come.
    fn has_enough(&self) -> bool;
}

#[derive(Debug)]
pub(super) enum Phase {
    /// Before or in a head.
    Head,
    /// In the body behind a head of this length.
    Body { head_len: usize, rest: BodyRest },
    /// Behind a head of this length, in a body of which no more is wanted.
    TooLarge { head_len: usize },
    /// Behind what has arrived of a body: head and what is left of the body in the input have these lengths.
    Passed { head_len: usize, len: usize, rest: Option<BodyRest> },
    /// Behind a request that was answered before all of its body was read.
    Unwanted(BodyRest),
}

/// What is still to come of a body.
#[derive(Clone, Debug)]
pub(super) struct BodyRest {
    reader: BodyReader,
    /// Bytes of content that have come.
    passed: u64,
    bytes_max: u64,
}

impl BodyRest {
    fn new(framing: BodyFraming, bytes_max: u64) -> Self {
        Self { reader: BodyReader::new(framing), passed: 0, bytes_max }
    }

    fn read<'a>(&mut self, input: &'a [u8]) -> Result<BodyStep<'a>, Refusal> {
        let step = self.reader.read(input)?;
        if let BodyStep::Data { data, .. } = step {
            self.passed += data.len() as u64;
        }
        Ok(step)
    }

    /// Whether it is sure to become larger than the limit.
    fn is_too_large(&self) -> bool {
        self.passed.saturating_add(self.reader.announced()) > self.bytes_max
    }
}

impl Http1 {
    /// Whether the input ahead belongs to a body.
    pub(crate) fn is_in_body(&self) -> bool {
        matches!(self.phase, Phase::Body { .. })
    }

    /// Whether the input ahead belongs to a request that was answered.
    pub(crate) fn is_in_unwanted_body(&self) -> bool {
        matches!(self.phase, Phase::Unwanted(_))
    }

    /// Looks at the input, which begins where the last request that was answered ended. The contents of bodies go
    /// into `sink`.
    ///
    /// # Errors
    /// Nothing more can be taken: where the next request begins is unknown.
    pub(crate) fn next<'a>(
        &mut self,
        input: &'a [u8],
        limits: &Limits,
        sink: &mut impl BodySink,
    ) -> Result<Taken<'a>, Refusal> {
        let taken = self.take(input, limits, sink)?;
        if let Taken::Request(request) = &taken {
            self.response = Response::to(&request.head, request.body, self.requests, limits);
        }
        Ok(taken)
    }

    fn take<'a>(
        &mut self,
        input: &'a [u8],
        limits: &Limits,
        sink: &mut impl BodySink,
    ) -> Result<Taken<'a>, Refusal> {
        loop {
            match &mut self.phase {
                Phase::Head => {
                    let Some(head_len) = self.scanner.find_end(input) else {
                        limits.head.check_incomplete(input)?;
                        return Ok(Taken::Part { head_len: 0, passed: 0 });
                    };
                    self.scanner.reset();
                    let head = RequestHead::parse(&input[..head_len], &limits.head)?;
                    let body = match head.framing {
                        framing if framing.is_empty() => Body::Passed,
                        // A body that is there already waits for nothing (RFC 9110, section 10.1.1).
                        _ => Body::Ahead { awaited: head.expects_continue && input.len() == head_len },
                    };
                    return Ok(Taken::Request(Request {
                        head,
                        head_bytes: &input[..head_len],
                        len: head_len,
                        body,
                    }));
                }
                Phase::Body { head_len, rest } => {
                    let head_len = *head_len;
                    let mut at = head_len;
                    self.phase = loop {
                        let step = rest.read(&input[at..])?;
                        match step {
                            _ if rest.is_too_large() => break Phase::TooLarge { head_len },
                            BodyStep::Data { consumed, data } if sink.take(data) => at += consumed,
                            BodyStep::Data { .. } => break Phase::TooLarge { head_len },
                            BodyStep::NeedMore { consumed } if sink.has_enough() => {
                                let rest = Some(rest.clone());
                                break Phase::Passed { head_len, len: at + consumed, rest };
                            }
                            BodyStep::NeedMore { consumed } => {
                                return Ok(Taken::Part { head_len, passed: at + consumed - head_len });
                            }
                            BodyStep::End { consumed } => {
                                break Phase::Passed { head_len, len: at + consumed, rest: None };
                            }
                        }
                    };
                }
                Phase::Passed { head_len, len, rest } => {
                    let (head_bytes, len) = (&input[..*head_len], *len);
                    let body = if rest.is_none() { Body::Passed } else { Body::Begun };
                    let head = RequestHead::parse(head_bytes, &limits.head)?;
                    return Ok(Taken::Request(Request { head, head_bytes, len, body }));
                }
                Phase::Unwanted(rest) => {
                    let mut at = 0;
                    loop {
                        match rest.read(&input[at..]) {
                            Err(_) => return Ok(Taken::Unusable),
                            Ok(_) if rest.is_too_large() => return Ok(Taken::Unusable),
                            Ok(BodyStep::Data { consumed, .. }) => at += consumed,
                            Ok(BodyStep::NeedMore { consumed }) => return Ok(Taken::Unwanted(at + consumed)),
                            Ok(BodyStep::End { consumed }) => {
                                self.phase = Phase::Head;
                                return Ok(Taken::Unwanted(at + consumed));
                            }
                        }
                    }
                }
                Phase::TooLarge { head_len } => {
                    let head_bytes = &input[..*head_len];
                    let head = RequestHead::parse(head_bytes, &limits.head)?;
                    let len = head_bytes.len();
                    return Ok(Taken::Request(Request { head, head_bytes, len, body: Body::TooLarge }));
                }
            }
        }
    }

    /// The body behind this head is to be read, `bytes_max` of it at the most, before the request is taken again.
    pub(crate) fn read_body(&mut self, head_len: usize, framing: BodyFraming, bytes_max: u64) {
        let rest = BodyRest::new(framing, bytes_max);
        self.phase =
            if rest.is_too_large() { Phase::TooLarge { head_len } } else { Phase::Body { head_len, rest } };
    }

    /// What a client is sent that waits for leave to send the body that is to be read now (RFC 9110, section 10.1.1).
    pub(crate) fn leave_to_send(&self, body: Body) -> Option<&'static [u8]> {
        (self.is_in_body() && body == Body::Ahead { awaited: true }).then_some(CONTINUE)
    }

    /// So many bytes of the body of the request that was given away are ahead: they are read past, if they are few, or else
    /// the connection ends behind the answer (RFC 9112, section 9.3). `is_answered`: nothing else is taken in between.
    pub(crate) fn pass_unread(&mut self, left: u64, is_answered: bool) {
        if left > UNREAD_BYTES_MAX || !is_answered && left > 0 {
            self.close_behind();
        } else if left > 0 {
            self.phase = Phase::Unwanted(BodyRest::new(BodyFraming::Length(left), left));
        }
    }

    /// The request that was taken has been answered, and its bytes are dropped; what comes of its body is unwanted.
    pub(crate) fn handle_answered(&mut self) {
        self.requests += 1;
        self.phase = match std::mem::replace(&mut self.phase, Phase::Head) {
            Phase::Passed { rest: Some(rest), .. } => Phase::Unwanted(rest),
            _ => Phase::Head,
        };
    }

    /// The request that was taken is an application's, and its bytes are dropped; the gateway reads the rest of its body.
    pub(crate) fn handle_given_away(&mut self) {
        self.requests += 1;
        self.phase = Phase::Head;
    }

    /// The request that was given away is at the front of the input again, in another form.
    pub(crate) fn handle_given_back(&mut self) {
        self.requests -= 1;
    }
}

/// What of a body that was not read is worth reading past, instead of asking the client to connect again.
const UNREAD_BYTES_MAX: u64 = 256 * 1024;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::upload::Upload;

    impl BodySink for Vec<u8> {
        fn take(&mut self, data: &[u8]) -> bool {
            self.extend_from_slice(data);
            true
        }

        fn has_enough(&self) -> bool {
            false
        }
    }

    /// Gives a connection its input in pieces and keeps what it leaves, as a session does. Returns the request lines
    /// and bodies seen (`!` for one that is too large, `?` for one that cannot be read past), and what stopped it.
    fn feed(pieces: &[&[u8]], limits: &Limits) -> (Vec<String>, Option<Refusal>) {
        feed_to(Vec::new(), std::mem::take, pieces, limits)
    }

    /// The same where no request waits for its body.
    fn feed_unwanted(pieces: &[&[u8]], limits: &Limits) -> (Vec<String>, Option<Refusal>) {
        feed_to(None::<Box<Upload>>, |_| Vec::new(), pieces, limits)
    }

    fn feed_to<S: BodySink>(
        mut sink: S,
        take_kept: fn(&mut S) -> Vec<u8>,
        pieces: &[&[u8]],
        limits: &Limits,
    ) -> (Vec<String>, Option<Refusal>) {
        let mut connection = Http1::new();
        let (mut inbox, mut lines) = (Vec::new(), Vec::new());
        for piece in pieces {
            inbox.extend_from_slice(piece);
            loop {
                let taken = match connection.next(&inbox, limits, &mut sink) {
                    Ok(taken) => taken,
                    Err(refusal) => return (lines, Some(refusal)),
                };
                let request = match taken {
                    Taken::Request(request) => request,
                    Taken::Unwanted(len) => {
                        inbox.drain(..len);
                        if inbox.is_empty() {
                            break;
                        }
                        continue;
                    }
                    Taken::Unusable => {
                        lines.push("?".into());
                        return (lines, None);
                    }
                    Taken::Part { head_len, passed } => {
                        inbox.drain(head_len..head_len + passed);
                        break;
                    }
                };
                match request.body {
                    Body::Ahead { .. } => {
                        connection.read_body(request.len, request.head.framing, limits.body_bytes_max);
                        continue;
                    }
                    Body::TooLarge => {
                        lines.push("!".into());
                        return (lines, None);
                    }
                    Body::Passed | Body::Begun => {}
                }
                let line = String::from_utf8_lossy(request.head.line).into_owned();
                lines.push(line + &String::from_utf8_lossy(&take_kept(&mut sink)));
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
        let bodies = ["", "GET /no HTTP/1.1\r\nHost: a\r\n\r\n", "GET /", "", ""];
        let lines = ["GET /1", "POST /2", "PUT /3", "HEAD /4", "GET /5"];
        lines.iter().zip(bodies).map(|(line, body)| format!("{line} HTTP/1.1{body}")).collect()
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
    /// is gone already; its body is kept once.
    #[test]
    fn the_same_request_can_be_taken_twice() {
        let limits = Limits::default();
        let (mut connection, mut kept) = (Http1::new(), Vec::new());
        let head = b"PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n";
        connection.read_body(head.len(), BodyFraming::Length(6), 6);
        let begun = [&head[..], b"1234"].concat();
        let Ok(Taken::Part { head_len, passed }) = connection.next(&begun, &limits, &mut kept) else {
            panic!("no part")
        };
        assert_eq!((head_len, passed), (head.len(), 4));
        let rest = [&head[..], b"56GET /b"].concat();
        for _ in 0..2 {
            let Ok(Taken::Request(request)) = connection.next(&rest, &limits, &mut kept) else {
                panic!("no request")
            };
            assert_eq!(
                (request.head.path, request.len, request.body),
                (&b"/a"[..], head.len() + 2, Body::Passed)
            );
        }
        assert_eq!(kept, b"123456");
    }

    /// A sink that has enough as soon as it has something.
    struct Impatient(Vec<u8>);

    impl BodySink for Impatient {
        fn take(&mut self, data: &[u8]) -> bool {
            self.0.take(data)
        }

        fn has_enough(&self) -> bool {
            !self.0.is_empty()
        }
    }

    /// Who wants no more of a body than its beginning is given the request with all that has arrived; what is behind it,
    /// and what nobody reads of it, is never taken for a request.
    #[test]
    fn a_request_may_be_taken_when_its_body_has_begun() {
        let limits = Limits::default();
        let head = b"PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n";
        let (mut connection, mut kept) = (Http1::new(), Impatient(Vec::new()));
        connection.read_body(head.len(), BodyFraming::Length(20), 20);
        let begun = [&head[..], b"GET /"].concat();
        for _ in 0..2 {
            let Ok(Taken::Request(request)) = connection.next(&begun, &limits, &mut kept) else {
                panic!("no request")
            };
            assert_eq!((request.len, request.body), (begun.len(), Body::Begun));
        }
        assert_eq!(kept.0, b"GET /");
        connection.handle_given_away();
        connection.pass_unread(15, true);
        for (input, len) in [(&b"0123456789"[..], 10), (b"12345GET /b", 5)] {
            let Ok(Taken::Unwanted(unwanted)) = connection.next(input, &limits, &mut kept) else {
                panic!("it is not taken")
            };
            assert_eq!(unwanted, len);
        }
        assert!(!connection.is_in_unwanted_body());
        let mut whole = Http1::new();
        whole.read_body(head.len(), BodyFraming::Length(2), 2);
        let input = [&head[..], b"12"].concat();
        let Ok(Taken::Request(request)) = whole.next(&input, &limits, &mut kept) else {
            panic!("no request")
        };
        assert_eq!(request.body, Body::Passed, "what is complete has not just begun");
    }

    /// Goal: nothing of an unwanted body is waited for, or taken for a request. Method: every cut of the stream; the
    /// requests come out as soon as their heads are complete, whatever is missing of their bodies.
    #[test]
    fn an_unwanted_body_is_not_waited_for() {
        let lines: Vec<_> = ["GET /1", "POST /2", "PUT /3", "HEAD /4", "GET /5"]
            .map(|line| format!("{line} HTTP/1.1"))
            .into();
        for cut in 0..=STREAM.len() {
            let (all, stop) = feed_unwanted(&[&STREAM[..cut], &STREAM[cut..]], &Limits::default());
            assert_eq!((&all, stop), (&lines, None), "cut at {cut}");
            let (begun, _) = feed_unwanted(&[&STREAM[..cut]], &Limits::default());
            // Each head ends with an empty line; the one that stands in a body, and the last chunk, are no heads.
            let ends = STREAM[..cut].windows(4).filter(|four| four == b"\r\n\r\n").count();
            let heads = [0, 1, 2, 2, 3, 3, 4, 5][ends];
            assert_eq!(begun, lines[..heads], "cut at {cut}");
        }
    }

    /// What goes wrong in a body after the answer ends the connection; what went wrong before it is refused.
    #[test]
    fn an_unwanted_body_has_the_limits_of_any_other() {
        let limits = Limits { body_bytes_max: 10, ..Limits::default() };
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (body, last) in [
            (&b"8\r\n12345678\r\n3\r\n"[..], "!"),
            (b"fffffffff", "!"),
            (b"8\r\n12345678\r\n2\r\n12\r\n0\r\n\r\n", "POST / HTTP/1.1"),
        ] {
            let whole = [&head[..], body].concat();
            assert_eq!(feed_unwanted(&[&whole], &limits), (vec![last.to_owned()], None));
            let after = if last == "!" { vec!["POST / HTTP/1.1", "?"] } else { vec![last] };
            assert_eq!(feed_unwanted(&[head, body], &limits).0, after);
        }
        let whole = [&head[..], b"x"].concat();
        assert_eq!(feed_unwanted(&[&whole], &limits), (Vec::new(), Some(Refusal::ChunkSize)));
        assert_eq!(feed_unwanted(&[head, b"x"], &limits).0, ["POST / HTTP/1.1", "?"]);
    }

    /// A chunk's size that is too large is refused when its digits say so: nothing of the chunk is waited for.
    #[test]
    fn a_chunk_that_can_only_be_too_large_is_not_waited_for() {
        let limits = Limits { body_bytes_max: 0x100, ..Limits::default() };
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (body, too_large) in [
            ("101", true),
            ("101\r\n", true),
            ("ffffffffffffffff\r\n", true),
            ("ffffffffffffffff;x", true),
            ("100\r\n", false),
            ("000101", true),
            ("1\r\nx\r\n100", true),
            ("1\r\nx\r\nff\r\n", false),
        ] {
            let (lines, _) = feed(&[format!("{head}{body}").as_bytes()], &limits);
            assert_eq!(lines == ["!"], too_large, "{body:?}");
        }
    }

    #[test]
    fn a_request_is_not_taken_before_its_body() {
        let limits = Limits { body_bytes_max: 10, ..Limits::default() };
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let too_large = (vec!["!".to_owned()], None);
        for (body, expected) in [
            (&b"8\r\n12345678\r\n8\r\n12345678\r\n"[..], too_large.clone()),
            (b"8\r\n12345678\r\nx", (Vec::new(), Some(Refusal::ChunkSize))),
            (b"8\r\n12345678\r\n0\r\n", (Vec::new(), None)),
        ] {
            assert_eq!(feed(&[head, body], &limits), expected);
        }
        let declared = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n";
        assert_eq!(feed(&[declared], &limits), too_large);
    }

    /// What the client waits for is known when the head is complete, unless it does not wait.
    #[test]
    fn bodies_may_be_awaited() {
        let limits = Limits::default();
        let head = "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
        let taken = |input: &str| match Http1::new().next(input.as_bytes(), &limits, &mut Vec::new()) {
            Ok(Taken::Request(request)) => Some(request.body),
            _ => None,
        };
        assert_eq!(taken(head), Some(Body::Ahead { awaited: true }));
        assert_eq!(taken(&format!("{head}1")), Some(Body::Ahead { awaited: false }));
    }
}
