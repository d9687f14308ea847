//! Which responses are stored, and why others are not (RFC 9111 section 3).

use super::freshness::Freshness;
use super::{Delta, RequestDirectives, ResponseDirectives, RouteRules, Times, Validators, VaryRefusal};
use baton_http::origin::ResponseHead;
use baton_http::{ContentRange, Method, RequestHead, Status};

baton_http::reasons! {
    /// Why a response is not stored, in the order in which reasons are looked for. One word is the field of logs and the label of
    /// metrics.
    NotStored {
        /// The response answers another method than GET.
        Method => "method",
            "only responses to GET are stored";
        /// The request has content, which is not in the key.
        RequestBody => "request-body",
            "the request has a body, which no key has";
        /// The request forbids it (RFC 9111 section 5.2.1.5).
        RequestNoStore => "request-no-store",
            "the request says no-store";
        /// An interim response, a 304, or a 416: none is a representation.
        Status => "status",
            "a response with this status is not stored";
        /// `must-understand` with a status whose rules the server does not know (RFC 9111 section 5.2.2.3).
        MustUnderstand => "must-understand",
            "the response says must-understand, and its status is not known";
        /// A field of cache control can be read in two ways.
        Malformed => "malformed",
            "a quoted string of Cache-Control does not end where its directive does";
        /// `no-store`.
        NoStore => "no-store",
            "the response says no-store";
        /// `private`.
        Private => "private",
            "the response says private";
        /// The request has Authorization, and the response does not say that others may have it (RFC 9111 section 3.5).
        Authorization => "authorization",
            "the request has Authorization, and the response says none of public, s-maxage, must-revalidate";
        /// The response sets a cookie, which belongs to one client.
        SetCookie => "set-cookie",
            "the response sets a cookie";
        /// The request has a cookie, and the response says nothing about how long it is fresh: it may be that client's.
        Cookie => "cookie",
            "the request has a cookie, and the response does not say how long it is fresh";
        /// `Vary: *`.
        VaryStar => "vary-star",
            "the response says Vary: *";
        /// Vary names more than the secondary key has room for.
        VaryTooLong => "vary-too-long",
            "the fields that Vary names are too many or too long";
        /// Content-Range is missing in a 206, is malformed, contradicts Content-Length, or has several parts.
        ContentRange => "content-range",
            "the response is a part, and does not say which";
        /// A part that no other can be joined to (RFC 9111 section 3.4).
        WeakPart => "weak-part",
            "the response is a part, and has no strong validator";
        /// The response has more groups and tags than are kept.
        LabelsTooMany => "labels-too-many",
            "the response has too many groups or tags";
        /// The response is stale from the beginning and has no validator.
        Unusable => "unusable",
            "the response is not fresh, and has no validator";
    }
}

impl NotStored {
    /// Whether the reason is one client's request, not the response: what is stored for others stays.
    pub const fn is_of_the_request(self) -> bool {
        matches!(
            self,
            Self::Method | Self::RequestBody | Self::RequestNoStore | Self::Authorization | Self::Cookie
        )
    }
}

impl From<VaryRefusal> for NotStored {
    fn from(refusal: VaryRefusal) -> Self {
        match refusal {
            VaryRefusal::Star => Self::VaryStar,
            VaryRefusal::TooLong => Self::VaryTooLong,
        }
    }
}

/// A response that has just come from an origin.
#[derive(Debug)]
pub struct Fetched<'a> {
    /// The request that it answers: the client's, without the conditions and ranges of the cache itself.
    pub request: &'a RequestHead<'a>,
    /// Its head.
    pub head: ResponseHead,
    /// When it was asked for, and when it came.
    pub times: Times,
}

/// Judges the request that is answered.
pub(super) fn judge_request(request: &RequestHead<'_>) -> Result<(), NotStored> {
    if request.method != Method::Get {
        return Err(NotStored::Method);
    }
    if request.framing.is_empty() { Ok(()) } else { Err(NotStored::RequestBody) }
}

