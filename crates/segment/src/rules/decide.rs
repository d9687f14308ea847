//! What is done with a request, given what is stored (RFC 9111 section 4, RFC 5861).

use super::{Forward, Freshness, RequestDirectives, RouteRules, Stored};
use baton_http::origin::upgrade_of;
use baton_http::{Method, RequestHead, Status};

/// A request that the cache may answer.
#[derive(Clone, Copy, Debug)]
pub struct CacheRequest<'a> {
    /// Its head.
    pub head: &'a RequestHead<'a>,
    /// Its directives; none if the route does not obey them.
    pub directives: RequestDirectives,
}

baton_http::reasons! {
    /// Why a request goes to the origin without a look into the cache. Its answer is not stored.
    Bypass {
        /// Neither GET nor HEAD.
        Method => "method";
        /// The request has content, which the key lacks.
        Body => "body";
        /// The request asks to switch protocols.
        Upgrade => "upgrade";
        /// If-Match or If-Unmodified-Since, which only the origin evaluates (RFC 9111 section 4.3.2).
        Precondition => "precondition";
        /// Its path has no one form that could be a key.
        Path => "path";
        /// Its fields that would be a part of the key are too long.
        Fields => "fields";
        /// The configuration says so.
        Rule => "rule";
    }
}

impl Bypass {
    /// The word of Cache-Status.
    pub const fn forward(self) -> Forward {
        match self {
            Self::Method => Forward::Method,
            Self::Body | Self::Upgrade | Self::Precondition | Self::Path | Self::Fields | Self::Rule => {
                Forward::Bypass
            }
        }
    }
}

impl<'a> CacheRequest<'a> {
    /// Judges a request on a cached route.
    ///
    /// # Errors
    /// Why the cache has nothing to do with it.
    pub fn of(rules: &RouteRules, head: &'a RequestHead<'a>) -> Result<Self, Bypass> {
        if !matches!(head.method, Method::Get | Method::Head) {
            return Err(Bypass::Method);
        }
        if !head.framing.is_empty() {
            return Err(Bypass::Body);
        }
        if upgrade_of(head).is_some() {
            return Err(Bypass::Upgrade);
        }
        if head.conditions.if_match.is_some() || head.conditions.if_unmodified_since.is_some() {
            return Err(Bypass::Precondition);
        }
        let directives =
            if rules.obeys_requests { RequestDirectives::of(head) } else { RequestDirectives::default() };
        Ok(Self { head, directives })
    }

    /// Why a response that may be used is not used for this client.
    fn wants_more(&self, freshness: &Freshness, now_s: u64) -> bool {
        let wishes = &self.directives;
        let (age_s, ttl_s) = (freshness.age_s(now_s), freshness.ttl_s(now_s));
        // A client that takes stale responses takes old ones, too, but none older than it says.
        wishes.no_cache
            || wishes.max_age.is_some_and(|max_age_s| age_s > max_age_s)
            || wishes.min_fresh.is_some_and(|min_fresh_s| ttl_s < min_fresh_s.into())
    }

    /// Whether a stored response stands in for an origin that has failed, with `status` or without an answer.
    pub fn takes_instead_of_error(&self, stored: &Stored, status: Option<Status>, now_s: u64) -> bool {
        let asked_s = self.directives.stale_if_error;
        let freshness = stored.freshness();
        let may = match status.map(Status::code) {
            None => freshness.is_usable_if_unreachable(now_s, asked_s),
            Some(500 | 502 | 503 | 504) => freshness.is_usable_if_error(now_s, asked_s),
            Some(_) => false,
        };
        may && !self.directives.no_cache
    }
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision<'s> {
    /// Answer from the store.
    Serve(Hit<'s>),
    /// Ask the origin first whether this response is current.
    Revalidate(&'s Stored, Forward),
    /// Ask the origin for a response.
    Fetch(Forward),
    /// Answer 504: the client wants nothing but what is here (RFC 9111 section 5.2.1.7).
    NotCached(Forward),
}

/// An answer from the store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit<'s> {
    /// The response.
    pub stored: &'s Stored,
    /// Its age in seconds, for the Age field.
    pub age_s: u32,
    /// How many seconds it stays fresh; negative if it is stale.
    pub ttl_s: i64,
    /// What of it goes to the client.
    pub answer: Answer,
    /// Whether the response is stale: revalidate it once, while clients get it (RFC 5861 section 3).
    pub revalidates: bool,
}

/// What of a stored response goes to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// 304: the client has it. See [`belongs_in_304`](super::belongs_in_304).
    NotModified,
    /// All of it.
    Whole,
    /// What the Range field selects.
    Ranges,
}

