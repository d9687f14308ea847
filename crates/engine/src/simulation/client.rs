//! A client in the simulation. It sends its requests in pieces, makes room for the answers, leaves when the seed says
//! so, and compares every answer with the model.

use super::choices::Choices;
use super::link::Link;
use super::log::Line;
use super::request::{Content, Expected, Persistence, Request};
use super::response::Response;
use super::site::fixed_body;
use crate::transport::memory::Left;

/// One client, from its connection to its end.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) end: Box<dyn Link>,
    pub(crate) requests: Vec<Request>,
    /// Where each request ends in the stream that the client sends.
    ends: Vec<usize>,
    /// Bytes that were sent of it.
    sent: usize,
    habits: Habits,
    /// Times in a row that it had nothing to send.
    idle_times: u32,
    has_left: bool,
    /// The output of the server that belongs to no complete response.
    unread: Vec<u8>,
    pub(crate) responses: Vec<Response>,
    /// Bytes of output, and when they were that many, oldest first.
    progress: Vec<(u64, usize)>,
    /// When the server last read or wrote.
    pub(crate) moved_ms: u64,
    /// When the first byte of the request was read that is being read.
    head_begun_ms: u64,
    bytes_read: usize,
    /// The same, before the response that is arriving began.
    read_before_response: usize,
}

/// The state of the worker when a client acts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now_ms: u64,
    pub(crate) unix_seconds: u64,
    /// Of the plan.
    pub(crate) version: u32,
    pub(crate) is_draining: bool,
    pub(crate) requests_max: usize,
}

/// What a client is like.
#[derive(Debug)]
struct Habits {
    /// Requests that it sends before it has the answers.
    pipelined: usize,
    piece_bytes_max: usize,
    room_bytes_max: usize,
    pause_ms_max: u64,
    /// How it leaves, and after how many bytes of its own.
    leaving: Option<(Leaving, usize)>,
    /// How it leaves when all is answered. `None`: it waits for the server to end the connection.
    parting: Option<Leaving>,
}

/// How a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    HalfClose,
    Close,
    Reset,
    /// It sends and takes nothing more, but keeps the connection.
    Silence,
}

impl Client {
    pub(crate) fn new(
        end: Box<dyn Link>,
        requests: Vec<Request>,
        now_ms: u64,
        choices: &mut Choices,
    ) -> Self {
        let ends: Vec<usize> = requests
            .iter()
            .scan(0, |end, request| {
                *end += request.bytes.len();
                Some(*end)
            })
            .collect();
        let total = ends.last().copied().unwrap_or(0);
        let leaving =
            choices.chance(30).then(|| (choices.one(&LEAVINGS), choices.number(0..total.max(1) + 1)));
        let is_quick = choices.chance(60);
        let habits = Habits {
            pipelined: choices.one(&[1, 1, 2, 16]),
            piece_bytes_max: choices.one(&[1_000_000, 1_000_000, 2_000, 100]),
            room_bytes_max: choices.one(&[1_000_000, 200_000, 20_000]),
            pause_ms_max: if is_quick { 5 } else { choices.one(&[50, 1_000]) },
            leaving,
            parting: choices.chance(70).then(|| choices.one(&LEAVINGS)),
        };
        Self {
            end,
            requests,
            ends,
            sent: 0,
            habits,
            idle_times: 0,
            has_left: false,
            unread: Vec::new(),
            responses: Vec::new(),
            progress: vec![(now_ms, 0)],
            moved_ms: now_ms,
            head_begun_ms: now_ms,
            bytes_read: 0,
            read_before_response: 0,
        }
    }

    /// Acts once. Returns the milliseconds until it acts again; `None`: never.
    pub(crate) fn act(&mut self, choices: &mut Choices) -> Option<u64> {
        if self.has_left || self.end.is_closed_by_server() {
            return None;
        }
        let limit = self.habits.leaving.map_or(usize::MAX, |(_, at)| at);
        let allowed = self.responses.len() + self.habits.pipelined;
        let may_send =
            self.ends.get(allowed.min(self.ends.len()).wrapping_sub(1)).map_or(0, |&end| end.min(limit));
        if self.sent < may_send {
            let len = choices.size(self.habits.piece_bytes_max).min(may_send - self.sent);
            let piece = self.stream(self.sent..self.sent + len);
            let sent = self.end.send(&piece);
            self.sent += sent;
            self.idle_times = if sent > 0 { 0 } else { self.idle_times };
        } else if let Some((leaving, _)) = self.habits.leaving.filter(|(_, at)| self.sent >= *at) {
            return self.leave(leaving);
        } else if self.responses.len() == self.requests.len() {
            return self.habits.parting.and_then(|parting| self.leave(parting));
        }
        if choices.chance(70) {
            self.end.make_room(choices.size(self.habits.room_bytes_max));
        }
        // A client that only waits acts less and less often.
        self.idle_times += 1;
        Some(choices.ms(0..self.habits.pause_ms_max) << self.idle_times.min(8))
    }