/// Judges everything else but Vary and freshness.
pub(super) fn judge(
    rules: &RouteRules,
    fetched: &Fetched<'_>,
    directives: &ResponseDirectives,
) -> Result<(), NotStored> {
    let (request, head) = (fetched.request, &fetched.head);
    let understands = is_understood(head.status());
    let refusals = [
        (rules.obeys_requests && RequestDirectives::of(request).no_store, NotStored::RequestNoStore),
        (head.status().code() < 200 || matches!(head.status().code(), 304 | 416), NotStored::Status),
        (directives.must_understand && !understands, NotStored::MustUnderstand),
        (directives.is_malformed, NotStored::Malformed),
        // RFC 9111 section 5.2.2.3: no-store is for those who do not understand.
        (directives.no_store && !(directives.must_understand && understands), NotStored::NoStore),
        (directives.private, NotStored::Private),
        (request.field("Authorization").is_some() && !is_for_others(directives), NotStored::Authorization),
        (!rules.stores_set_cookie && sets_cookie(head, directives), NotStored::SetCookie),
    ];
    match refusals.into_iter().find(|(is_broken, _)| *is_broken) {
        Some((_, reason)) => Err(reason),
        None => judge_part(head),
    }
}

/// Judges what depends on freshness.
pub(super) fn judge_freshness(
    fetched: &Fetched<'_>,
    directives: &ResponseDirectives,
    freshness: &Freshness,
) -> Result<(), NotStored> {
    let is_told = freshness.is_explicit() || directives.public;
    if !is_told && fetched.request.field("Cookie").is_some() {
        return Err(NotStored::Cookie);
    }
    let is_usable = freshness.is_ever_usable() || !Validators::of(&fetched.head).is_empty();
    if is_usable { Ok(()) } else { Err(NotStored::Unusable) }
}

/// RFC 9111 section 3.5.
fn is_for_others(directives: &ResponseDirectives) -> bool {
    directives.public || directives.must_revalidate || directives.s_maxage != Delta::Absent
}

fn sets_cookie(head: &ResponseHead, directives: &ResponseDirectives) -> bool {
    let is_cookie = |name: &[u8]| name.eq_ignore_ascii_case(b"Set-Cookie");
    head.fields().any(|(name, _)| is_cookie(name)) && !directives.withheld.iter().any(|name| is_cookie(name))
}

/// RFC 9111 sections 3.3 and 3.4.
fn judge_part(head: &ResponseHead) -> Result<(), NotStored> {
    if head.status() != Status::PARTIAL_CONTENT {
        return Ok(());
    }
    let part = head.field("Content-Range").and_then(ContentRange::parse).ok_or(NotStored::ContentRange)?;
    if head.content_length().is_some_and(|length| length != part.range.len()) {
        return Err(NotStored::ContentRange);
    }
    Validators::of(head).strong_field().map(|_| ()).ok_or(NotStored::WeakPart)
}