/// Decides about a request. `variants`: all that is stored for its key and was not purged.
///
/// Allocates nothing.
pub fn decide<'s>(
    asked: &CacheRequest<'_>,
    variants: impl Iterator<Item = &'s Stored>,
    now_s: u64,
) -> Decision<'s> {
    let mut miss = Forward::UriMiss;
    let mut newest: Option<&Stored> = None;
    for stored in variants {
        miss = Forward::VaryMiss;
        // RFC 9111 section 4: the most recent one by Date.
        let order = |stored: &Stored| (stored.freshness().date_s(), stored.freshness().received_s());
        if stored.variant().matches(asked.head) && newest.is_none_or(|newest| order(newest) <= order(stored))
        {
            newest = Some(stored);
        }
    }
    let only_if_cached = asked.directives.only_if_cached;
    let Some(stored) = newest else {
        return if only_if_cached { Decision::NotCached(miss) } else { Decision::Fetch(miss) };
    };

    let freshness = stored.freshness();
    let max_stale_s = asked.directives.max_stale;
    let serve = |revalidates| Decision::Serve(Hit::of(asked, stored, now_s, revalidates));
    let why = if freshness.is_fresh(now_s) { Forward::Request } else { Forward::Stale };
    if asked.wants_more(freshness, now_s) {
        // Below.
    } else if why == Forward::Request {
        return serve(false);
    } else if freshness.is_usable_while_revalidated(now_s) {
        return serve(true);
    } else if max_stale_s.is_some_and(|seconds| freshness.is_usable_for_max_stale(now_s, seconds)) {
        return serve(false);
    }
    if only_if_cached { Decision::NotCached(why) } else { Decision::Revalidate(stored, why) }
}

impl<'s> Hit<'s> {
    /// The answer from a stored response that was found usable: by [`decide`], or by a validation since then.
    pub fn of(asked: &CacheRequest<'_>, stored: &'s Stored, now_s: u64, revalidates: bool) -> Self {
        let freshness = stored.freshness();
        let answer = answer_of(asked.head, stored);
        Self { stored, age_s: freshness.age_s(now_s), ttl_s: freshness.ttl_s(now_s), answer, revalidates }
    }
}

