//! A client that speaks HTTP/1. It sends its requests in pieces, makes room for the answers, leaves when the seed says
//! so, and compares every answer with the model.

use crate::memory::{Left, Unread};

use super::choices::Choices;
use super::client::{CUT, Client, Habits, InputWait, Leaving, Moment, Progress};
use super::expected::{Expected, Persistence};
use super::link::ClientSocket;
use super::log::LogLine;
use super::request::Request;
use super::response::Response;

/// One client, from its connection to its end.
#[derive(Debug)]
pub(crate) struct Http1Client {
    end: Box<dyn ClientSocket>,
    requests: Vec<Request>,
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
    responses: Vec<Response>,
    progress: Progress,
    /// When the server last read or wrote.
    moved_ms: u64,
    /// When the first byte of the request was read that is being read.
    head_begun_ms: u64,
    bytes_read: usize,
    /// The same, before the response that is arriving began.
    read_before_response: usize,
}

impl Http1Client {
    pub(crate) fn new(
        end: Box<dyn ClientSocket>,
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
        let habits = Habits::choose(ends.last().copied().unwrap_or(0), choices);
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
            progress: Progress::new(now_ms),
            moved_ms: now_ms,
            head_begun_ms: now_ms,
            bytes_read: 0,
            read_before_response: 0,
        }
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