/// Statuses whose rules of caching are those of RFC 9110 section 15 and RFC 6585, and are all followed here.
const fn is_understood(status: Status) -> bool {
    matches!(
        status.code(),
        200..=206 | 300..=303 | 305 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 428 | 429 | 431 | 451 | 500..=505 | 511
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Stored;
    use crate::rules::fixture::{fetched, response, with_request};

    fn store(
        rules: &RouteRules,
        method: &str,
        request: &str,
        response: ResponseHead,
    ) -> Result<Stored, NotStored> {
        with_request(method, request, |request| Stored::of(rules, fetched(request, response, 0)))
    }

    fn reason(request: &str, status: u16, fields: &str) -> Option<&'static str> {
        let stored = store(&RouteRules::default(), "GET", request, response(status, fields));
        stored.err().map(NotStored::label)
    }

    #[test]
    fn rfc9111_3_what_may_be_stored() {
        const FRESH: &str = "Cache-Control: max-age=60";
        for (request, status, fields, expected) in [
            ("", 200, FRESH, None),
            ("", 599, FRESH, None),
            ("", 302, FRESH, None),
            ("", 304, FRESH, Some("status")),
            ("", 103, FRESH, Some("status")),
            ("", 416, FRESH, Some("status")),
            ("Content-Length: 1", 200, FRESH, Some("request-body")),
            ("Cache-Control: no-store", 200, FRESH, Some("request-no-store")),
            ("", 200, "Cache-Control: max-age=60, no-store", Some("no-store")),
            ("", 200, "Cache-Control: max-age=60, private", Some("private")),
            ("", 200, "Cache-Control: max-age=60, private=\"A\"", None),
            ("", 200, "Cache-Control: max-age=60, a=\"b", Some("malformed")),
            ("", 200, "Cache-Control: max-age=60; Vary: *", Some("vary-star")),
            ("", 200, "Cache-Control: no-cache; ETag: \"a\"", None),
            ("", 200, "Cache-Control: no-cache", Some("unusable")),
            ("", 200, "Cache-Control: max-age=0", Some("unusable")),
            ("", 200, "Cache-Control: max-age=0, stale-while-revalidate=5", None),
            ("", 200, "Cache-Control: max-age=60; Age: 60", Some("unusable")),
            ("", 200, "A: b", Some("unusable")),
            ("", 404, "A: b", None),
            ("", 403, "A: b", Some("unusable")),
            ("", 503, "A: b", Some("unusable")),
        ] {
            assert_eq!(reason(request, status, fields), expected, "{request} {status} {fields}");
        }
        for method in ["HEAD", "POST", "get"] {
            let stored = store(&RouteRules::default(), method, "", response(200, FRESH));
            assert_eq!(stored, Err(NotStored::Method), "{method}");
        }
    }

    #[test]
    fn rfc9111_3_5_authorization_needs_a_word() {
        for (directives, expected) in [
            ("max-age=60", Some("authorization")),
            ("max-age=60, public", None),
            ("s-maxage=60", None),
            ("max-age=60, must-revalidate", None),
            ("max-age=60, proxy-revalidate", Some("authorization")),
            ("max-age=60, public=\"no\"", Some("authorization")),
        ] {
            assert_eq!(
                reason("Authorization: Basic x", 200, &format!("Cache-Control: {directives}")),
                expected,
                "{directives}"
            );
        }
    }

    #[test]
    fn rfc9111_5_2_2_3_must_understand() {
        assert_eq!(reason("", 599, "Cache-Control: max-age=60, must-understand"), Some("must-understand"));
        assert_eq!(reason("", 200, "Cache-Control: max-age=60, must-understand, no-store"), None);
        assert_eq!(reason("", 599, "Cache-Control: max-age=60, no-store"), Some("no-store"));
    }

    #[test]
    fn cookies_are_not_shared() {
        let with_cookie = "Cookie: a=b";
        let cookie = "Cache-Control: max-age=60; Set-Cookie: a=b";
        assert_eq!(reason("", 200, cookie), Some("set-cookie"));
        assert_eq!(
            reason("", 200, "Cache-Control: max-age=60, no-cache=\"set-cookie\"; Set-Cookie: a=b"),
            None
        );
        let rules = RouteRules { stores_set_cookie: true, ..RouteRules::default() };
        assert!(store(&rules, "GET", "", response(200, cookie)).is_ok());
        assert_eq!(reason(with_cookie, 200, "Cache-Control: max-age=60"), None);
        assert_eq!(reason(with_cookie, 200, "Last-Modified: Sat, 05 Nov 1994 08:49:37 GMT"), Some("cookie"));
        assert_eq!(reason("", 200, "Last-Modified: Sat, 05 Nov 1994 08:49:37 GMT"), None);
        assert_eq!(reason(with_cookie, 404, "A: b"), Some("cookie"));
    }

    #[test]
    fn rfc9111_3_4_parts_need_a_place_and_a_strong_validator() {
        const FRESH: &str = "Cache-Control: max-age=60";
        for (fields, expected) in [
            ("ETag: \"a\"; Content-Range: bytes 0-9/30", None),
            ("ETag: \"a\"; Content-Range: bytes 0-9/*", None),
            ("ETag: \"a\"; Content-Range: bytes 0-8/30", Some("content-range")),
            ("ETag: \"a\"; Content-Range: bytes 0-9/9", Some("content-range")),
            ("ETag: \"a\"; Content-Type: multipart/byteranges", Some("content-range")),
            ("ETag: W/\"a\"; Content-Range: bytes 0-9/30", Some("weak-part")),
            ("Content-Range: bytes 0-9/30", Some("weak-part")),
        ] {
            assert_eq!(reason("", 206, &format!("{FRESH}; {fields}")), expected, "{fields}");
        }
    }

    #[test]
    fn rfc9213_2_2_the_targeted_field_decides_alone() {
        let cdn = "CDN-Cache-Control: max-age=60; Cache-Control: no-store, private; Expires: 0";
        assert_eq!(reason("", 200, cdn), None);
        assert_eq!(
            reason("", 200, "CDN-Cache-Control: no-store; Cache-Control: max-age=60"),
            Some("no-store")
        );
        let expires = "CDN-Cache-Control: public; Expires: Sun, 06 Nov 1994 09:49:37 GMT";
        assert_eq!(reason("", 200, expires), Some("unusable"));
    }
}
