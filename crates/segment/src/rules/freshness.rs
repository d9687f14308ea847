//! How old a stored response is, and how long it may be used (RFC 9111 section 4.2, RFC 5861).

use super::{Delta, ResponseDirectives, RouteRules, SECONDS_MAX};
use baton_http::origin::ResponseHead;
use baton_http::{Status, parse_date, parse_decimal};

/// When a response was asked for, and when its head came: seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When the request was sent to the origin.
    pub requested_s: u64,
    /// When the head of the response had come.
    pub received_s: u64,
}

/// How long a response may be used, decided once, when it was stored or freshened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    received_s: u64,
    date_s: u64,
    initial_age_s: u32,
    lifetime_s: u32,
    is_explicit: bool,
    /// `no-cache`: each use needs a validation.
    needs_validation: bool,
    /// Whether a request's `max-stale` counts.
    obeys_max_stale: bool,
    stale_while_revalidate_s: u32,
    stale_if_error_s: u32,
    stale_if_unreachable_s: u32,
}

impl Freshness {
    /// The freshness of a response. `is_targeted`: the directives come from a targeted field, so Expires does not count
    /// (RFC 9213 section 2.2).
    pub fn of(
        rules: &RouteRules,
        head: &ResponseHead,
        directives: &ResponseDirectives,
        is_targeted: bool,
        times: Times,
    ) -> Self {
        let fields = AgeFields::of(head);
        let date_s = fields.date_s.unwrap_or(times.received_s);
        let explicit = explicit_lifetime(directives, fields.expires.filter(|_| !is_targeted), date_s);
        let lifetime_s = match explicit {
            Some(lifetime_s) => lifetime_s,
            None => heuristic_lifetime(rules, head.status(), directives, &fields, date_s),
        };
        let cap_s = if is_error_of_the_moment(head.status()) { rules.error_max_s } else { SECONDS_MAX };

        // A directive of the response that allows it counts beside s-maxage: origins send the two together. What the
        // operator allows for those that are silent does not.
        let never_stale = directives.must_revalidate
            || directives.proxy_revalidate
            || directives.no_cache
            || directives.is_malformed;
        let has_s_maxage = directives.s_maxage != Delta::Absent;
        let stale_s = |delta: Delta, default_s: u32| match delta {
            _ if never_stale => 0,
            Delta::Absent if has_s_maxage => 0,
            Delta::Absent => default_s,
            delta => delta.seconds().unwrap_or(0),
        };
        let stale_if_error_s = stale_s(directives.stale_if_error, rules.stale_if_error_s);
        Self {
            received_s: times.received_s,
            // A date from the future would make it the newest for long.
            date_s: date_s.min(times.received_s),
            initial_age_s: fields.initial_age(times, date_s),
            lifetime_s: lifetime_s.min(cap_s),
            is_explicit: explicit.is_some(),
            needs_validation: directives.no_cache,
            obeys_max_stale: !never_stale && !has_s_maxage,
            stale_while_revalidate_s: stale_s(
                directives.stale_while_revalidate,
                rules.stale_while_revalidate_s,
            ),
            stale_if_error_s,
            stale_if_unreachable_s: stale_if_error_s
                .max(stale_s(Delta::Absent, rules.stale_if_unreachable_s)),
        }
    }

    /// The age in seconds (RFC 9111 section 4.2.3). A clock that was put back makes nothing younger than it came.
    pub fn age_s(&self, now_s: u64) -> u32 {
        let resident_s = now_s.saturating_sub(self.received_s);
        capped(u64::from(self.initial_age_s).saturating_add(resident_s))
    }

    /// How many seconds it stays fresh; negative since when it is stale (RFC 9211 section 2.4).
    pub fn ttl_s(&self, now_s: u64) -> i64 {
        i64::from(self.lifetime_s) - i64::from(self.age_s(now_s))
    }

    /// Whether it may be used without a validation, for a client that has no wishes.
    pub fn is_fresh(&self, now_s: u64) -> bool {
        !self.needs_validation && self.ttl_s(now_s) > 0
    }

    /// When it was generated, in seconds since 1970: its Date, but not later than it came.
    pub const fn date_s(&self) -> u64 {
        self.date_s
    }

    /// When it came.
    pub const fn received_s(&self) -> u64 {
        self.received_s
    }

    /// Whether the response itself says how long it is fresh.
    pub const fn is_explicit(&self) -> bool {
        self.is_explicit
    }