    fn leave(&mut self, leaving: Leaving) -> Option<u64> {
        self.has_left = true;
        match leaving {
            // What is on its way is still taken.
            Leaving::HalfClose => {
                self.end.end_input();
                self.end.make_room(usize::MAX / 2);
            }
            Leaving::Close => self.end.close(),
            Leaving::Reset => self.end.reset(),
            Leaving::Silence => {}
        }
        None
    }

    fn stream(&self, range: std::ops::Range<usize>) -> Vec<u8> {
        let mut start = 0;
        let mut bytes = Vec::with_capacity(range.len());
        for request in &self.requests {
            let from = range.start.clamp(start, start + request.bytes.len()) - start;
            let to = range.end.clamp(start, start + request.bytes.len()) - start;
            bytes.extend_from_slice(&request.bytes[from..to]);
            start += request.bytes.len();
        }
        bytes
    }

    /// Takes what the server has written, and checks the complete responses in it.
    pub(crate) fn observe(&mut self, moment: Moment) {
        let now_ms = moment.now_ms;
        let output = self.end.take_output();
        let total = self.progress.last().map_or(0, |(_, total)| *total);
        if !output.is_empty() {
            self.progress.push((now_ms, total + output.len()));
            self.moved_ms = now_ms;
        }
        if self.unread.is_empty() && !output.is_empty() {
            self.read_before_response = self.bytes_read;
        }
        let bytes_read = self.end.bytes_read();
        if bytes_read != self.bytes_read {
            self.moved_ms = now_ms;
            if self.request_at(bytes_read) != self.request_at(self.bytes_read) || self.bytes_read == 0 {
                self.head_begun_ms = now_ms;
            }
            self.bytes_read = bytes_read;
        }
        self.unread.extend_from_slice(&output);
        while let Some(response) = self.next_response() {
            self.unread.drain(..response.len);
            if response.status >= 200 {
                let number = self.responses.len();
                self.requests[number].expected.check(number, &response, moment);
                self.responses.push(response);
            } else {
                assert_eq!(response.status, 100, "the only response in front of the final one");
            }
        }
    }

    fn next_response(&self) -> Option<Response> {
        if self.unread.is_empty() {
            return None;
        }
        let number = self.responses.len();
        let request = self.requests.get(number).unwrap_or_else(|| panic!("{number} answers are too many"));
        assert!(
            self.responses.last().is_none_or(Response::keeps_connection),
            "something comes behind the last answer"
        );
        let mut response = Response::read(&self.unread, self.is_known_head(number, request))?;
        let has_left = self.end.is_in_memory() && self.end.server_left() == Left::InOrder;
        response.is_complete |= response.ends_with_connection && has_left;
        response.is_complete.then_some(response)
    }

    /// The response that has begun and is not complete.
    pub(crate) fn partial(&self) -> Option<Response> {
        let number = self.responses.len();
        let request = self.requests.get(number)?;
        Response::read(&self.unread, self.is_known_head(number, request))
    }

    /// Whether a request is a `HEAD`, and the server knew when it answered. It may have given up before that.
    fn is_known_head(&self, number: usize, request: &Request) -> bool {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        let has_given_up = self.unread.starts_with(b"HTTP/1.1 408 ");
        request.expected.is_head && (!has_given_up || self.read_before_response >= start + "HEAD ".len())
    }

    /// Whether an application may answer this request on the client's own socket. The log says what it reports then.
    fn may_be_passed(&self, number: usize) -> bool {
        !self.end.is_in_memory() && self.requests[number].expected.is_applications
    }

