//! What the answer to a validation means for what is stored (RFC 9111 sections 4.3.1, 4.3.3 to 4.3.5).

use super::storable::Fetched;
use super::stored::dated;
use super::{CacheRequest, NotStored, RouteRules, Stored, Validators};
use baton_http::Method;
use baton_http::origin::ResponseHead;

/// The conditions of a request by which the cache asks whether stored responses are current. Both fields may go: an
/// origin that knows If-None-Match ignores the other (RFC 9110 section 13.2.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditional {
    /// The value of If-None-Match.
    pub if_none_match: Option<Vec<u8>>,
    /// The value of If-Modified-Since.
    pub if_modified_since: Option<Vec<u8>>,
}

impl Conditional {
    /// Asks about one response. Empty if it has no validator: then the request is an ordinary one.
    pub fn of(stored: &Stored) -> Self {
        let validators = stored.validators();
        Self {
            if_none_match: validators.etag_field.filter(is_short).map(<[u8]>::to_vec),
            if_modified_since: validators.last_modified_field.map(<[u8]>::to_vec),
        }
    }

    /// Whether there is nothing to ask.
    pub const fn is_empty(&self) -> bool {
        self.if_none_match.is_none() && self.if_modified_since.is_none()
    }
}

/// A longer tag is no validator: origins refuse long heads, and an error would take the place of what is stored.
const TAG_BYTES_MAX: usize = 512;

fn is_short(tag: &&[u8]) -> bool {
    tag.len() <= TAG_BYTES_MAX
}

/// What an answer to a validation means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// 304: the stored response is current. See [`Stored::freshen`].
    Current,
    /// A 304 about another version (RFC 9111 section 4.3.4). It confirms nothing: ask again without conditions.
    OtherVersion,
    /// 200 to a HEAD, which may be about what is stored: see [`Stored::freshen_by_head`].
    Described,
    /// Another response, which takes the place of the stored one, or if it may not be stored leaves none.
    Changed,
    /// An error, instead of which the client gets the stored response.
    UseStale,
    /// An error, which goes to the client. The stored response stays: the next answer may be another.
    PassOn,
}

impl Validation {
    /// Judges the answer to a validation of `stored` alone.
    pub fn of(asked: &CacheRequest<'_>, stored: &Stored, head: &ResponseHead, now_s: u64) -> Self {
        match head.status().code() {
            304 if is_about(stored, head) => Self::Current,
            304 => Self::OtherVersion,
            200 if asked.head.method == Method::Head => Self::Described,
            500..=599 if asked.takes_instead_of_error(stored, Some(head.status()), now_s) => Self::UseStale,
            500..=599 | 429 => Self::PassOn,
            _ => Self::Changed,
        }
    }
}

/// Whether a 304 may be about the stored response, which was the only one asked about: it names no other version. A weak
/// mark does not count: servers that compress on the fly put one on the tags of their 200s, but not of their 304s.
fn is_about(stored: &Stored, head: &ResponseHead) -> bool {
    let (own, new) = (stored.validators(), Validators::of(head));
    match (own.etag, new.etag) {
        (Some(own), Some(new)) => own.matches_weakly(new),
        _ => own.last_modified_s.zip(new.last_modified_s).is_none_or(|(own, new)| own == new),
    }
}

impl Stored {
    /// The stored response with the fields of a 304 that confirms it. `fetched.request` is the request that it was asked
    /// for: it decides about Vary. The tag stays as it is.
    ///
    /// # Errors
    /// It is not updated. This client has [`freshened_once`](Self::freshened_once); then the stored response goes, unless the
    /// reason is [the request's](NotStored::is_of_the_request).
    pub fn freshen(&self, rules: &RouteRules, fetched: &Fetched<'_>) -> Result<Self, NotStored> {
        let Fetched { request, head: update, times } = fetched;
        let merged = merge(rules, &self.head, update);
        Self::updated(rules, Fetched { request, head: merged, times: *times })
    }

    /// The same for the one client that has asked, where the update may not be kept (RFC 9111 section 4.3.4).
    pub fn freshened_once(&self, rules: &RouteRules, fetched: &Fetched<'_>) -> Self {
        let head = dated(merge(rules, &self.head, &fetched.head), fetched.times);
        Self::restore(rules, head, fetched.times, self.variant.clone())
    }

