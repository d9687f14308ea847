//! What a client may get that asks for a [`Resource`].

use std::cell::Cell;
use std::rc::Rc;

use super::resource::{Ranges, Resource, Version, range_in};
use crate::clock;
use crate::ledger::{Ledger, Target};
use crate::response::Response;

/// What a client has asked for.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) resource: Resource,
    pub(crate) method: &'static str,
    pub(crate) number: usize,
    pub(crate) kind: &'static str,
    pub(crate) is_authorized: bool,
    /// `Range`, or nothing.
    pub(crate) range: String,
    pub(crate) if_none_match: Option<String>,
    pub(crate) if_range: Option<String>,
    /// Whether the client wants nothing that was not asked for at the origin.
    pub(crate) is_validated: bool,
    /// When the server had begun to read the request.
    pub(crate) begun_ms: Cell<Option<u64>>,
    pub(crate) ledger: Rc<Ledger>,
}

impl Wanted {
    /// What the status may be, 200 first.
    pub(crate) fn statuses(&self) -> Vec<u16> {
        let mut statuses = vec![200, 502, 503, 504];
        if !self.range.is_empty() {
            statuses.extend([206, 416]);
        }
        if self.if_none_match.is_some() {
            statuses.push(304);
        }
        statuses
    }

    /// The server has begun to read the request.
    pub(crate) fn note_begun(&self, now_ms: u64) {
        self.begun_ms.set(self.begun_ms.get().or(Some(now_ms)));
    }

    /// Whether the log may say so of an answer with this status. Those that an origin gives, and those of the server in its
    /// place, have the same numbers.
    pub(crate) fn is_outcome(&self, status: u16, outcome: &str) -> bool {
        match status {
            408 => outcome == "timed-out",
            502..=504 => ["complete", "application-failed", "refused"].contains(&outcome),
            416 => ["complete", "refused"].contains(&outcome),
            _ => outcome == "complete",
        }
    }

    /// Compares an answer with the origin's resource. `is_complete`: nothing of it is missing.
    pub(crate) fn check(&self, response: &Response, is_complete: bool) {
        match response.status {
            200 if self.method == "POST" => {
                let expected = format!("posted {}", self.number);
                assert!(expected.as_bytes().starts_with(&response.content), "of another POST: {response:?}");
                assert!(!is_complete || response.content.len() == expected.len(), "{response:?}");
                let time_ms = text(response, "X-Time").parse().unwrap();
                self.ledger.note_change_seen(self.target(response), time_ms, clock::now_ms());
            }
            200 | 206 => self.check_content(response, is_complete),
            304 => {
                let (own, theirs) = (self.if_none_match.as_deref(), response.field("ETag"));
                let opaque = |tag: &str| tag.trim_start_matches("W/").to_owned();
                assert_eq!(own.map(opaque), theirs.map(opaque), "304 for another version: {response:?}");
                self.check_head(response);
            }
            _ => {}
        }
    }

    /// Checks which version is sent, and returns it.
    fn check_head(&self, response: &Response) -> Version {
        let text = |name: &str| text(response, name);
        let version = Version {
            number: text("X-Version").parse().unwrap(),
            kind: text("X-Kind"),
            owner: text("X-Owner").parse().unwrap(),
        };
        let kind = if self.resource.varies { self.kind } else { "a" };
        assert_eq!(version.kind, kind, "another variant: {response:?}");
        let is_own = version.owner == self.number;
        let may_be_shared = version.owner == 0 && !self.resource.is_private;
        assert!(is_own || may_be_shared, "for another client than {}: {response:?}", self.number);
        assert!(!is_own || self.resource.is_private || self.is_authorized, "{response:?}");
        let time_ms: u64 = text("X-Time").parse().unwrap();
        let number = self.resource.number_at(time_ms);
        assert_eq!(version.number, number, "not the version of that time: {response:?}");
        if let Some(etag) = self.resource.etag(&version) {
            assert_eq!(text("ETag"), etag, "the validator of another version: {response:?}");
        }
        let lifetime_s = if self.is_validated { 0 } else { self.resource.lifetime_s };
        let begun_ms = self.begun_ms.get().expect("it was read");
        let is_fresh = time_ms + lifetime_s * 1000 + ROUNDING_MS >= begun_ms;
        assert!(is_fresh, "too old for a request of {begun_ms}: {self:?}, {response:?}");
        self.ledger.check(&self.target(response), time_ms, begun_ms);
        if !text("Cache-Status").contains("fwd=bypass") {
            self.ledger.note_seen(text("X-Fetch").parse().unwrap());
        }
        version
    }

    /// What the origin was asked for.
    fn target(&self, response: &Response) -> Target {
        Target { name: self.resource.name, scheme: text(response, "X-Scheme") }
    }

    fn check_content(&self, response: &Response, is_complete: bool) {
        let version = self.check_head(response);
        let whole = self.resource.content(&version);
        // It has a byte less than it says: no client can get all.
        let lies = self.resource.ranges == Ranges::OtherTotal;
        let content = match response.field("Content-Range") {
            None => {
                assert_eq!(response.status, 200, "no range: {response:?}");
                &whole[..]
            }
            Some(said) => {
                assert_eq!(response.status, 206, "a range: {response:?}");
                let is_current =
                    self.if_range.is_none() || self.if_range.as_deref() == response.field("ETag");
                assert!(is_current, "a part of another version than {:?}: {response:?}", self.if_range);
                let (range, total) = said.strip_prefix("bytes ").unwrap().split_once('/').unwrap();
                let (first, last) = range.split_once('-').unwrap();
                let range = first.parse::<usize>().unwrap()..last.parse::<usize>().unwrap() + 1;
                let total = total.parse().unwrap();
                let is_of = |len| range_in(&self.range, len).is_some_and(|asked| asked == range);
                let is_asked = is_of(total) || is_of(whole.len());
                let is_misplaced = self.resource.ranges == Ranges::Misplaced;
                assert!(is_asked || is_misplaced, "{} was asked: {response:?}", self.range);
                assert!(total == whole.len() || lies, "of {}: {response:?}", whole.len());
                &whole[range.start..range.end.min(whole.len())]
            }
        };
        if let Some(length) = response.field("Content-Length") {
            assert!(length == content.len().to_string() || lies, "{response:?}");
        }
        if self.method == "HEAD" {
            return;
        }
        assert!(content.starts_with(&response.content), "other bytes: {self:?}, {response:?}");
        let is_whole = response.content.len() == content.len();
        assert!(!is_complete || is_whole, "complete without {} bytes: {response:?}", content.len());
    }
}

/// The value of a field that the origin always sends.
fn text(response: &Response, name: &str) -> String {
    response.field(name).unwrap_or_else(|| panic!("no {name}: {response:?}")).to_owned()
}

/// Ages are in seconds.
const ROUNDING_MS: u64 = 2_000;