    /// Whether the server has written something of a response that is not complete.
    pub(crate) fn has_partial(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Bytes of output that the connection took from `since_ms` on.
    pub(crate) fn taken_since(&self, since_ms: u64) -> usize {
        let at = self.progress.partition_point(|(ms, _)| *ms < since_ms);
        let before = self.progress[..at].last().map_or(0, |(_, total)| *total);
        self.progress.last().map_or(0, |(_, total)| *total) - before
    }

    /// Which request the byte in front of `read` belongs to.
    fn request_at(&self, read: usize) -> usize {
        self.ends.partition_point(|&end| end < read)
    }

    /// Whether the server has read some of this request.
    pub(crate) fn was_begun(&self, number: usize) -> bool {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        self.bytes_read > start
    }

    /// Since when the server has read only a part of a head, if that is all it has read of unanswered requests.
    pub(crate) fn is_in_head(&self) -> Option<u64> {
        let number = self.responses.len();
        let start = if number == 0 { 0 } else { *self.ends.get(number - 1)? };
        let head = start..start + self.requests.get(number)?.head_len;
        let is_in_head = head.start < self.bytes_read && self.bytes_read < head.end;
        (is_in_head && self.is_open()).then_some(self.head_begun_ms)
    }

    /// Whether there is a request that is not answered, though the server has read all of it.
    pub(crate) fn awaits_answer(&self) -> bool {
        self.is_open() && self.ends.get(self.responses.len()).is_some_and(|&end| self.bytes_read >= end)
    }

    /// When the output last moved.
    pub(crate) fn output_moved_ms(&self) -> u64 {
        self.progress.last().map_or(0, |(ms, _)| *ms)
    }

    fn is_open(&self) -> bool {
        self.goes_on() && self.end.server_left() == Left::Not
    }

    /// Whether what comes behind the answers that are there is to be answered, too.
    fn goes_on(&self) -> bool {
        let is_open = |request: &Request| request.expected.persistence == Persistence::Open;
        let is_spoiled = self.requests[..self.responses.len()].iter().any(is_open);
        self.responses.last().is_none_or(Response::keeps_connection) && !is_spoiled
    }
}

impl Client {
    /// Compares the log with what the client got: one line for each request that has begun, in order.
    pub(crate) fn check_log(&self, who: usize, lines: &[&Line]) {
        let complete = self.responses.len();
        for (number, line) in lines.iter().enumerate() {
            let what = || format!("client {who}, request {number}: {line:?}");
            let request = self.requests.get(number).unwrap_or_else(|| panic!("{}: never sent", what()));
            assert!(self.was_begun(number), "{}: never read", what());
            assert!(request.line.starts_with(&line.request), "{}: {} was asked", what(), request.line);
            let is_failure = line.outcome == "application-failed" && line.status != 503;
            let may_fail = request.expected.may_fail || self.may_be_passed(number);
            assert!(!is_failure || may_fail, "{}: why?", what());
            if let Some(response) = self.responses.get(number) {
                let is_whole = line.request == request.line;
                assert!(is_whole || response.status == 408, "{}: {} was asked", what(), request.line);
                if self.may_be_passed(number) {
                    request.expected.check_report(line, response);
                    continue;
                }
                assert_eq!(line.status, response.status, "{}: answered", what());
                if self.end.is_sealed() && CUT.contains(&&*line.outcome) {
                    // The client has all but the record that says so.
                    continue;
                }
                assert_eq!(line.body_bytes, response.body_bytes, "{}: answered", what());
                let outcome = request.expected.outcome(response.status);
                // The client can have all of an answer whose application has not said yet that this was all.
                let is_open = request.expected.is_applications && CUT.contains(&&*line.outcome);
                assert!(is_open || line.outcome == outcome, "{}: {outcome}", what());
            } else {
                let partial = (number == complete).then(|| self.partial()).flatten();
                if !self.end.is_in_memory() && partial.is_some_and(|partial| partial.ends_with_connection) {
                    // Whether it is all of it, only the kind of the connection's end tells.
                    continue;
                }
                assert!(CUT.contains(&&*line.outcome), "{}: not answered", what());
                if self.may_be_passed(number) {
                    continue;
                }
                let sent = (number == complete).then(|| self.partial()).flatten();
                let status = sent.as_ref().map_or(line.status, |partial| partial.status);
                assert_eq!(line.status, status, "{}: cut", what());
                if self.end.is_sealed() {
                    continue;
                }
                assert_eq!(line.body_bytes, sent.map_or(0, |partial| partial.body_bytes), "{}: cut", what());
            }
        }
        assert!(lines.len() >= complete, "client {who}: {complete} answers, but {} lines", lines.len());
        assert!(
            lines.len() > complete || !self.has_partial(),
            "client {who}: a part of an answer has no line"
        );
        let is_cut = lines.last().is_some_and(|line| CUT.contains(&&*line.outcome));
        // A request behind a handshake that comes to nothing has been read, but not opened.
        let is_unopened = self.end.is_sealed() && lines.is_empty();
        if lines.len() == complete && self.goes_on() && !is_cut && !is_unopened {
            assert!(!self.was_begun(complete), "client {who}: request {complete} has vanished");
        }
    }
}

impl Expected {
    /// What the log says of a complete answer with this status.
    fn outcome(&self, status: u16) -> &'static str {
        let is_other = self.status.first() != Some(&status);
        match status {
            408 => "timed-out",
            502..=504 if self.is_applications && !self.is_malformed => "application-failed",
            _ if self.is_failure && !is_other => "application-failed",
            _ if is_other || self.is_malformed => "refused",
            _ => "complete",
        }
    }