    /// Whether it was fresh, or usable as a stale one, when it came.
    pub fn is_ever_usable(&self) -> bool {
        let is_fresh = !self.needs_validation && self.initial_age_s < self.lifetime_s;
        is_fresh
            || self.may_be_stale(self.stale_while_revalidate_s.max(self.stale_if_error_s), self.received_s)
    }

    /// Whether it is served stale, while it is revalidated.
    pub fn is_usable_while_revalidated(&self, now_s: u64) -> bool {
        self.may_be_stale(self.stale_while_revalidate_s, now_s)
    }

    /// Whether it stands in for an error of the origin. `asked_s`: `stale-if-error` of the request.
    pub fn is_usable_if_error(&self, now_s: u64, asked_s: Option<u32>) -> bool {
        let asked_s = asked_s.filter(|_| self.obeys_max_stale).unwrap_or(0);
        self.may_be_stale(self.stale_if_error_s.max(asked_s), now_s)
    }

    /// Whether it stands in for an origin that cannot be reached.
    pub fn is_usable_if_unreachable(&self, now_s: u64, asked_s: Option<u32>) -> bool {
        self.may_be_stale(self.stale_if_unreachable_s, now_s) || self.is_usable_if_error(now_s, asked_s)
    }

    /// Whether a request's `max-stale` allows its use.
    pub fn is_usable_for_max_stale(&self, now_s: u64, max_stale_s: u32) -> bool {
        self.obeys_max_stale && self.may_be_stale(max_stale_s, now_s)
    }

    /// Whether it has been stale for less than `window_s`.
    fn may_be_stale(&self, window_s: u32, now_s: u64) -> bool {
        !self.needs_validation && window_s > 0 && self.ttl_s(now_s) > -i64::from(window_s)
    }
}

/// The fields that tell of time.
#[derive(Debug, Default)]
struct AgeFields<'a> {
    date_s: Option<u64>,
    expires: Option<Expires>,
    last_modified: Option<&'a [u8]>,
    age_s: u32,
    is_manifest: bool,
}

/// An Expires field: seconds since 1970, or something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expires {
    At(u64),
    Invalid,
}

impl<'a> AgeFields<'a> {
    fn of(head: &'a ResponseHead) -> Self {
        let mut fields = Self::default();
        let mut has_age = false;
        for (name, value) in head.fields() {
            let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
            match name.len() {
                // RFC 9111 section 5.1: the first one of several; one that is no number does not count.
                3 if is("Age") && !has_age => {
                    has_age = true;
                    fields.age_s = value.split(|byte| *byte == b',').next().map_or(0, age_of);
                }
                4 if is("Date") => fields.date_s = fields.date_s.or_else(|| parse_date(value)),
                7 if is("Expires") => {
                    let expires = parse_date(value).map_or(Expires::Invalid, Expires::At);
                    let is_other = fields.expires.is_some_and(|first| first != expires);
                    fields.expires = Some(if is_other { Expires::Invalid } else { expires });
                }
                12 if is("Content-Type") => fields.is_manifest |= is_manifest(value),
                13 if is("Last-Modified") => fields.last_modified = fields.last_modified.or(Some(value)),
                _ => {}
            }
        }
        fields
    }

    /// `corrected_initial_age` (RFC 9111 section 4.2.3).
    fn initial_age(&self, times: Times, date_s: u64) -> u32 {
        let apparent_s = times.received_s.saturating_sub(date_s);
        let delay_s = times.received_s.saturating_sub(times.requested_s);
        let corrected_s = u64::from(self.age_s).saturating_add(delay_s);
        capped(apparent_s.max(corrected_s))
    }
}

/// The number of an Age field, which may be longer than any that counts; 0 for anything else.
fn age_of(text: &[u8]) -> u32 {
    let text = text.trim_ascii();
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if is_number { parse_decimal(text).map_or(SECONDS_MAX, capped) } else { 0 }
}

/// RFC 9111 section 4.2.1, in its order.
fn explicit_lifetime(directives: &ResponseDirectives, expires: Option<Expires>, date_s: u64) -> Option<u32> {
    if directives.is_malformed {
        return Some(0);
    }
    let expires_s = expires.map(|expires| match expires {
        Expires::At(expires_s) => capped(expires_s.saturating_sub(date_s)),
        Expires::Invalid => 0,
    });
    directives.s_maxage.seconds().or(directives.max_age.seconds()).or(expires_s)
}

