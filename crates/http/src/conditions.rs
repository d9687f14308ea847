//! Conditional requests (RFC 9110 section 13).

use crate::fields::field_lines;
use crate::{ETag, EntityTag, Method, parse_date};

/// The conditions of a request: the unevaluated values of the five fields.
///
/// A repeated date or If-Range is present but empty, and ignored like any malformed one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions<'a> {
    /// The first If-Match line.
    pub if_match: Option<&'a [u8]>,
    /// The first If-None-Match line.
    pub if_none_match: Option<&'a [u8]>,
    /// If-Modified-Since.
    pub if_modified_since: Option<&'a [u8]>,
    /// If-Unmodified-Since.
    pub if_unmodified_since: Option<&'a [u8]>,
    /// If-Range: no precondition, but a condition of [`range_applies`](Self::range_applies).
    pub if_range: Option<&'a [u8]>,
    /// All field lines of the request, if a list of tags continues in a second line: rare, and parsed again then.
    section: Option<&'a [u8]>,
}

/// The result of a request's preconditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Perform the method.
    Proceed,
    /// Answer 304: the client's copy is current.
    NotModified,
    /// Answer 412.
    Failed,
}

impl<'a> Conditions<'a> {
    /// All that there is, in the order of the declaration.
    pub(crate) fn parts(&self) -> [Option<&'a [u8]>; 6] {
        let Self { if_match, if_none_match, if_modified_since, if_unmodified_since, if_range, section } =
            *self;
        [if_match, if_none_match, if_modified_since, if_unmodified_since, if_range, section]
    }