/// RFC 9110 section 13.2.2 for a cache (RFC 9111 section 4.3.2): conditions are about successful responses only.
fn answer_of(request: &RequestHead<'_>, stored: &Stored) -> Answer {
    let has_condition =
        request.conditions.if_none_match.is_some() || request.conditions.if_modified_since.is_some();
    if stored.head().status() != Status::OK || !(has_condition || request.range.is_some()) {
        return Answer::Whole;
    }
    let validators = stored.validators();
    // Without Last-Modified its Date is the time to compare with.
    let date_s = stored.freshness().date_s();
    let modified_s = validators.last_modified_s.or(Some(date_s));
    if has_condition && request.conditions.names_current(validators.etag, modified_s) {
        Answer::NotModified
    } else if request.range.is_some()
        && request.conditions.range_names(validators.etag, validators.last_modified_s, date_s)
    {
        Answer::Ranges
    } else {
        Answer::Whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::fixture::{NOW_S, store, with_asked, with_request};

    /// The decision in words, `age_s` after the response with these fields came.
    fn decision(request: &str, response: &str, age_s: u64) -> String {
        let stored = store("", 200, response, 0).unwrap();
        with_asked(request, |asked| words(decide(asked, [&stored].into_iter(), NOW_S + age_s)))
    }

    fn words(decision: Decision<'_>) -> String {
        match decision {
            Decision::Serve(hit) => {
                let revalidates = if hit.revalidates { " and revalidate" } else { "" };
                format!("{:?} age={} ttl={}{revalidates}", hit.answer, hit.age_s, hit.ttl_s)
            }
            Decision::Revalidate(_, why) => format!("revalidate {}", why.label()),
            Decision::Fetch(why) => format!("fetch {}", why.label()),
            Decision::NotCached(why) => format!("504 {}", why.label()),
        }
    }

    #[test]
    fn rfc9111_4_2_fresh_responses_are_served_and_stale_ones_validated() {
        const FRESH: &str = "Cache-Control: max-age=10";
        assert_eq!(decision("", FRESH, 9), "Whole age=9 ttl=1");
        assert_eq!(decision("", FRESH, 10), "revalidate stale");
        assert_eq!(decision("", "Cache-Control: no-cache; ETag: \"a\"", 0), "revalidate stale");
        let swr = "Cache-Control: max-age=10, stale-while-revalidate=5";
        assert_eq!(decision("", swr, 14), "Whole age=14 ttl=-4 and revalidate");
        assert_eq!(decision("", swr, 15), "revalidate stale");
        assert_eq!(decision("Cache-Control: no-cache", swr, 14), "revalidate stale");
    }

    #[test]
    fn rfc9111_5_2_1_requests_have_their_wishes() {
        const FRESH: &str = "Cache-Control: max-age=10";
        for (request, age_s, expected) in [
            ("Cache-Control: no-cache", 0, "revalidate request"),
            ("Pragma: no-cache", 0, "revalidate request"),
            ("Cache-Control: max-age=4", 4, "Whole age=4 ttl=6"),
            ("Cache-Control: max-age=4", 5, "revalidate request"),
            ("Cache-Control: min-fresh=6", 4, "Whole age=4 ttl=6"),
            ("Cache-Control: min-fresh=7", 4, "revalidate request"),
            ("Cache-Control: max-stale", 9999, "Whole age=9999 ttl=-9989"),
            ("Cache-Control: max-stale=5", 14, "Whole age=14 ttl=-4"),
            ("Cache-Control: max-stale=5", 15, "revalidate stale"),
            ("Cache-Control: max-stale, max-age=12", 13, "revalidate stale"),
            ("Cache-Control: no-store", 1, "Whole age=1 ttl=9"),
            ("Cache-Control: only-if-cached", 1, "Whole age=1 ttl=9"),
            ("Cache-Control: only-if-cached", 10, "504 stale"),
            ("Cache-Control: only-if-cached, no-cache", 1, "504 request"),
        ] {
            assert_eq!(decision(request, FRESH, age_s), expected, "{request} {age_s}");
        }
        for words in ["must-revalidate", "proxy-revalidate", "s-maxage=10"] {
            let response = format!("Cache-Control: max-age=10, {words}");
            assert_eq!(decision("Cache-Control: max-stale", &response, 10), "revalidate stale", "{words}");
        }
        let nothing = |request| with_asked(request, |asked| words(decide(asked, [].into_iter(), NOW_S)));
        assert_eq!(nothing(""), "fetch uri-miss");
        assert_eq!(nothing("Cache-Control: only-if-cached"), "504 uri-miss");
    }

    #[test]
    fn requests_are_obeyed_only_where_the_route_says_so() {
        let stored = store("", 200, "Cache-Control: max-age=10", 0).unwrap();
        let rules = RouteRules { obeys_requests: false, ..RouteRules::default() };
        with_request("GET", "Cache-Control: no-cache, only-if-cached", |head| {
            let asked = CacheRequest::of(&rules, head).unwrap();
            assert_eq!(words(decide(&asked, [&stored].into_iter(), NOW_S)), "Whole age=0 ttl=10");
            assert_eq!(words(decide(&asked, [].into_iter(), NOW_S)), "fetch uri-miss");
        });
    }

    #[test]
    fn rfc9111_4_1_the_newest_of_those_that_match_counts() {
        let date = |second: u32| format!("Date: Sun, 06 Nov 1994 08:49:{second} GMT");
        let variant = |foo: &str, second: u32, at_s: u64| {
            let fields =
                format!("Cache-Control: max-age=60; Vary: Foo; {}; ETag: \"{second}\"", date(second));
            store(&format!("Foo: {foo}"), 200, &fields, at_s).unwrap()
        };
        let all = [variant("1", 30, 2), variant("1", 35, 0), variant("2", 37, 0)];
        let chosen = |request: &str| {
            with_asked(request, |asked| match decide(asked, all.iter(), NOW_S + 2) {
                Decision::Serve(hit) => Ok(hit.stored.head().field("ETag").unwrap().to_vec()),
                other => Err(words(other)),
            })
        };
        assert_eq!(chosen("Foo: 1"), Ok(b"\"35\"".to_vec()));
        assert_eq!(chosen("Foo: 2"), Ok(b"\"37\"".to_vec()));
        assert_eq!(chosen("Foo: 3"), Err("fetch vary-miss".into()));
        assert_eq!(chosen(""), Err("fetch vary-miss".into()));
    }

    #[test]
    fn rfc9111_4_3_2_clients_conditions_are_answered_from_the_store() {
        const AT: &str = "Sun, 06 Nov 1994 08:49:07 GMT";
        const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
        let tagged = "Cache-Control: max-age=9; ETag: \"a\"; Last-Modified: Sun, 06 Nov 1994 08:49:07 GMT";
        let weak = "Cache-Control: max-age=9; ETag: W/\"a\"";
        let bare = "Cache-Control: max-age=9";
        for (request, response, expected) in [
            ("If-None-Match: \"a\"", tagged, "NotModified"),
            ("If-None-Match: W/\"a\"", tagged, "NotModified"),
            ("If-None-Match: \"a\"", weak, "NotModified"),
            ("If-None-Match: \"b\", \"a\"", tagged, "NotModified"),
            ("If-None-Match: *", bare, "NotModified"),
            ("If-None-Match: \"b\"", tagged, "Whole"),
            ("If-None-Match: \"a\"", bare, "Whole"),
            ("If-None-Match: \"b\"; If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT", tagged, "Whole"),
            (&format!("If-Modified-Since: {AT}"), tagged, "NotModified"),
            ("If-Modified-Since: Sunday, 06-Nov-94 08:49:07 GMT", tagged, "NotModified"),
            ("If-Modified-Since: Sun, 06 Nov 1994 08:49:06 GMT", tagged, "Whole"),
            (&format!("If-Modified-Since: {DATE}"), bare, "NotModified"),
            (&format!("If-Modified-Since: {AT}"), bare, "Whole"),
            ("Range: bytes=0-1", bare, "Ranges"),
            ("Range: bytes=0-1; If-Range: \"a\"", tagged, "Ranges"),
            ("Range: bytes=0-1; If-Range: \"b\"", tagged, "Whole"),
            ("Range: bytes=0-1; If-Range: W/\"a\"", weak, "Whole"),
            ("Range: bytes=0-1; If-Range: Sun, 06 Nov 1994 08:49:07 GMT", tagged, "Ranges"),
            ("Range: bytes=0-1; If-Range: Sun, 06 Nov 1994 08:49:37 GMT", bare, "Whole"),
            ("Range: bytes=0-1; If-None-Match: \"a\"", tagged, "NotModified"),
        ] {
            assert_eq!(
                decision(request, response, 0),
                format!("{expected} age=0 ttl=9"),
                "{request} {response}"
            );
        }
        // RFC 9110 section 13.2.1: conditions are about successful responses.
        let missing = store("", 404, "Cache-Control: max-age=9; ETag: \"a\"", 0).unwrap();
        with_asked("If-None-Match: \"a\"; Range: bytes=0-1", |asked| {
            assert_eq!(words(decide(asked, [&missing].into_iter(), NOW_S)), "Whole age=0 ttl=9");
        });
    }

    #[test]
    fn what_only_the_origin_can_answer_bypasses() {
        let bypass = |method, fields| {
            with_request(method, fields, |head| {
                CacheRequest::of(&RouteRules::default(), head).err().map(Bypass::label)
            })
        };
        for (method, fields, expected) in [
            ("GET", "", None),
            ("HEAD", "", None),
            ("GET", "Authorization: x; Cookie: y; Range: bytes=0-1", None),
            ("POST", "", Some("method")),
            ("PROPFIND", "", Some("method")),
            ("GET", "Content-Length: 1", Some("body")),
            ("GET", "Transfer-Encoding: chunked", Some("body")),
            ("GET", "Connection: upgrade; Upgrade: websocket", Some("upgrade")),
            ("GET", "If-Match: \"a\"", Some("precondition")),
            ("GET", "If-Unmodified-Since: x", Some("precondition")),
        ] {
            assert_eq!(bypass(method, fields), expected, "{method} {fields}");
        }
    }

    #[test]
    fn rfc5861_4_stale_responses_stand_in_for_errors() {
        let takes = |request: &str, response: &str, status: Option<u16>, age_s| {
            let stored = store("", 200, response, 0).unwrap();
            let status = status.map(Status::new);
            with_asked(request, |asked| asked.takes_instead_of_error(&stored, status, NOW_S + age_s))
        };
        let said = "Cache-Control: max-age=10, stale-if-error=5";
        for status in [500, 502, 503, 504] {
            assert!(takes("", said, Some(status), 14) && !takes("", said, Some(status), 15));
        }
        for status in [404, 429, 501, 505] {
            assert!(!takes("", said, Some(status), 14), "{status}");
        }
        // Without an answer the operator's minute counts.
        assert!(takes("", said, None, 60) && !takes("", said, None, 70));
        let silent = "Cache-Control: max-age=10";
        assert!(!takes("", silent, Some(503), 14) && takes("", silent, None, 14));
        assert!(takes("Cache-Control: stale-if-error=5", silent, Some(503), 14));
        assert!(!takes("Cache-Control: no-cache", said, None, 14));
        assert!(!takes("", "Cache-Control: s-maxage=10", None, 14));
        assert!(!takes("", "Cache-Control: max-age=10, must-revalidate, stale-if-error=5", None, 14));
    }
}