    /// What a HEAD that was answered with 200 tells (RFC 9111 section 4.3.5): the stored response with its fields.
    /// `None`: the representation has changed, or without a validator nothing says that it has not: what is stored is not
    /// current. A length alone confirms nothing, since most of what changes often keeps it.
    ///
    /// # Errors
    /// As those of [`freshen`](Self::freshen).
    pub fn freshen_by_head(
        &self,
        rules: &RouteRules,
        fetched: &Fetched<'_>,
    ) -> Option<Result<Self, NotStored>> {
        let (own, new) = (self.validators(), Validators::of(&fetched.head));
        let is_same_tag = new.etag.is_none_or(|etag| own.etag.is_some_and(|own| own.matches_weakly(etag)));
        let is_same_date = new.last_modified_s.is_none() || new.last_modified_s == own.last_modified_s;
        let is_same_version = !new.is_empty() && is_same_tag && is_same_date;
        let length = fetched.head.content_length();
        let is_same_length = length.is_none() || length == self.head.content_length();
        let is_same = is_same_version && is_same_length && fetched.head.status() == self.head.status();
        is_same.then(|| self.freshen(rules, fetched))
    }
}

/// A stored head with the fields of an update (RFC 9111 section 3.2).
fn merge(rules: &RouteRules, stored: &ResponseHead, update: &ResponseHead) -> ResponseHead {
    let replaces = |name: &[u8]| {
        let is_cookie = name.eq_ignore_ascii_case(b"Set-Cookie");
        !is_about_the_stored_bytes(name) && (rules.stores_set_cookie || !is_cookie)
    };
    let mut merged = stored.clone();
    let is_replaced = |name: &[u8]| {
        // The stored age and date have ended, even if the update has none: it is from now.
        name.eq_ignore_ascii_case(b"Age")
            || name.eq_ignore_ascii_case(b"Date")
            || (replaces(name) && update.fields().any(|(other, _)| other.eq_ignore_ascii_case(name)))
    };
    merged.retain(|name, _| !is_replaced(name));
    for (name, value) in update.fields().filter(|(name, _)| replaces(name)) {
        if let Ok(name) = std::str::from_utf8(name) {
            merged.add(name, value);
        }
    }
    merged
}

/// Fields that describe the stored bytes, or tell this version from others: those of the update may be about other bytes.
fn is_about_the_stored_bytes(name: &[u8]) -> bool {
    let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
    match name.len() {
        4 => is("ETag"),
        11 => is("Content-MD5"),
        13 => is("Content-Range"),
        14 => is("Content-Length"),
        16 => is("Content-Encoding"),
        _ => false,
    }
}

