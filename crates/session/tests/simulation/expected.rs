//! What the model expects of an answer, and the comparison with one. Both protocols share it.

use std::ops::Range;

use super::cached::Wanted;
use super::client::Moment;
use super::response::Response;
use super::site::fixed_body;

/// The expected answer to a request.
#[derive(Debug)]
pub(crate) struct Expected {
    /// One of these.
    pub(crate) status: Vec<u16>,
    pub(crate) persistence: Persistence,
    /// Whether the request breaks the protocol or a limit, so that it is refused.
    pub(crate) is_malformed: bool,
    /// Whether an application answers.
    pub(crate) is_applications: bool,
    /// Whether the answer is the server's, because the application failed.
    pub(crate) is_failure: bool,
    /// Whether the application may fail; a refusal for want of a connection is no failure.
    pub(crate) may_fail: bool,
    /// Whether the application may report something else than it has sent.
    pub(crate) lies: bool,
    /// Whether the answer has no body, even if its head announces one.
    pub(crate) is_head: bool,
    pub(crate) content: Content,
    /// Fields of the answer.
    pub(crate) fields: Vec<(&'static str, String)>,
    /// The tag that the server makes of the body, unless a part of that was in a file; and whether the client names it.
    pub(crate) tag: Option<(String, bool)>,
}

/// What becomes of the connection, unless the server ends it for other reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    Kept,
    Ended,
    /// It depends on how much of the request arrives before the answer. Later requests on the connection may be lost.
    Open,
}

/// The content of an answer with an expected status.
#[derive(Debug)]
pub(crate) enum Content {
    /// These bytes.
    Exact(Vec<u8>),
    /// These ranges of these bytes, in a form with a part for each.
    Parts(Vec<u8>, Vec<Range<usize>>),
    /// Something with these words in it.
    With(&'static str),
    /// The content by the plan that is current when the request is answered.
    ByPlan,
    /// What the origin of a cached route has.
    Cached(Box<Wanted>),
    /// A page about the status.
    Page,
    /// Anything.
    Any,
}

impl Expected {
    /// The request is refused with this status.
    pub(super) fn refuse(&mut self, status: u16) {
        self.status = vec![status];
        (self.persistence, self.is_malformed, self.is_failure) = (Persistence::Ended, true, false);
        (self.content, self.fields) = (Content::Page, Vec::new());
    }

    pub(super) fn open(&mut self) {
        if self.persistence == Persistence::Kept {
            self.persistence = Persistence::Open;
        }
    }

    /// The server has begun to read the request.
    pub(super) fn note_begun(&self, now_ms: u64) {
        if let Content::Cached(wanted) = &self.content {
            wanted.note_begun(now_ms);
        }
    }

    /// Compares a response of which not all has come with the model.
    pub(super) fn check_part(&self, response: &Response) {
        if let Content::Cached(wanted) = &self.content {
            wanted.check(response, false);
        }
    }

    /// Whether the log may say so of a complete answer with this status.
    pub(super) fn is_outcome(&self, status: u16, outcome: &str) -> bool {
        match &self.content {
            Content::Cached(wanted) => wanted.is_outcome(status, outcome),
            _ => outcome == self.outcome(status),
        }
    }

    /// What the log says of a complete answer with this status.
    fn outcome(&self, status: u16) -> &'static str {
        let is_other = self.status.first() != Some(&status);
        match status {
            304 if self.tag.is_some() => "complete",
            408 => "timed-out",
            502..=504 if self.is_applications && !self.is_malformed => "application-failed",
            _ if self.is_failure && !is_other => "application-failed",
            _ if is_other || self.is_malformed => "refused",
            _ => "complete",
        }
    }

    /// Compares a complete response with the model.
    pub(super) fn check(&self, response: &Response, moment: Moment) {
        let status = response.status;
        if status == 408 {
            return;
        }
        assert!(self.status.contains(&status), "{status} is none of {:?}: {response:?}", self.status);
        let date = response.field("Date").and_then(|date| baton_http::parse_date(date.as_bytes()));
        assert!(
            date.is_some_and(|date| date <= moment.unix_seconds),
            "no date, or one that is to come: {response:?}"
        );
        if let Content::Cached(wanted) = &self.content {
            return wanted.check(response, true);
        }
        if let Some((tag, is_named)) = self.tag.as_ref().filter(|_| matches!(status, 200 | 304)) {
            let told = response.field("ETag");
            assert!(told.is_none_or(|told| told == tag), "{told:?}, not {tag}: {response:?}");
            assert_eq!(status == 304, told.is_some() && *is_named, "{tag}: {response:?}");
        }
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
            Content::Any | Content::Cached(_) => {}
            Content::Exact(bytes) if self.is_head => {
                assert_eq!(response.field("Content-Length"), Some(&*bytes.len().to_string()));
            }
            _ if self.is_head => {
                assert!(response.field("Content-Length").is_some(), "no length: {response:?}");
            }
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
