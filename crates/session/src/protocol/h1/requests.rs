//! The receiving half: heads, bodies, and bodies that are skipped.
//!
//! A request is taken when its head is complete. Its body is read on demand: to be kept
//! ([`Responder::expect_body`](super::Responder::expect_body), [`read_body`](Http1::read_body)), or, when the answer
//! does not depend on it, as far as it has arrived ([`ignore_body`](Http1::ignore_body)), so that a malformed or too
//! large one is refused in place of the answer. The rest of such a body is skipped after the answer; the connection
//! ends if that is impossible.

use baton_buf::Slice;
use baton_http::{Refusal, RequestHead};
use baton_site::limits::Limits;

use super::body::{BodyRead, BodyRest, BodySink, Nowhere, Pieces};
use super::connection::{Http1, InputState, Response};

/// What was found at the front of the input.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "taken apart where it is made; a box would be an allocation per request"
)]
pub(crate) enum NextRequest<'a> {
    /// A request, and the length of its head. Its body follows.
    Request(RequestHead<'a>, usize),
    /// The beginning of a head.
    Part,
    /// So many bytes at the front belong to the body of a request that was answered without them.
    Unwanted(usize),
    /// The body of an answered request is malformed or too large: where the next request begins is unknown.
    Unusable,
}

impl Http1 {
    /// Whether a body is being read that is to be kept.
    pub(crate) fn is_in_body(&self) -> bool {
        matches!(self.input_state, InputState::Body(_))
    }

    /// Whether the input ahead belongs to a request that was answered.
    pub(crate) fn is_in_unwanted_body(&self) -> bool {
        matches!(self.input_state, InputState::Unwanted(_))
    }

    /// Whether the protocol itself has to read on in the body of the request that was taken last.
    pub(crate) fn has_body_ahead(&self) -> bool {
        matches!(self.input_state, InputState::Ahead { .. } | InputState::Body(_) | InputState::Unwanted(_))
    }

