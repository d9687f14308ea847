//! Parts: which of them belong together (RFC 9111 sections 3.3 and 3.4, RFC 9110 section 14).

use super::storable::Fetched;
use super::{NotStored, RouteRules, Stored, Validators};
use baton_http::origin::ResponseHead;
use baton_http::{ContentRange, Status};
use std::fmt;

/// Why a part is not joined to those that are stored. The stored ones are of another version, or the origin is at fault:
/// what is read of them goes on from the store, and nothing of the two is mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotJoined {
    /// The part has no Content-Range, or one that contradicts its length.
    ContentRange,
    /// The strong validators differ, or one of them has none.
    OtherVersion,
    /// The total length differs.
    OtherLength,
    /// The response may not be stored any more.
    NotStored(NotStored),
}

impl NotJoined {
    /// One word for logs and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::ContentRange => "content-range",
            Self::OtherVersion => "other-version",
            Self::OtherLength => "other-length",
            Self::NotStored(reason) => reason.label(),
        }
    }
}

impl fmt::Display for NotJoined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ContentRange => f.write_str("the part does not say which it is"),
            Self::OtherVersion => f.write_str("the part is of another version"),
            Self::OtherLength => f.write_str("the part is of a representation of another length"),
            Self::NotStored(reason) => reason.fmt(f),
        }
    }
}

impl std::error::Error for NotJoined {}

impl Stored {
    /// The stored response with the fields of another of its parts, and where that belongs (RFC 9111 section 3.4): the
    /// newest fields count. `if_range`: the part was asked for with If-Range, and the stored response's
    /// [strong validator](Validators::strong_field).
    ///
    /// # Errors
    /// The part does not belong to it.
    pub fn join(
        &self,
        rules: &RouteRules,
        fetched: Fetched<'_>,
        if_range: bool,
    ) -> Result<(Self, ContentRange), NotJoined> {
        let part = self.place_of(&fetched.head, if_range)?;
        let mut joined = self.freshen(rules, &fetched).map_err(NotJoined::NotStored)?;
        if joined.head.content_length().is_none() {
            joined.head.set_content_length(part.length);
        }
        Ok((joined, part))
    }

    /// Where a 206 belongs within the stored response.
    fn place_of(&self, head: &ResponseHead, if_range: bool) -> Result<ContentRange, NotJoined> {
        let part = head.field("Content-Range").and_then(ContentRange::parse);
        let part =
            part.filter(|_| head.status() == Status::PARTIAL_CONTENT).ok_or(NotJoined::ContentRange)?;
        if head.content_length().is_some_and(|length| length != part.range.len()) {
            return Err(NotJoined::ContentRange);
        }
        let (own, other) = (self.validators(), Validators::of(head));
        // A 206 to If-Range leaves out what its client knows already, but for the tag (RFC 9110 section 15.3.7). Of another
        // version it would not be one.
        let is_confirmed = if_range && own.etag.is_none() && other.is_empty();
        if !is_confirmed && !own.promise_same_bytes(&other) {
            return Err(NotJoined::OtherVersion);
        }
        let total = self.head.content_length();
        let is_other = total.zip(part.length).is_some_and(|(total, length)| total != length);
        let is_behind = total.is_some_and(|total| part.range.last >= total);
        if is_other || is_behind { Err(NotJoined::OtherLength) } else { Ok(part) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::fixture::{fetched, response, store, with_request};
    use baton_http::ByteRange;

    fn part(fields: &str, length: u64) -> ResponseHead {
        let mut head = response(206, fields);
        head.set_content_length(Some(length));
        head
    }

    const STORED: &str = "Cache-Control: max-age=9; ETag: \"a\"; A: 1; Content-Range: bytes 0-9/30";

    fn join(stored: &str, fields: &str, length: u64) -> Result<(Stored, ContentRange), &'static str> {
        join_asked(stored, fields, length, false)
    }

    fn join_asked(
        stored: &str,
        fields: &str,
        length: u64,
        if_range: bool,
    ) -> Result<(Stored, ContentRange), &'static str> {
        let stored = store("", 206, stored, 0).unwrap();
        with_request("GET", "", |request| {
            let joined =
                stored.join(&RouteRules::default(), fetched(request, part(fields, length), 5), if_range);
            joined.map_err(NotJoined::label)
        })
    }