    pub(crate) fn of_parts(parts: [Option<&'a [u8]>; 6]) -> Self {
        let [if_match, if_none_match, if_modified_since, if_unmodified_since, if_range, section] = parts;
        Self { if_match, if_none_match, if_modified_since, if_unmodified_since, if_range, section }
    }

    pub(crate) fn add_if_match(&mut self, value: &'a [u8], section: &'a [u8]) {
        if self.if_match.replace(self.if_match.unwrap_or(value)).is_some() {
            self.section = Some(section);
        }
    }

    pub(crate) fn add_if_none_match(&mut self, value: &'a [u8], section: &'a [u8]) {
        if self.if_none_match.replace(self.if_none_match.unwrap_or(value)).is_some() {
            self.section = Some(section);
        }
    }

    /// Whether the request has no precondition: nothing to [`evaluate`](Self::evaluate).
    pub const fn is_empty(&self) -> bool {
        self.if_match.is_none()
            && self.if_none_match.is_none()
            && self.if_modified_since.is_none()
            && self.if_unmodified_since.is_none()
    }

    /// Evaluates the preconditions in the order of RFC 9110 section 13.2.2, for a representation that
    /// exists, with its (strong) tag and the second in which it was last modified. Without one, dates count for nothing.
    pub fn evaluate(&self, method: Method, etag: &ETag, modified_unix_seconds: Option<u64>) -> Precondition {
        let etag = etag.as_tag();
        let reads = matches!(method, Method::Get | Method::Head);
        if let Some(first) = self.if_match {
            if !self.any_tag("If-Match", first, |tag| tag.matches_strongly(etag)) {
                return Precondition::Failed;
            }
        } else if let Some(limit) = self.if_unmodified_since.and_then(parse_date)
            && modified_unix_seconds.is_some_and(|modified| modified > limit)
        {
            return Precondition::Failed;
        }
        if self.names_current(Some(etag), modified_unix_seconds) {
            match (self.if_none_match, reads) {
                (_, true) => return Precondition::NotModified,
                (Some(_), false) => return Precondition::Failed,
                // If-Modified-Since is about reading only.
                (None, false) => {}
            }
        }
        Precondition::Proceed
    }

    /// Whether If-None-Match, or else If-Modified-Since, says that the client has the representation with this tag and
    /// date: the part of the evaluation that a cache does (RFC 9111 section 4.3.2).
    pub fn names_current(&self, etag: Option<EntityTag<'_>>, modified_unix_seconds: Option<u64>) -> bool {
        match self.if_none_match {
            Some(first) => {
                self.any_tag("If-None-Match", first, |tag| etag.is_some_and(|etag| tag.matches_weakly(etag)))
            }
            None => {
                let limit = self.if_modified_since.and_then(parse_date);
                limit.zip(modified_unix_seconds).is_some_and(|(limit, modified)| modified <= limit)
            }
        }
    }

    /// Whether the Range field applies: there is no If-Range, or it names this representation, by strong comparison
    /// of the tag or by exactly its date (RFC 9110 section 13.1.5).
    ///
    /// `now_unix_seconds` is the Date of the response. A date that is not at least a second older matches nothing:
    /// the file may change again within that second (section 8.8.2.2).
    pub fn range_applies(
        &self,
        etag: &ETag,
        modified_unix_seconds: Option<u64>,
        now_unix_seconds: u64,
    ) -> bool {
        self.range_names(Some(etag.as_tag()), modified_unix_seconds, now_unix_seconds)
    }

    /// Whether the Range field applies to a representation of another server.
    /// It may lack a tag or a date; its tag may be weak.
    pub fn range_names(
        &self,
        etag: Option<EntityTag<'_>>,
        modified_unix_seconds: Option<u64>,
        date_unix_seconds: u64,
    ) -> bool {
        let Some(value) = self.if_range else {
            return true;
        };
        match EntityTag::parse(value) {
            Some((tag, rest)) => rest.is_empty() && etag.is_some_and(|etag| tag.matches_strongly(etag)),
            None => modified_unix_seconds
                .is_some_and(|modified| modified < date_unix_seconds && parse_date(value) == Some(modified)),
        }
    }

    /// Whether a tag of the list matches, or the list is `*`. Where a list is malformed it ends.
    fn any_tag(&self, name: &str, first: &[u8], matches: impl Fn(EntityTag<'_>) -> bool) -> bool {
        match self.section {
            None => line_has(first, &matches),
            Some(section) => field_lines(section)
                .filter(|(field, _)| field.eq_ignore_ascii_case(name))
                .any(|(_, line)| line_has(line, &matches)),
        }
    }
}

fn line_has(line: &[u8], matches: impl Fn(EntityTag<'_>) -> bool) -> bool {
    if line == b"*" {
        return true;
    }
    let mut rest = line;
    loop {
        // Lists may have empty members (RFC 9110 section 5.6.1.2).
        let start = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b','));
        let Some((tag, tail)) = start.and_then(|start| EntityTag::parse(&rest[start..])) else {
            return false;
        };
        if !matches!(tail.trim_ascii_start(), [] | [b',', ..]) {
            return false;
        }
        if matches(tag) {
            return true;
        }
        rest = tail;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HeadLimits, RequestHead};

    const MODIFIED: u64 = 784_111_777;
    const AT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    /// The result for a request with these field lines; `TAG` stands for the current tag.
    fn verdict(method: &str, fields: &[(&str, &str)]) -> Precondition {
        with_conditions(method, fields, |method, conditions, etag| {
            conditions.evaluate(method, etag, Some(MODIFIED))
        })
    }

    fn with_conditions<T>(
        method: &str,
        fields: &[(&str, &str)],
        ask: impl Fn(Method, Conditions<'_>, &ETag) -> T,
    ) -> T {
        let etag = crate::FileState { size: 3, modified: (1 << 30, 5), changed: (0, 0), inode: 2 }.etag();
        let tag = String::from_utf8_lossy(etag.as_ref()).into_owned();
        let lines: String = fields
            .iter()
            .map(|(name, value)| format!("{name}: {}\r\n", value.replace("TAG", &tag)))
            .collect();
        let text = format!("{method} / HTTP/1.1\r\nHost: x\r\n{lines}\r\n");
        let head = RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap();
        ask(head.method, head.conditions, &etag)
    }

    #[test]
    fn each_field_alone() {
        use Precondition::{Failed, NotModified, Proceed};
        for (method, name, value, expected) in [
            ("GET", "If-Match", "TAG", Proceed),
            ("GET", "If-Match", "*", Proceed),
            ("GET", "If-Match", "\"a\" ,, TAG", Proceed),
            ("GET", "If-Match", "\"a\"", Failed),
            ("GET", "If-Match", "W/TAG", Failed),
            ("GET", "If-Match", "", Failed),
            ("GET", "If-Match", "\"a\" TAG", Failed),
            ("GET", "If-Match", "junk, TAG", Failed),
            ("GET", "If-None-Match", "TAG", NotModified),
            ("HEAD", "If-None-Match", "TAG", NotModified),
            ("PUT", "If-None-Match", "TAG", Failed),
            ("GET", "If-None-Match", "*", NotModified),
            ("GET", "If-None-Match", "W/TAG", NotModified),
            ("GET", "If-None-Match", "\"a,b\",W/\"c\", TAG", NotModified),
            ("GET", "If-None-Match", "\"a\"", Proceed),
            ("GET", "If-None-Match", "w/TAG", Proceed),
            ("GET", "If-None-Match", "\"*\"", Proceed),
            ("GET", "If-None-Match", "\"a\", *", Proceed),
            ("GET", "If-Modified-Since", AT, NotModified),
            ("HEAD", "If-Modified-Since", AFTER, NotModified),
            ("GET", "If-Modified-Since", BEFORE, Proceed),
            ("POST", "If-Modified-Since", AT, Proceed),
            ("GET", "If-Modified-Since", "yesterday", Proceed),
            ("GET", "If-Unmodified-Since", AT, Proceed),
            ("GET", "If-Unmodified-Since", AFTER, Proceed),
            ("GET", "If-Unmodified-Since", BEFORE, Failed),
            ("PUT", "If-Unmodified-Since", BEFORE, Failed),
            ("GET", "If-Unmodified-Since", "yesterday", Proceed),
            ("GET", "If-Range", "\"a\"", Proceed),
        ] {
            assert_eq!(verdict(method, &[(name, value)]), expected, "{method} {name}: {value}");
        }
    }

    #[test]
    fn the_order_of_precedence() {
        use Precondition::{Failed, NotModified, Proceed};
        for (fields, expected) in [
            // If-Match hides If-Unmodified-Since.
            (&[("If-Match", "TAG"), ("If-Unmodified-Since", BEFORE)][..], Proceed),
            // If-None-Match hides If-Modified-Since.
            (&[("If-None-Match", "\"a\""), ("If-Modified-Since", AT)], Proceed),
            (&[("If-None-Match", "TAG"), ("If-Modified-Since", BEFORE)], NotModified),
            // A failed If-Match comes before a matching If-None-Match, a true one lets it speak.
            (&[("If-None-Match", "TAG"), ("If-Match", "\"a\"")], Failed),
            (&[("If-None-Match", "TAG"), ("If-Match", "TAG")], NotModified),
            (&[("If-Unmodified-Since", BEFORE), ("If-None-Match", "TAG")], Failed),
            (&[("If-Unmodified-Since", AT), ("If-Modified-Since", AT)], NotModified),
        ] {
            assert_eq!(verdict("GET", fields), expected, "{fields:?}");
        }
    }

    #[test]
    fn lists_go_on_in_further_lines_and_dates_do_not() {
        use Precondition::{Failed, NotModified, Proceed};
        for (fields, expected) in [
            (&[("If-None-Match", "\"a\""), ("if-none-match", "TAG")][..], NotModified),
            (&[("If-None-Match", "TAG"), ("If-None-Match", "\"a\"")], NotModified),
            (&[("If-None-Match", "\"a\""), ("If-None-Match", "\"b\"")], Proceed),
            (&[("If-Match", "\"a\""), ("X", "TAG"), ("If-Match", "TAG")], Proceed),
            (&[("If-Match", "\"a\""), ("X", "TAG"), ("If-Match", "\"b\"")], Failed),
            (&[("If-Match", "TAG"), ("If-None-Match", "\"a\""), ("If-None-Match", "\"b\"")], Proceed),
            (&[("If-Modified-Since", AT), ("If-Modified-Since", AT)], Proceed),
            (&[("If-Unmodified-Since", BEFORE), ("If-Unmodified-Since", BEFORE)], Proceed),
        ] {
            assert_eq!(verdict("GET", fields), expected, "{fields:?}");
        }
    }

    #[test]
    fn a_range_applies_to_exactly_the_representation_it_names() {
        for (lines, expected) in [
            (&[][..], true),
            (&["TAG"], true),
            (&["W/TAG"], false),
            (&["\"a\""], false),
            (&["TAG, TAG"], false),
            (&["*"], false),
            (&[""], false),
            (&[AT], true),
            (&["Sunday, 06-Nov-94 08:49:37 GMT"], true),
            (&[BEFORE], false),
            (&[AFTER], false),
            (&["TAG", "TAG"], false),
        ] {
            let fields: Vec<_> = lines.iter().map(|line| ("If-Range", *line)).collect();
            let applies = with_conditions("GET", &fields, |_, conditions, etag| {
                assert!(conditions.is_empty(), "If-Range is no precondition");
                conditions.range_applies(etag, Some(MODIFIED), MODIFIED + 1)
            });
            assert_eq!(applies, expected, "{lines:?}");
        }
    }

    #[test]
    fn the_date_of_a_file_that_may_change_within_its_second_names_nothing() {
        for (value, now, expected) in [
            (AT, MODIFIED + 1, true),
            (AT, MODIFIED, false),
            // A file from the future, or a clock that was put back.
            (AT, MODIFIED - 1, false),
            ("TAG", MODIFIED, true),
        ] {
            let applies = with_conditions("GET", &[("If-Range", value)], |_, conditions, etag| {
                conditions.range_applies(etag, Some(MODIFIED), now)
            });
            assert_eq!(applies, expected, "{value} at {now}");
        }
    }
}