/// RFC 9111 section 4.2.2.
fn heuristic_lifetime(
    rules: &RouteRules,
    status: Status,
    directives: &ResponseDirectives,
    fields: &AgeFields<'_>,
    date_s: u64,
) -> u32 {
    if status == Status::NOT_FOUND || status == Status::GONE {
        return rules.negative_s;
    }
    if !is_heuristic(status) && !directives.public {
        return 0;
    }
    let max_s = if fields.is_manifest { rules.manifest_s } else { SECONDS_MAX };
    if rules.default_s > 0 {
        return rules.default_s.min(max_s);
    }
    if fields.is_manifest && fields.last_modified.is_none() {
        return max_s;
    }
    let unchanged_s =
        fields.last_modified.and_then(parse_date).map_or(0, |modified| date_s.saturating_sub(modified));
    let percent = u64::from(rules.heuristic_percent.min(100));
    capped(unchanged_s.saturating_mul(percent) / 100).min(rules.heuristic_max_s).min(max_s)
}

/// Whether a media type is that of a playlist of HLS (RFC 8216 section 4, and names from before it) or of DASH.
fn is_manifest(media_type: &[u8]) -> bool {
    let essence = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    MANIFESTS.iter().any(|manifest| essence.eq_ignore_ascii_case(manifest.as_bytes()))
}

const MANIFESTS: [&str; 5] = [
    "application/vnd.apple.mpegurl",
    "application/x-mpegurl",
    "audio/mpegurl",
    "audio/x-mpegurl",
    "application/dash+xml",
];