    /// Whether the server has closed the connection in front of input that it had to expect. Once a client has said that
    /// a request is its last one, more of it is its own fault, if the server does not know of it.
    fn may_have_lost_output(&self) -> bool {
        let mut answered = self.requests.iter().take(self.responses.len() + 1);
        match self.end.unread_at_close() {
            Unread::Nothing => false,
            Unread::Unannounced => answered.all(|last| last.expected.persistence != Persistence::Ended),
            Unread::Announced => true,
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
    fn partial(&self) -> Option<Response> {
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
    fn has_partial(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Which request the byte in front of `read` belongs to.
    fn request_at(&self, read: usize) -> usize {
        self.ends.partition_point(|&end| end < read)
    }

    /// Whether the server has read some of this request.
    fn was_begun(&self, number: usize) -> bool {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        self.bytes_read > start
    }

    /// Since when the server has read only a part of a head, if that is all it has read of unanswered requests.
    fn is_in_head(&self) -> Option<u64> {
        let number = self.responses.len();
        let start = if number == 0 { 0 } else { *self.ends.get(number - 1)? };
        let head = start..start + self.requests.get(number)?.head_len;
        let is_in_head = head.start < self.bytes_read && self.bytes_read < head.end;
        (is_in_head && self.is_open()).then_some(self.head_begun_ms)
    }

    /// Whether there is a request that is not answered, though the server has read all of it.
    fn awaits_answer(&self) -> bool {
        self.is_open() && self.ends.get(self.responses.len()).is_some_and(|&end| self.bytes_read >= end)
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

    fn leave(&mut self, leaving: Leaving) -> Option<u64> {
        self.has_left = true;
        leaving.leave(&mut *self.end);
        None
    }
}

impl Client for Http1Client {
    fn link(&self) -> &dyn ClientSocket {
        &*self.end
    }

    fn link_mut(&mut self) -> &mut dyn ClientSocket {
        &mut *self.end
    }

    fn act(&mut self, choices: &mut Choices) -> Option<u64> {
        if self.has_left || self.end.is_closed_by_server() {
            return None;
        }
        let limit = self.habits.leaving.map_or(usize::MAX, |(_, at)| at);
        let allowed = self.responses.len() + self.habits.concurrent;
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
        self.habits.make_room(&mut *self.end, choices);
        self.idle_times += 1;
        Some(self.habits.pause_ms(self.idle_times, choices))
    }

    fn observe(&mut self, moment: Moment) {
        let now_ms = moment.now_ms;
        let output = self.end.take_output();
        if !output.is_empty() {
            self.progress.note(now_ms, output.len());
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
            let last = self.request_at(bytes_read).min(self.requests.len() - 1);
            self.requests[..=last].iter().for_each(|request| request.expected.note_begun(now_ms));
        }
        self.unread.extend_from_slice(&output);
        while let Some(response) = self.next_response() {
            self.unread.drain(..response.len);
            if response.status >= 200 {
                let number = self.responses.len();
                let expected = &self.requests[number].expected;
                expected.check(&response, moment);
                expected.check_persistence(number, &response, moment);
                self.responses.push(response);
            } else {
                assert_eq!(response.status, 100, "the only response in front of the final one");
            }
        }
    }

    fn answers(&self) -> usize {
        self.responses.len()
    }

    fn taken_since(&self, since_ms: u64) -> usize {
        self.progress.since(since_ms)
    }

    fn concurrent_max(&self) -> usize {
        1
    }

    fn check_input_wait(&mut self, wait: &InputWait<'_>) {
        let &InputWait { who, deadline_ms, limits, heard_ms, .. } = wait;
        let due = |since_ms: u64, timeout_ms: u64, what: &str| {
            let due_ms = since_ms + timeout_ms;
            assert_eq!(deadline_ms, due_ms, "client {who}: the deadline of its wait {what}");
        };
        let is_told = !self.end.has_input() || self.end.has_readiness();
        assert!(is_told, "client {who}: there is input");
        assert!(!self.awaits_answer(), "client {who}: a request is there and not answered");
        if self.end.is_sealed() {
            // When the server has read a part of a record, the client cannot know.
            let longest_ms = [
                limits.head_timeout_ms,
                limits.body_timeout_ms,
                limits.idle_timeout_ms,
                limits.linger_timeout_ms,
            ];
            let latest_ms = wait.now_ms + longest_ms.into_iter().max().unwrap_or(0);
            assert!(deadline_ms <= latest_ms, "client {who}: {deadline_ms} by TLS");
        } else if let Some(since_ms) = self.is_in_head() {
            let since_ms = since_ms.max(self.progress.moved_ms()).max(heard_ms);
            due(since_ms, limits.head_timeout_ms, "for a head");
        } else if !wait.is_idle {
            let longest_ms = limits.body_timeout_ms.max(limits.linger_timeout_ms);
            let latest_ms = self.moved_ms.max(heard_ms) + longest_ms;
            assert!(deadline_ms <= latest_ms, "client {who}: {deadline_ms} for a body, or lingering");
        } else if self.has_partial() {
            panic!("client {who}: the rest of an answer does not come");
        } else if self.responses.last().is_some_and(|response| !response.keeps_connection()) {
            panic!("client {who} was told that the connection ends");
        } else if self.responses.is_empty() {
            due(wait.accepted_ms, limits.head_timeout_ms, "for its first request");
        } else {
            due(self.moved_ms.max(heard_ms), limits.idle_timeout_ms, "for its next request");
        }
    }

    fn check_end(&mut self, who: usize, by_itself: bool) {
        self.end.handle_session_end();
        assert!(!by_itself || !self.may_have_lost_output(), "client {who} may have lost its last answer");
    }

    /// One line for each request that has begun, in order.
    fn check_log(&self, who: usize, lines: &[&LogLine]) {
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
                // The client can have all of an answer whose application has not said yet that this was all.
                let is_open = request.expected.is_applications && CUT.contains(&&*line.outcome);
                let is_so = request.expected.is_outcome(response.status, &line.outcome);
                assert!(is_open || is_so, "{}: {}", what(), response.status);
            } else {
                let partial = (number == complete).then(|| self.partial()).flatten();
                partial.iter().for_each(|partial| request.expected.check_part(partial));
                if !self.end.is_in_memory() && partial.is_some_and(|partial| partial.ends_with_connection) {
                    // Whether it is all of it, only the kind of the connection's end tells.
                    continue;
                }
                // The line may have taken all of the answer, and not all of the record that ends it.
                let is_sent = self.end.is_sealed() && request.expected.is_outcome(line.status, &line.outcome);
                assert!(is_sent || CUT.contains(&&*line.outcome), "{}: not answered", what());
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
    /// Checks whether the connection goes on behind this response.
    fn check_persistence(&self, number: usize, response: &Response, moment: Moment) {
        let keeps = response.keeps_connection();
        if response.status == 408 {
            assert!(!keeps, "a request that took too long is the last");
            return;
        }
        let is_last = self.persistence == Persistence::Ended || number + 1 >= moment.requests_max;
        let may_end = is_last || self.persistence == Persistence::Open || moment.is_draining;
        assert!(if keeps { !is_last } else { may_end }, "goes on: {keeps}, {moment:?}, {response:?}");
    }

    /// Compares what the log says of a complete response that the application may have written by itself.
    fn check_report(&self, line: &LogLine, response: &Response) {
        let what = || format!("{line:?}: {response:?}");
        if CUT.contains(&&*line.outcome) || line.outcome == "timed-out" {
            // The application has not reported it.
            return;
        }
        assert_eq!(line.status, response.status, "{}", what());
        assert!(self.is_outcome(response.status, &line.outcome), "{}", what());
        // Applications do not count their framing. The server does, and takes a rest of the head for a part of the body.
        let is_so = (response.content.len()..=response.len).contains(&line.body_bytes);
        assert!(is_so || self.lies, "{}", what());
    }
}
