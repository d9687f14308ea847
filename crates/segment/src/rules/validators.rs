//! What tells one version of a representation from another (RFC 9110 section 8.8).

use baton_http::origin::ResponseHead;
use baton_http::{EntityTag, parse_date};

/// The validators of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validators<'a> {
    /// Its entity tag, strong or weak.
    pub etag: Option<EntityTag<'a>>,
    /// The fields as sent: ETag if it is well-formed, Last-Modified if it is a date.
    pub etag_field: Option<&'a [u8]>,
    /// See `etag_field`.
    pub last_modified_field: Option<&'a [u8]>,
    /// Last-Modified, in seconds since 1970.
    pub last_modified_s: Option<u64>,
    /// Date, in seconds since 1970.
    pub date_s: Option<u64>,
}

impl<'a> Validators<'a> {
    /// The validators of a head. Walks over it once.
    pub fn of(head: &'a ResponseHead) -> Self {
        let mut validators = Self::default();
        for (name, value) in head.fields() {
            match name.len() {
                4 if name.eq_ignore_ascii_case(b"ETag") && validators.etag.is_none() => {
                    validators.etag = EntityTag::of_field(value);
                    validators.etag_field = validators.etag.map(|_| value);
                }
                4 if name.eq_ignore_ascii_case(b"Date") && validators.date_s.is_none() => {
                    validators.date_s = parse_date(value);
                }
                13 if name.eq_ignore_ascii_case(b"Last-Modified") && validators.last_modified_s.is_none() => {
                    validators.last_modified_s = parse_date(value);
                    validators.last_modified_field = validators.last_modified_s.map(|_| value);
                }
                _ => {}
            }
        }
        validators
    }

    /// Whether there is any.
    pub const fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified_s.is_none()
    }

    /// The field value for If-Range that promises equal bytes: a strong tag, or a date that is at least a second before
    /// Date (RFC 9110 section 8.8.2.2).
    pub fn strong_field(&self) -> Option<&'a [u8]> {
        match self.etag {
            Some(etag) => self.etag_field.filter(|_| !etag.is_weak()),
            None => self.last_modified_field.filter(|_| self.last_modified_s < self.date_s),
        }
    }

    /// Whether both are of the same bytes: their parts may be combined (RFC 9110 section 15.3.7.3).
    pub fn promise_same_bytes(&self, other: &Validators<'_>) -> bool {
        match (self.etag, other.etag) {
            (Some(one), Some(two)) => one.matches_strongly(two),
            (None, None) => {
                let are_strong = self.strong_field().is_some() && other.strong_field().is_some();
                are_strong && self.last_modified_s == other.last_modified_s
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_http::Status;

    fn head(fields: &str) -> ResponseHead {
        ResponseHead::of_lines(fields.as_bytes().to_vec(), Status::OK, b"", None, |_| true)
    }

    const AT: &str = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\n";
    const DATE_AT: &str = "Date: Sun, 06 Nov 1994 08:49:37 GMT\n";
    const DATE_AFTER: &str = "Date: Sun, 06 Nov 1994 08:49:38 GMT\n";

    #[test]
    fn rfc9110_8_8_2_2_a_date_is_strong_after_a_second() {
        for (fields, expected) in [
            (String::from("ETag: \"a\"\n"), Some(&b"\"a\""[..])),
            ("ETag: W/\"a\"\n".into(), None),
            (format!("ETag: W/\"a\"\n{AT}{DATE_AFTER}"), None),
            ("ETag: a\n".into(), None),
            (AT.into(), None),
            (format!("{AT}{DATE_AT}"), None),
            (format!("{DATE_AFTER}{AT}"), Some(b"Sun, 06 Nov 1994 08:49:37 GMT")),
            (format!("ETag: a\n{DATE_AFTER}{AT}"), Some(b"Sun, 06 Nov 1994 08:49:37 GMT")),
        ] {
            assert_eq!(Validators::of(&head(&fields)).strong_field(), expected, "{fields}");
        }
        assert!(Validators::of(&head("ETag: a\nLast-Modified: b\nDate: c\n")).is_empty());
    }

    #[test]
    fn rfc9110_15_3_7_3_only_strong_validators_promise_the_same_bytes() {
        let dated = format!("{AT}{DATE_AFTER}");
        let both = format!("ETag: \"a\"\n{dated}");
        for (one, other, expected) in [
            ("ETag: \"a\"\n", "ETag: \"a\"\n", true),
            ("ETag: \"a\"\n", "ETag: \"b\"\n", false),
            ("ETag: W/\"a\"\n", "ETag: \"a\"\n", false),
            ("ETag: W/\"a\"\n", "ETag: W/\"a\"\n", false),
            (&dated, &dated, true),
            (&dated, AT, false),
            (&both, &dated, false),
            (&both, "ETag: \"a\"\n", true),
            ("", "", false),
        ] {
            let (one, other) = (head(one), head(other));
            let (one, other) = (Validators::of(&one), Validators::of(&other));
            assert_eq!(one.promise_same_bytes(&other), expected, "{one:?} {other:?}");
            assert_eq!(other.promise_same_bytes(&one), expected);
        }
    }
}