/// Statuses that may be stored without being told so (RFC 9110 section 15.1). 206 is judged apart.
pub(super) const fn is_heuristic(status: Status) -> bool {
    matches!(status.code(), 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// Errors of the server, and those that a client can cause for a good URL by what is not in the key: malformed, large or
/// contradictory fields ("cache-poisoned denial of service").
const fn is_error_of_the_moment(status: Status) -> bool {
    matches!(
        status.code(),
        400 | 406 | 408 | 411 | 412 | 413 | 415 | 416 | 417 | 421 | 426 | 429 | 431 | 500..=599
    )
}

/// Seconds in the range of all ages and lifetimes.
fn capped(seconds: u64) -> u32 {
    u32::try_from(seconds).unwrap_or(SECONDS_MAX).min(SECONDS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_http::Stamp;
    use proptest::prelude::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    const T: u64 = 784_111_777;

    fn date(seconds: i64) -> String {
        String::from_utf8(Stamp::at(T.saturating_add_signed(seconds)).date.to_vec()).unwrap()
    }

    /// Freshness of a response with these fields, `D(n)` meaning the date n seconds from [`T`], at which it came.
    fn of(status: u16, fields: &str) -> Freshness {
        let mut text = fields.replace("; ", "\n") + "\n";
        while let Some((before, rest)) = text.clone().split_once("D(") {
            let (number, after) = rest.split_once(')').unwrap();
            text = [before, &date(number.parse().unwrap()), after].concat();
        }
        let head = ResponseHead::of_lines(text.into_bytes(), Status::new(status), b"", None, |_| true);
        let rules = RouteRules { stale_if_error_s: 3, stale_if_unreachable_s: 9, ..RouteRules::default() };
        let values = head.fields().filter(|field| field.0 == b"Cache-Control").map(|field| field.1);
        let directives = ResponseDirectives::parse(values);
        Freshness::of(&rules, &head, &directives, false, Times { requested_s: T, received_s: T })
    }

    #[test]
    fn rfc9111_4_2_1_lifetimes() {
        for (fields, lifetime_s) in [
            ("Cache-Control: max-age=5, s-maxage=3; Expires: D(9)", 3),
            ("Cache-Control: max-age=5; Expires: D(9)", 5),
            ("Cache-Control: s-maxage=x, max-age=5", 0),
            ("Cache-Control: max-age=x; Expires: D(9)", 0),
            ("Cache-Control: max-age=5, max-age=6", 0),
            ("Cache-Control: max-age=5, a=\"b", 0),
            ("Date: D(-2); Expires: D(9)", 11),
            ("Date: x; Expires: D(9)", 9),
            ("Expires: D(9); Expires: D(9)", 9),
            ("Expires: D(9); Expires: D(8)", 0),
            ("Expires: 0; Last-Modified: D(-1000)", 0),
            ("Date: D(0); Expires: D(-9)", 0),
            ("Cache-Control: max-age=99999999999", SECONDS_MAX),
        ] {
            assert_eq!(of(200, fields).lifetime_s, lifetime_s, "{fields}");
            assert!(of(200, fields).is_explicit);
        }
    }

    #[test]
    fn rfc9111_4_2_2_heuristics_are_a_tenth_and_bounded() {
        for (status, fields, lifetime_s) in [
            (200, "Date: D(0); Last-Modified: D(-1000)", 100),
            (200, "Last-Modified: D(-1000)", 100),
            (200, "Last-Modified: D(-99999999)", 86_400),
            (200, "Last-Modified: D(5)", 0),
            (200, "Last-Modified: x", 0),
            (200, "A: b", 0),
            (301, "Last-Modified: D(-1000)", 100),
            (302, "Last-Modified: D(-1000)", 0),
            (599, "Last-Modified: D(-1000)", 0),
            (302, "Last-Modified: D(-1000); Cache-Control: public", 100),
            (404, "A: b", 10),
            (410, "Last-Modified: D(-99999999)", 10),
            (404, "Cache-Control: max-age=60", 60),
            (400, "Cache-Control: max-age=60", 10),
            (503, "Cache-Control: max-age=60", 10),
            (501, "Last-Modified: D(-1000)", 10),
        ] {
            assert_eq!(of(status, fields).lifetime_s, lifetime_s, "{status} {fields}");
        }
    }

    #[test]
    fn manifests_that_say_nothing_have_short_lives() {
        for (fields, lifetime_s) in [
            ("Content-Type: application/vnd.apple.mpegurl", 1),
            ("Content-Type: Application/X-MpegURL; charset=utf-8", 1),
            ("Content-Type: application/dash+xml; Last-Modified: D(-99999)", 1),
            ("Content-Type: audio/mpegurl; Last-Modified: D(5)", 0),
            ("Content-Type: application/dash+xml; Cache-Control: max-age=60", 60),
            ("Content-Type: video/mp4; Last-Modified: D(-1000)", 100),
            ("Content-Type: video/mp4", 0),
        ] {
            // A parameter is no field.
            let fields = fields.replace("L; charset", "L;charset");
            assert_eq!(of(200, &fields).lifetime_s, lifetime_s, "{fields}");
        }
        assert_eq!(of(404, "Content-Type: application/dash+xml").lifetime_s, 10);
    }

    #[test]
    fn the_operator_s_lifetime_is_for_what_says_nothing() {
        let lifetime_s = |status, fields: &str| {
            let text = fields.as_bytes().to_vec();
            let head = ResponseHead::of_lines(text, Status::new(status), b"", None, |_| true);
            let rules = RouteRules { default_s: 30, ..RouteRules::default() };
            let values = head.fields().filter(|field| field.0 == b"Cache-Control").map(|field| field.1);
            let directives = ResponseDirectives::parse(values);
            Freshness::of(&rules, &head, &directives, false, Times { requested_s: T, received_s: T })
                .lifetime_s
        };
        assert_eq!(lifetime_s(200, "Last-Modified: Sat, 05 Nov 1994 08:49:37 GMT\n"), 30);
        assert_eq!(lifetime_s(200, "Cache-Control: max-age=5\n"), 5);
        assert_eq!(
            (lifetime_s(404, "A: b\n"), lifetime_s(302, "A: b\n"), lifetime_s(503, "A: b\n")),
            (10, 0, 0)
        );
    }

    #[test]
    fn rfc9111_4_2_3_the_age_begins_with_what_passed_before() {
        let age_s = |fields: &str, requested_s| {
            let head =
                ResponseHead::of_lines(String::from(fields).into_bytes(), Status::OK, b"", None, |_| true);
            let times = Times { requested_s, received_s: T };
            let directives = ResponseDirectives::default();
            Freshness::of(&RouteRules::default(), &head, &directives, false, times).age_s(T + 10)
        };
        assert_eq!(age_s("A: b\n", T), 10);
        assert_eq!(age_s("A: b\n", T - 3), 13);
        assert_eq!(age_s("Age: 5\n", T - 3), 18);
        assert_eq!(age_s("Age: 5\nDate: Sun, 06 Nov 1994 08:49:07 GMT\n", T), 40);
        assert_eq!(age_s("Date: Sun, 06 Nov 1994 09:49:37 GMT\n", T), 10);
        // RFC 9111 section 5.1.
        for (age, expected) in [
            ("5, 7", 15),
            ("5\nAge: 7", 15),
            ("x, 7", 10),
            ("x\nAge: 7", 10),
            ("-1", 10),
            ("1.0", 10),
            ("", 10),
            ("5;a", 10),
            ("99999999999999999999999", SECONDS_MAX),
            ("4294967296", SECONDS_MAX),
        ] {
            assert_eq!(age_s(&format!("Age: {age}\n"), T), expected, "{age}");
        }
        assert_eq!(of(200, "A: b").age_s(T - 100), 0);
        assert_eq!(["Date: D(-9)", "Date: D(9)", "A: b"].map(|date| of(200, date).date_s()), [T - 9, T, T]);
    }

    #[test]
    fn rfc5861_stale_responses_have_their_limits() {
        let at = |fields: &str, now_s: u64| {
            let freshness = of(200, fields);
            assert!(!freshness.is_fresh(now_s), "{fields}");
            [
                freshness.is_usable_while_revalidated(now_s),
                freshness.is_usable_if_error(now_s, None),
                freshness.is_usable_if_unreachable(now_s, None),
                freshness.is_usable_for_max_stale(now_s, 5),
            ]
        };
        let said = "Cache-Control: max-age=10, stale-while-revalidate=2, stale-if-error=7";
        assert_eq!(at(said, T + 11), [true, true, true, true]);
        assert_eq!(at(said, T + 12), [false, true, true, true]);
        assert_eq!(at(said, T + 15), [false, true, true, false]);
        assert_eq!(at(said, T + 17), [false, false, true, false]);
        assert_eq!(at(said, T + 19), [false; 4]);
        let silent = "Cache-Control: max-age=10";
        assert_eq!(at(silent, T + 12), [false, true, true, true]);
        assert_eq!(at(silent, T + 13), [false, false, true, true]);
        // RFC 9111 section 4.2.4: not if forbidden, in whatever words.
        for forbidden in ["must-revalidate", "proxy-revalidate", "no-cache", "a=\""] {
            assert_eq!(at(&format!("{said}, {forbidden}"), T + 11), [false; 4], "{forbidden}");
        }
        assert_eq!(at("Cache-Control: s-maxage=10", T + 11), [false; 4]);
        let both = "Cache-Control: s-maxage=10, stale-while-revalidate=2, stale-if-error=7";
        assert_eq!(at(both, T + 11), [true, true, true, false]);
        assert!(of(200, silent).is_usable_if_error(T + 14, Some(5)));
        assert!(!of(200, "Cache-Control: s-maxage=10").is_usable_if_error(T + 11, Some(5)));
    }

    proptest! {
        /// What has become stale stays so, and ages never fall.
        #[test]
        fn freshness_is_monotone_in_age(
            max_age in 0u32..100, age in 0u32..100, delay in 0u64..10, now in 0u64..200, later in 0u64..200,
            words in prop::sample::subsequence(vec!["no-cache", "must-revalidate", "stale-if-error=9", "s-maxage=7"], 0..4),
        ) {
            let text = format!("Age: {age}\nCache-Control: max-age={max_age}, {}\n", words.join(","));
            let head = ResponseHead::of_lines(text.into_bytes(), Status::OK, b"", None, |_| true);
            let values = head.fields().filter(|field| field.0 == b"Cache-Control").map(|field| field.1);
            let directives = ResponseDirectives::parse(values);
            let times = Times { requested_s: T - delay, received_s: T };
            let freshness = Freshness::of(&RouteRules::default(), &head, &directives, false, times);
            let (now, later) = (T + now, T + now + later);
            prop_assert!(freshness.age_s(now) <= freshness.age_s(later));
            prop_assert!(u64::from(freshness.age_s(T)) >= delay + u64::from(age));
            for usable in [
                Freshness::is_fresh,
                Freshness::is_usable_while_revalidated,
                |freshness: &Freshness, at| freshness.is_usable_if_error(at, None),
                |freshness: &Freshness, at| freshness.is_usable_if_unreachable(at, None),
            ] {
                prop_assert!(usable(&freshness, now) || !usable(&freshness, later));
            }
        }
    }
}