/// Whether a field of a stored head goes into a 304 for a client: what describes the content does not, which it has
/// already (RFC 9110 section 15.4.5).
pub fn belongs_in_304(name: &[u8]) -> bool {
    let is_content = name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"Content-"));
    let stays = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
    !is_content || stays("Content-Location") || stays("Content-Security-Policy")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::fixture::{NOW_S, fetched, response, store, with_asked, with_request};

    fn fields(head: &ResponseHead) -> String {
        let lines = head.fields().filter(|(name, _)| *name != b"Date");
        let lines = lines.map(|(name, value)| format!("{}: {}", text(name), text(value)));
        lines.collect::<Vec<_>>().join("; ")
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    fn freshen(stored: &str, update: &str) -> Result<Stored, NotStored> {
        let stored = store("", 200, stored, 0).unwrap();
        with_request("GET", "", |request| {
            stored.freshen(&RouteRules::default(), &fetched(request, response(304, update), 100))
        })
    }

    #[test]
    fn rfc9111_4_3_1_conditions_name_what_is_stored() {
        let conditional = |fields: &str| Conditional::of(&store("", 200, fields, 0).unwrap());
        let both = "Cache-Control: max-age=1; ETag: W/\"a\"; Last-Modified: Sun, 06 Nov 1994 08:49:07 GMT";
        let expected = Conditional {
            if_none_match: Some(b"W/\"a\"".to_vec()),
            if_modified_since: Some(b"Sun, 06 Nov 1994 08:49:07 GMT".to_vec()),
        };
        assert_eq!(conditional(both), expected);
        assert!(conditional("Cache-Control: max-age=1; ETag: a; Last-Modified: b").is_empty());
        let long = format!("Cache-Control: max-age=1; ETag: \"{}\"", "a".repeat(TAG_BYTES_MAX));
        assert!(conditional(&long).is_empty());
    }

    #[test]
    fn rfc9111_3_2_a_304_replaces_fields() {
        let stored =
            "Cache-Control: max-age=10; A: 1; B: 2; a: 3; ETag: \"a\"; Age: 5; Content-Encoding: gzip";
        for (update, expected) in [
            ("", "Cache-Control: max-age=10; A: 1; B: 2; a: 3; ETag: \"a\"; Content-Encoding: gzip"),
            ("A: 4", "Cache-Control: max-age=10; B: 2; ETag: \"a\"; Content-Encoding: gzip; A: 4"),
            (
                "Cache-Control: max-age=7; C: 5; Age: 2",
                "A: 1; B: 2; a: 3; ETag: \"a\"; Content-Encoding: gzip; Cache-Control: max-age=7; C: 5; Age: 2",
            ),
            // RFC 9111 section 3.2, and what tells which bytes are stored.
            (
                "ETag: \"b\"; Content-Encoding: br; Content-Length: 3; Content-Range: x; Content-MD5: y; Set-Cookie: z",
                "Cache-Control: max-age=10; A: 1; B: 2; a: 3; ETag: \"a\"; Content-Encoding: gzip",
            ),
        ] {
            let freshened = freshen(stored, update).unwrap();
            assert_eq!(fields(freshened.head()), expected, "{update}");
            assert!(freshened.freshness().is_fresh(NOW_S + 104));
            assert_eq!(freshened.head().content_length(), Some(10));
            assert_eq!(freshened.freshness().date_s(), NOW_S + 100);
        }
        let rules = RouteRules { stores_set_cookie: true, ..RouteRules::default() };
        let stored = store("", 200, stored, 0).unwrap();
        with_request("GET", "", |request| {
            let freshened =
                stored.freshen(&rules, &fetched(request, response(304, "Set-Cookie: z"), 100)).unwrap();
            assert_eq!(freshened.head().field("Set-Cookie"), Some(&b"z"[..]));
        });
    }

    #[test]
    fn a_304_may_end_what_is_stored() {
        let stored = "Cache-Control: max-age=10; ETag: \"a\"";
        assert_eq!(freshen(stored, "Cache-Control: no-store"), Err(NotStored::NoStore));
        assert_eq!(freshen(stored, "Vary: *"), Err(NotStored::VaryStar));
        let update = "Cache-Control: no-store; A: 2; Age: 3";
        let once = with_request("GET", "", |request| {
            let stored = store("", 200, "Cache-Control: max-age=10; ETag: \"a\"; A: 1; Age: 9", 0).unwrap();
            stored.freshened_once(&RouteRules::default(), &fetched(request, response(304, update), 100))
        });
        assert_eq!(fields(once.head()), "ETag: \"a\"; Cache-Control: no-store; A: 2; Age: 3");
        assert_eq!((once.freshness().date_s(), once.freshness().age_s(NOW_S + 101)), (NOW_S + 100, 4));
        assert!(!NotStored::NoStore.is_of_the_request());
        // A client's own wish ends nothing.
        let stored = store("", 200, stored, 0).unwrap();
        for (fields, reason) in [
            ("Cache-Control: no-store", NotStored::RequestNoStore),
            ("Authorization: x", NotStored::Authorization),
        ] {
            with_request("GET", fields, |request| {
                let update = fetched(request, response(304, ""), 100);
                assert_eq!(stored.freshen(&RouteRules::default(), &update), Err(reason));
                assert!(reason.is_of_the_request());
            });
        }
        with_request("HEAD", "", |request| {
            let update = fetched(request, response(304, ""), 100);
            assert!(stored.freshen(&RouteRules::default(), &update).is_ok());
        });
    }

    #[test]
    fn rfc9111_4_3_5_a_head_updates_what_it_describes() {
        let stored = store("", 200, "Cache-Control: max-age=10; ETag: \"a\"; A: 1", 0).unwrap();
        let by_head = |status, fields: &str, length| {
            let mut head = response(status, fields);
            head.set_content_length(length);
            with_request("HEAD", "", |request| {
                stored.freshen_by_head(&RouteRules::default(), &fetched(request, head, 100))
            })
        };
        let freshened = by_head(200, "ETag: \"a\"; A: 2", Some(10)).unwrap().unwrap();
        assert_eq!(fields(freshened.head()), "Cache-Control: max-age=10; ETag: \"a\"; A: 2");
        assert!(by_head(200, "ETag: W/\"a\"", None).is_some());
        assert_eq!(by_head(200, "ETag: \"b\"", Some(10)), None);
        assert_eq!(by_head(200, "Last-Modified: Sun, 06 Nov 1994 08:49:07 GMT", Some(10)), None);
        assert_eq!(by_head(200, "ETag: \"a\"", Some(11)), None);
        assert_eq!(by_head(410, "ETag: \"a\"", Some(10)), None);
        assert_eq!(by_head(200, "", Some(10)), None, "no validator confirms the stored bytes");
    }

    #[test]
    fn rfc9111_4_3_3_answers_to_validations() {
        let judge = |fields: &str, status| {
            let stored = store("", 200, fields, 0).unwrap();
            with_asked("", |asked| Validation::of(asked, &stored, &response(status, ""), NOW_S + 11))
        };
        let said = "Cache-Control: max-age=10, stale-if-error=5";
        for (fields, status, expected) in [
            (said, 304, Validation::Current),
            (said, 200, Validation::Changed),
            (said, 404, Validation::Changed),
            (said, 503, Validation::UseStale),
            (said, 501, Validation::PassOn),
            (said, 429, Validation::PassOn),
            ("Cache-Control: max-age=10", 503, Validation::PassOn),
            ("Cache-Control: max-age=10, stale-if-error=5, must-revalidate", 503, Validation::PassOn),
        ] {
            assert_eq!(judge(fields, status), expected, "{fields} {status}");
        }
    }

    #[test]
    fn rfc9111_4_3_5_a_head_describes() {
        let stored = store("", 200, "Cache-Control: max-age=10", 0).unwrap();
        with_request("HEAD", "", |head| {
            let asked = CacheRequest::of(&RouteRules::default(), head).unwrap();
            let judge = |status| Validation::of(&asked, &stored, &response(status, ""), NOW_S + 11);
            assert_eq!(judge(200), Validation::Described);
            assert_eq!(judge(404), Validation::Changed);
        });
    }

    #[test]
    fn rfc9111_4_3_4_a_304_about_another_version_confirms_nothing() {
        let judge = |stored: &str, update: &str| {
            let stored = store("", 200, &format!("Cache-Control: max-age=9; {stored}"), 0).unwrap();
            with_asked("", |asked| Validation::of(asked, &stored, &response(304, update), NOW_S + 11))
        };
        let (one, other) =
            ("Last-Modified: Sun, 06 Nov 1994 08:49:07 GMT", "Last-Modified: Sun, 06 Nov 1994 08:49:08 GMT");
        for (stored, update, is_current) in [
            ("ETag: \"a\"", "", true),
            ("ETag: \"a\"", "ETag: \"a\"", true),
            ("ETag: W/\"a\"", "ETag: \"a\"", true),
            ("ETag: \"a\"", "ETag: \"b\"", false),
            ("ETag: \"a\"", other, true),
            (one, one, true),
            (one, "", true),
            (one, other, false),
            (&format!("ETag: \"a\"; {one}"), &format!("ETag: \"a\"; {other}"), true),
            ("A: b", "ETag: \"a\"", true),
        ] {
            let expected = if is_current { Validation::Current } else { Validation::OtherVersion };
            assert_eq!(judge(stored, update), expected, "{stored} {update}");
        }
    }

    #[test]
    fn rfc9110_15_4_5_a_304_describes_no_content() {
        for (name, expected) in [
            ("ETag", true),
            ("Cache-Control", true),
            ("Vary", true),
            ("content-location", true),
            ("Content-Security-Policy", true),
            ("Content-Type", false),
            ("content-encoding", false),
            ("Content-Range", false),
            ("Content", true),
        ] {
            assert_eq!(belongs_in_304(name.as_bytes()), expected, "{name}");
        }
    }
}