    /// Parses the input behind the last request and its body.
    ///
    /// # Errors
    /// The input is no request: where the next request begins is unknown.
    pub(crate) fn next<'a>(&mut self, input: &'a [u8], limits: &Limits) -> Result<NextRequest<'a>, Refusal> {
        if let InputState::Unwanted(rest) = &mut self.input_state {
            return Ok(match rest.read(input, &mut Nowhere) {
                Err(_) | Ok((_, BodyRead::TooLarge)) => NextRequest::Unusable,
                Ok((len, BodyRead::Complete)) => {
                    self.input_state = InputState::Head;
                    NextRequest::Unwanted(len)
                }
                Ok((len, _)) => NextRequest::Unwanted(len),
            });
        }
        let Some(head_len) = self.scanner.find_end(input) else {
            limits.head.check_incomplete(input)?;
            return Ok(NextRequest::Part);
        };
        self.scanner.reset();
        let head = RequestHead::parse(&input[..head_len], &limits.head)?;
        if !head.framing.is_empty() {
            // A body that is there already waits for nothing (RFC 9110, section 10.1.1).
            let awaited = head.expects_continue && input.len() == head_len;
            self.input_state = InputState::Ahead { framing: head.framing, awaited };
        }
        self.response = Response::to(&head, self.requests, limits);
        self.requests += 1;
        Ok(NextRequest::Request(head, head_len))
    }

    /// Begins to read the body, at most `bytes_max` of it. Returns whether the client waits for `100 Continue`.
    pub(super) fn begin_body(&mut self, bytes_max: u64) -> bool {
        let InputState::Ahead { framing, awaited } = self.input_state else { return false };
        let rest = BodyRest::new(framing, bytes_max).awaited(awaited);
        let is_invited = awaited && !rest.is_too_large();
        self.input_state = InputState::Body(rest);
        is_invited
    }

    /// Continues to read the body that is kept. Returns how many bytes of the input were consumed.
    ///
    /// # Errors
    /// It is malformed: where the next request begins is unknown.
    pub(crate) fn read_body(
        &mut self,
        input: &[u8],
        sink: &mut impl BodySink,
    ) -> Result<(usize, BodyRead), Refusal> {
        let InputState::Body(rest) = &mut self.input_state else { return Ok((0, BodyRead::Complete)) };
        let (len, read) = rest.read(input, sink)?;
        match read {
            BodyRead::Complete => self.input_state = InputState::Head,
            BodyRead::Begun => self.input_state = InputState::Unwanted(rest.clone()),
            BodyRead::Part => {}
            BodyRead::TooLarge => self.close_behind(),
        }
        Ok((len, read))
    }

    /// Reads what has arrived of a body that the answer does not depend on; nothing is waited for. Returns how many
    /// bytes of the input were consumed.
    ///
    /// # Errors
    /// It is malformed: where the next request begins is unknown.
    pub(super) fn ignore_body(&mut self, input: &[u8], bytes_max: u64) -> Result<(usize, BodyRead), Refusal> {
        match self.input_state {
            // The final status tells the client that it need not send it.
            InputState::Ahead { framing, awaited: true }
                if !BodyRest::new(framing, bytes_max).is_too_large() =>
            {
                Ok((0, BodyRead::Begun))
            }
            InputState::Ahead { framing, .. } => {
                let mut rest = BodyRest::new(framing, bytes_max);
                let (len, read) = rest.read(input, &mut Nowhere)?;
                if read == BodyRead::TooLarge {
                    self.close_behind();
                }
                self.input_state =
                    if read == BodyRead::Complete { InputState::Head } else { InputState::Unwanted(rest) };
                Ok((len, read))
            }
            _ => Ok((0, BodyRead::Complete)),
        }
    }

    /// The gateway gets the rest of the body while it arrives.
    pub(crate) fn lend_body(&mut self) {
        self.input_state = match std::mem::replace(&mut self.input_state, InputState::Head) {
            InputState::Unwanted(rest) => InputState::Lent(rest),
            other => other,
        };
    }

    /// Whether the gateway is given the input.
    pub(crate) fn is_lent(&self) -> bool {
        matches!(self.input_state, InputState::Lent(_)) || self.is_tunnel()
    }

    /// Whether the input is another protocol's.
    pub(crate) fn is_tunnel(&self) -> bool {
        matches!(self.input_state, InputState::Tunnel)
    }

    /// How many bytes may be read for the gateway: what follows a body of known length is none of it.
    pub(crate) fn lent_bytes_max(&self) -> u64 {
        match &self.input_state {
            InputState::Lent(rest) => rest.left().unwrap_or(u64::MAX),
            _ => u64::MAX,
        }
    }

    /// Reads on in what the gateway is given. Returns how many bytes of the input were consumed, and their contents.
    ///
    /// # Errors
    /// It is malformed.
    pub(crate) fn read_lent(&mut self, input: &Slice) -> Result<(usize, Slice, BodyRead), Refusal> {
        let InputState::Lent(rest) = &mut self.input_state else {
            return Ok((input.len(), input.clone(), BodyRead::Part));
        };
        let (taken, contents, read) = if rest.left().is_some() {
            let (taken, read) = rest.read(input, &mut Nowhere)?;
            let mut contents = input.clone();
            contents.split_off(taken);
            (taken, contents, read)
        } else {
            let mut pieces = Pieces::default();
            let (taken, read) = rest.read(input, &mut pieces)?;
            (taken, Slice::from(pieces.0), read)
        };
        if read == BodyRead::Complete {
            self.end_lent();
        }
        Ok((taken, contents, read))
    }

    /// Nothing more comes that the gateway is to be given.
    pub(crate) fn end_lent(&mut self) {
        self.input_state = InputState::Head;
    }

    /// The gateway takes no more. If the rest is short, it is skipped; else the connection ends after the answer (RFC
    /// 9112, section 9.3). Returns whether there is a rest.
    pub(crate) fn take_back_body(&mut self) -> bool {
        if !self.is_lent() {
            return false;
        }
        match std::mem::replace(&mut self.input_state, InputState::Head) {
            InputState::Lent(rest)
                if !rest.may_be_kept_back() && rest.left().is_some_and(|left| left <= UNREAD_BYTES_MAX) =>
            {
                self.input_state = InputState::Unwanted(rest);
            }
            _ => self.close_behind(),
        }
        true
    }
}