    /// Compares what the log says of a complete response that the application may have written by itself.
    fn check_report(&self, line: &Line, response: &Response) {
        let what = || format!("{line:?}: {response:?}");
        if CUT.contains(&&*line.outcome) || line.outcome == "timed-out" {
            // The application has not reported it.
            return;
        }
        assert_eq!(line.status, response.status, "{}", what());
        assert_eq!(line.outcome, self.outcome(response.status), "{}", what());
        // Applications do not count their framing. The server does, and takes a rest of the head for a part of the body.
        let is_so = (response.content.len()..=response.len).contains(&line.body_bytes);
        assert!(is_so || self.lies, "{}", what());
    }

    /// Compares a complete response with the model.
    fn check(&self, number: usize, response: &Response, moment: Moment) {
        let status = response.status;
        if status == 408 {
            assert!(!response.keeps_connection(), "a request that took too long is the last");
            return;
        }
        assert!(self.status.contains(&status), "{status} is none of {:?}: {response:?}", self.status);
        let date = response.field("Date").and_then(|date| baton_http::parse_date(date.as_bytes()));
        assert!(
            date.is_some_and(|date| date <= moment.unix_seconds),
            "no date, or one that is to come: {response:?}"
        );
        let is_last = self.persistence == Persistence::Ended || number + 1 >= moment.requests_max;
        let may_end = is_last || self.persistence == Persistence::Open || moment.is_draining;
        let keeps = response.keeps_connection();
        assert!(if keeps { !is_last } else { may_end }, "goes on: {keeps}, {moment:?}, {response:?}");
        let is_first = self.status.first() == Some(&status);
        let content = if is_first { &self.content } else { &Content::Page };
        if is_first {
            for (name, value) in &self.fields {
                assert_eq!(response.field(name), Some(&**value), "{name} of {response:?}");
            }
        }
        match content {
            _ if matches!(status, 204 | 304) => {
                assert!(response.content.is_empty() && response.field("Content-Length").is_none());
            }
            Content::Any => {}
            Content::Exact(bytes) if self.is_head => {
                assert_eq!(response.field("Content-Length"), Some(&*bytes.len().to_string()));
            }
            _ if self.is_head => assert!(response.field("Content-Length").is_some()),
            Content::Exact(bytes) => assert!(*bytes == response.content, "other bytes: {response:?}"),
            Content::Parts(bytes, ranges) => {
                let expected = ranges.iter().map(|range| {
                    let said = format!("bytes {}-{}/{}", range.start, range.end - 1, bytes.len());
                    (said, bytes[range.clone()].to_vec())
                });
                assert!(expected.eq(response.parts()), "other parts: {response:?}");
            }
            Content::With(words) => {
                let text = String::from_utf8_lossy(&response.content);
                assert!(text.contains(words), "no {words} in {text}");
            }
            Content::ByPlan => {
                let text = String::from_utf8_lossy(&response.content);
                let is_known = (0..=moment.version).any(|version| text == fixed_body(version));
                assert!(is_known, "by no plan up to {}: {text}", moment.version);
            }
            Content::Page => {
                let text = String::from_utf8_lossy(&response.content);
                assert!(text.contains(&format!("<h1>{status} ")), "no page for {status}: {text}");
            }
        }
    }
}

/// Outcomes of requests without an answer, or with a part of one.
const CUT: [&str; 4] = ["client-gone", "timed-out", "stopped", "application-failed"];

const LEAVINGS: [Leaving; 4] = [Leaving::HalfClose, Leaving::Close, Leaving::Reset, Leaving::Silence];