    #[test]
    fn rfc9111_3_4_parts_of_one_version_are_joined() {
        let (joined, part) = join(STORED, "ETag: \"a\"; A: 2; Content-Range: bytes 20-29/30", 10).unwrap();
        assert_eq!(part.range, ByteRange { first: 20, last: 29 });
        assert_eq!((joined.head().status(), joined.head().content_length()), (Status::OK, Some(30)));
        assert_eq!(joined.head().field("A"), Some(&b"2"[..]));
        assert_eq!(joined.head().field("Content-Range"), None);
        let unknown = STORED.replace("/30", "/*");
        let (joined, _) = join(&unknown, "ETag: \"a\"; Content-Range: bytes 20-29/30", 10).unwrap();
        assert_eq!(joined.head().content_length(), Some(30));
    }

    #[test]
    fn rfc9110_15_3_7_3_parts_of_two_versions_are_not() {
        let dated = "Cache-Control: max-age=9; Content-Range: bytes 0-9/30; Last-Modified: Sun, 06 Nov 1994 08:49:07 GMT";
        let dated_with_date = format!("{dated}; Date: Sun, 06 Nov 1994 08:49:37 GMT");
        for (stored, fields, length, expected) in [
            (STORED, "ETag: \"b\"; Content-Range: bytes 20-29/30", 10, "other-version"),
            (STORED, "ETag: W/\"a\"; Content-Range: bytes 20-29/30", 10, "other-version"),
            (STORED, "Content-Range: bytes 20-29/30", 10, "other-version"),
            (&dated_with_date, dated, 10, "other-version"),
            (STORED, "ETag: \"a\"; Content-Range: bytes 20-29/31", 10, "other-length"),
            (STORED, "ETag: \"a\"; Content-Range: bytes 30-39/*", 10, "other-length"),
            (STORED, "ETag: \"a\"; Content-Range: bytes 20-29/30", 9, "content-range"),
            (STORED, "ETag: \"a\"; Content-Range: bytes */30", 10, "content-range"),
            (STORED, "ETag: \"a\"", 10, "content-range"),
            (STORED, "ETag: \"a\"; Content-Range: bytes 20-29/30; Cache-Control: no-store", 10, "no-store"),
        ] {
            assert_eq!(join(stored, fields, length).unwrap_err(), expected, "{fields}");
        }
        assert!(join(&dated_with_date, &dated_with_date, 10).is_ok());
    }

    #[test]
    fn rfc9110_15_3_7_a_206_to_if_range_may_leave_the_date_out() {
        let dated = "Cache-Control: max-age=9; Content-Range: bytes 0-9/30; Last-Modified: Sun, 06 Nov 1994 08:49:07 GMT; \
                     Date: Sun, 06 Nov 1994 08:49:37 GMT";
        let other = "Content-Range: bytes 20-29/30; Last-Modified: Sun, 06 Nov 1994 08:49:08 GMT";
        let (joined, _) = join_asked(dated, "Content-Range: bytes 20-29/30", 10, true).unwrap();
        assert!(joined.validators().last_modified_s.is_some(), "it stays for the next part");
        for (stored, fields, if_range) in [
            (dated, "Content-Range: bytes 20-29/30", false),
            (dated, other, true),
            (dated, "Content-Range: bytes 20-29/30; ETag: \"a\"", true),
            (STORED, "Content-Range: bytes 20-29/30", true),
        ] {
            assert_eq!(join_asked(stored, fields, 10, if_range).unwrap_err(), "other-version", "{fields}");
        }
        assert_eq!(join_asked(dated, "Content-Range: bytes 20-29/31", 10, true).unwrap_err(), "other-length");
    }
}