/// Bytes of an unread body that are skipped: closing would cost the client a new connection.
const UNREAD_BYTES_MAX: u64 = 256 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        feed_to(true, pieces, limits)
    }

    /// Feeds input, as [`feed`] does, where no request waits for its body.
    fn feed_unwanted(pieces: &[&[u8]], limits: &Limits) -> (Vec<String>, Option<Refusal>) {
        feed_to(false, pieces, limits)
    }

    fn feed_to(is_wanted: bool, pieces: &[&[u8]], limits: &Limits) -> (Vec<String>, Option<Refusal>) {
        let mut connection = Http1::new();
        let (mut inbox, mut lines, mut line) = (Vec::new(), Vec::new(), String::new());
        let mut kept = Vec::new();
        for piece in pieces {
            inbox.extend_from_slice(piece);
            loop {
                let outcome = if connection.is_in_body() {
                    connection.read_body(&inbox, &mut kept).map(|(len, read)| (len, Some(read)))
                } else {
                    match connection.next(&inbox, limits) {
                        Err(refusal) => Err(refusal),
                        Ok(NextRequest::Part) => break,
                        Ok(NextRequest::Unwanted(len)) => Ok((len, None)),
                        Ok(NextRequest::Unusable) => {
                            lines.push("?".into());
                            return (lines, None);
                        }
                        Ok(NextRequest::Request(head, head_len)) => {
                            line = String::from_utf8_lossy(head.line).into_owned();
                            if is_wanted && connection.has_body_ahead() {
                                connection.begin_body(limits.body_bytes_max);
                                Ok((head_len, None))
                            } else {
                                let ignored =
                                    connection.ignore_body(&inbox[head_len..], limits.body_bytes_max);
                                ignored.map(|(len, read)| (head_len + len, Some(read)))
                            }
                        }
                    }
                };
                let (len, read) = match outcome {
                    Ok(outcome) => outcome,
                    Err(refusal) => return (lines, Some(refusal)),
                };
                inbox.drain(..len);
                match read {
                    Some(BodyRead::TooLarge) => {
                        lines.push("!".into());
                        return (lines, None);
                    }
                    Some(BodyRead::Part) => break,
                    Some(BodyRead::Complete | BodyRead::Begun) => {
                        let body = std::mem::take(&mut kept);
                        lines.push(format!("{line}{}", String::from_utf8_lossy(&body)));
                    }
                    None if inbox.is_empty() && !connection.is_in_body() => break,
                    None => {}
                }
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

    /// A sink that needs only the beginning of a body gets the request with all that has arrived. The input behind it,
    /// and what the application leaves of the body, is never taken for a request.
    #[test]
    fn a_request_may_be_taken_when_its_body_has_begun() {
        let limits = Limits::default();
        let head = b"PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n";
        let (mut connection, mut kept) = (Http1::new(), Impatient(Vec::new()));
        assert!(matches!(connection.next(head, &limits), Ok(NextRequest::Request(..))));
        connection.begin_body(20);
        assert_eq!(connection.read_body(b"GET /", &mut kept), Ok((5, BodyRead::Begun)));
        assert_eq!(kept.0, b"GET /");
        connection.lend_body();
        assert!(connection.take_back_body());
        for (input, len) in [(&b"0123456789"[..], 10), (b"12345GET /b", 5)] {
            let Ok(NextRequest::Unwanted(unwanted)) = connection.next(input, &limits) else {
                panic!("it is not taken")
            };
            assert_eq!(unwanted, len);
        }
        assert!(!connection.has_body_ahead());
        assert!(matches!(connection.next(head, &limits), Ok(NextRequest::Request(..))));
        connection.begin_body(20);
        let whole = [b'x'; 21];
        let read = connection.read_body(&whole, &mut kept);
        assert_eq!(read, Ok((20, BodyRead::Complete)), "what is complete has not just begun");
    }

    /// Goal: nothing of an unwanted body is waited for, or taken for a request. Method: every cut of the stream; the
    /// requests come out as soon as their heads are complete, even if their bodies are not.
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
        let is_invited = |input: &str, bytes_max| {
            let mut connection = Http1::new();
            assert!(matches!(connection.next(input.as_bytes(), &limits), Ok(NextRequest::Request(..))));
            connection.begin_body(bytes_max)
        };
        assert!(is_invited(head, 3));
        assert!(!is_invited(&format!("{head}1"), 3));
        assert!(!is_invited(head, 2), "what is too large need not be sent");
    }
}
