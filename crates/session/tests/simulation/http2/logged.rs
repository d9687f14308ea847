//! What the log says of a client's requests, beside what the client got.

use super::Http2Client;
use super::frame::partial_data;
use super::inbound::SETTINGS_UNACKNOWLEDGED;
use super::stream::Stream;
use crate::client::{CUT, Leaving};
use crate::log::LogLine;

impl Http2Client {
    /// One line for each request that was taken, and none for any other.
    pub(super) fn check_lines(&self, who: usize, lines: &[&LogLine]) {
        let failure = self.check_failure_line(who, lines);
        let mut left: Vec<&&LogLine> =
            lines.iter().filter(|line| !line.request.starts_with(UNREADABLE)).collect();
        for (&id, stream) in &self.streams {
            let request = &self.requests[stream.request];
            let index = left.iter().position(|line| line.request == request.line);
            let what = format!("client {who}, stream {id}, {}", request.line);
            let Some(line) = index.map(|index| left.remove(index)) else {
                let is_taken =
                    id <= self.highest_settled || stream.response.is_some() || stream.reset.is_some();
                assert!(!is_taken || self.is_ignored(id), "{what}: it has vanished");
                continue;
            };
            assert!(stream.is_read, "{what}: {line:?} of a request that was not read");
            assert!(!self.is_ignored(id), "{what}: {line:?} of a request that was not to be taken");
            self.check_line(&what, id, stream, line, failure);
        }
        // A client that stops in front of the end of its preface may as well speak HTTP/1.
        let is_other =
            |line: &&&LogLine| self.is_preface_read || !"PRI * HTTP/2.0".starts_with(&line.request);
        let other: Vec<_> = left.into_iter().filter(is_other).collect();
        assert!(other.is_empty(), "client {who}: {other:?}");
    }

    /// The line of an error that has ended the connection. Returns whether there is one.
    fn check_failure_line(&self, who: usize, lines: &[&LogLine]) -> bool {
        let words = lines.iter().filter_map(|line| line.request.strip_prefix(UNREADABLE));
        let (malformed, words): (Vec<_>, Vec<_>) = words.partition(|word| *word == MALFORMED);
        let expected = self.malformed_lines();
        let count = malformed.len();
        assert!(expected.contains(&count), "client {who}: {count} lines, {:?}", self.malformed);
        let is_so = match &words[..] {
            [] => !self.has_failed(),
            [SETTINGS_UNACKNOWLEDGED] => self.has_not_acknowledged(),
            [word] => self.begun_violation().is_some_and(|violation| violation.word == *word),
            _ => false,
        };
        assert!(is_so, "client {who}: {words:?}, {:?}", self.farewell);
        !words.is_empty()
    }

    /// `has_failed`: an error has ended the connection, whether the client knows or not.
    fn check_line(&self, what: &str, id: u32, stream: &Stream, line: &LogLine, has_failed: bool) {
        let what = || format!("{what}: {line:?}, {stream:?}");
        let request = &self.requests[stream.request];
        let is_failure = line.outcome == "application-failed" && line.status != 503;
        assert!(!is_failure || request.expected.may_fail, "{}: why?", what());
        if let Some(response) = &stream.response {
            assert_eq!(line.status, response.status, "{}", what());
            if !stream.is_complete {
                request.expected.check_part(response);
            }
        }
        let received = stream.response.as_ref().map_or(0, |response| response.body_bytes);
        let is_cancelled = stream.cancelled_at.is_some_and(|at| at <= self.bytes_read);
        // The rest may have been on its way when the request was over for the server.
        let is_abandoned =
            is_cancelled && line.outcome == "client-gone" || has_failed && line.outcome == "refused";
        if stream.is_complete {
            let is_so =
                line.body_bytes == received && request.expected.is_outcome(line.status, &line.outcome);
            // When the server gave it up, the line had not taken all of the record that ends it.
            let is_given_up = is_abandoned || self.end.is_sealed() && CUT.contains(&&*line.outcome);
            return assert!(is_so || is_given_up && line.body_bytes <= received, "{}", what());
        }
        let partial = partial_data(&self.unread).filter(|(other, _)| *other == id).map_or(0, |(_, len)| len);
        if !self.end.is_sealed() {
            assert!(line.body_bytes <= received + partial, "{}: more than {received} + {partial}", what());
        }
        let is_so = match &*line.outcome {
            "client-gone" => is_cancelled || self.left.is_some_and(|left| left != Leaving::Silence),
            "application-failed" => stream.reset.is_none_or(|code| code == INTERNAL_ERROR),
            "timed-out" => stream.reset.is_none_or(|code| code == CANCEL),
            "refused" => has_failed && stream.reset.is_none(),
            outcome => CUT.contains(&outcome) && stream.reset.is_none(),
        };
        // The line may have taken all of the response, and not all of the record that ends it.
        let is_sent = self.end.is_sealed() && request.expected.is_outcome(line.status, &line.outcome);
        assert!(is_so || is_sent, "{}", what());
    }
}

/// What the log says in place of a request that ended the connection, in front of the reason.
const UNREADABLE: &str = "HTTP/2.0 ";

/// The same of one that ended its stream.
const MALFORMED: &str = "malformed request";

/// Codes by which the server resets streams.
const INTERNAL_ERROR: u32 = 0x2;
const CANCEL: u32 = 0x8;
