//! Goal: the rules agree with the crate `http-cache-semantics`, which others use, wherever both have an opinion.
//! Method: random requests and responses; for each, whether the second request gets the first one's response from the
//! store. Where the two differ, [`difference`] has a reason, and a test below shows that each reason is needed.

use baton_http::origin::ResponseHead;
use baton_http::{HeadLimits, RequestHead, Stamp, Status};
use baton_segment::rules::{CacheRequest, Decision, Fetched, RouteRules, Stored, Times, decide};
use http_cache_semantics::{BeforeRequest, CacheOptions, CachePolicy};
use proptest::prelude::*;
use std::time::{Duration, UNIX_EPOCH};

/// When the response comes.
const NOW_S: u64 = 784_111_777;

/// Two requests, the response to the first one, and the time between them in seconds.
#[derive(Clone, Debug, Default)]
struct Case {
    status: u16,
    first: Vec<(&'static str, String)>,
    response: Vec<(&'static str, String)>,
    second: Vec<(&'static str, String)>,
    wait_s: u64,
}

impl Case {
    fn ours(&self) -> bool {
        let rules = RouteRules { stale_if_unreachable_s: 0, ..RouteRules::default() };
        let times = Times { requested_s: NOW_S, received_s: NOW_S };
        let lines: String = self.response.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        let head = ResponseHead::of_lines(lines.into_bytes(), Status::new(self.status), b"", None, |_| true);
        let stored =
            with_request(&self.first, |request| Stored::of(&rules, Fetched { request, head, times }));
        let Ok(stored) = stored else { return false };
        with_request(&self.second, |request| {
            let asked = CacheRequest::of(&rules, request).unwrap();
            matches!(decide(&asked, [&stored].into_iter(), NOW_S + self.wait_s), Decision::Serve(_))
        })
    }

    fn theirs(&self) -> bool {
        let request = |fields: &[(&'static str, String)]| {
            let request = http::Request::get("http://a/").header("Host", "a");
            fields
                .iter()
                .fold(request, |request, (name, value)| request.header(*name, value))
                .body(())
                .unwrap()
        };
        let response = http::Response::builder().status(self.status);
        let response =
            self.response.iter().fold(response, |response, (name, value)| response.header(*name, value));
        let at = |after_s| UNIX_EPOCH + Duration::from_secs(NOW_S + after_s);
        let (first, second) = (request(&self.first), request(&self.second));
        let options = CacheOptions { cache_heuristic: 0.1, ..CacheOptions::default() };
        let policy = CachePolicy::new_options(&first, &response.body(()).unwrap(), at(0), options);
        policy.is_storable()
            && matches!(policy.before_request(&second, at(self.wait_s)), BeforeRequest::Fresh(_))
    }

    fn has(&self, name: &str) -> bool {
        self.response.iter().any(|(other, _)| *other == name)
    }

    fn says(&self, directive: &str) -> bool {
        self.response.iter().any(|(name, value)| *name == "Cache-Control" && value.contains(directive))
    }

    fn is_told(&self) -> bool {
        self.has("Expires") || self.says("max-age") || self.says("s-maxage")
    }
}

fn with_request<T>(fields: &[(&str, String)], ask: impl FnOnce(&RequestHead<'_>) -> T) -> T {
    let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    ask(&RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap())
}

/// Why the two may differ about a case.
fn difference(case: &Case) -> Option<&'static str> {
    let asks = |text: &str| case.second.iter().any(|(name, value)| *name == text || value.contains(text));
    [
        (
            !matches!(case.status, 200 | 203 | 204 | 300..=303 | 307 | 308 | 404 | 405 | 410 | 414 | 501),
            "statuses: we store any that says how long it is fresh, errors for 10 s (RFC 9111 section 3)",
        ),
        (
            matches!(case.status, 404 | 410 | 501) && (!case.is_told() || case.status == 501),
            "errors: 404 and 410 are fresh for 10 s without a word, 501 for no longer with one",
        ),
        (
            case.response.iter().filter(|(name, _)| *name == "Expires").count() > 1,
            "Expires: two that differ make the response stale (RFC 9111 section 4.2.1)",
        ),
        (case.has("Date"), "age: we count the time since Date (RFC 9111 section 4.2.3)"),
        (case.says("proxy-revalidate"), "proxy-revalidate: stale at once there (RFC 9111 section 5.2.2.8)"),
        (case.has("Set-Cookie"), "cookies: stored there if public"),
        (
            asks("max-stale") && (case.says("s-maxage") || case.says("no-cache")),
            "max-stale: these forbid it (RFC 9111 sections 5.2.2.4, 5.2.2.10)",
        ),
        (asks("Pragma"), "Pragma: it counts without Cache-Control only (RFC 9111 section 5.4)"),
        (case.says("\""), "quotes: their commas separate directives there"),
        (
            asks("max-stale")
                && (!case.is_told() || case.says("max-age=0") || case.has("Expires") || case.has("Age")),
            "max-stale: what is stale from the beginning, and has no validator, is not stored",
        ),
        (
            case.first.iter().any(|(name, _)| *name == "Cookie") && !case.is_told(),
            "cookies: what is only heuristically fresh is not stored for a request with one",
        ),
    ]
    .into_iter()
    .find_map(|(differs, why)| differs.then_some(why))
}

fn cases() -> impl Strategy<Value = Case> {
    let date = |after_s: i64| {
        String::from_utf8(Stamp::at(NOW_S.saturating_add_signed(after_s)).date.to_vec()).unwrap()
    };
    let directives = prop::sample::subsequence(
        vec![
            "no-store",
            "no-cache",
            "private",
            "public",
            "must-revalidate",
            "proxy-revalidate",
            "immutable-not",
        ],
        0..3,
    );
    let seconds =
        prop::sample::select(vec!["", "max-age=0", "max-age=5", "max-age=60", "s-maxage=30", "s-maxage=0"]);
    let more = prop::sample::select(vec!["", "", "s-maxage=9", "max-age=40"]);
    let response = vec![
        ("Expires", date(50)),
        ("Expires", "0".into()),
        ("Date", date(-20)),
        ("Age", "7".into()),
        ("Last-Modified", date(-400)),
        ("Vary", "Foo".into()),
        ("Vary", "*".into()),
        ("Set-Cookie", "a=b".into()),
    ];
    let first = vec![("Authorization", String::from("x")), ("Foo", "1".into()), ("Cookie", "a=b".into())];
    let wishes =
        vec!["", "", "no-cache", "max-age=9", "min-fresh=20", "max-stale", "max-stale=9", "no-store"];
    (
        prop::sample::select(vec![200u16, 200, 200, 203, 204, 301, 302, 404, 410, 500, 501, 503, 599]),
        prop::sample::subsequence(first, 0..3),
        (directives, seconds, more),
        prop::sample::subsequence(response, 0..3),
        (prop::sample::select(wishes), prop::sample::select(vec!["", "1", "2"])),
        0u64..70,
    )
        .prop_map(
            |(status, first, (directives, seconds, more), mut response, (wish, selecting), wait_s)| {
                let more = if more.split('=').next() == seconds.split('=').next() { "" } else { more };
                let control: Vec<_> =
                    directives.into_iter().chain([seconds, more]).filter(|word| !word.is_empty()).collect();
                if !control.is_empty() {
                    response.push(("Cache-Control", control.join(", ")));
                }
                let fields = [("Cache-Control", wish), ("Foo", selecting)];
                let second = fields.into_iter().filter(|(_, value)| !value.is_empty());
                let second = second.map(|(name, value)| (name, value.to_owned())).collect();
                Case { status, first, response, second, wait_s }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn both_serve_the_same_from_the_store(case in cases()) {
        if difference(&case).is_none() {
            prop_assert_eq!(case.ours(), case.theirs());
        }
    }
}

/// Each reason has a case about which the two do differ: ours first.
#[test]
fn each_difference_is_one() {
    let case = |status, response: &[(&'static str, &str)], second: &[(&'static str, &str)], wait_s| {
        let owned = |fields: &[(&'static str, &str)]| {
            fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect::<Vec<_>>()
        };
        Case { status, response: owned(response), second: owned(second), wait_s, first: Vec::new() }
    };
    const CC: &str = "Cache-Control";
    let later = "Sun, 06 Nov 1994 08:50:07 GMT";
    let older = "Sun, 06 Nov 1994 08:49:07 GMT";
    let modified = ("Last-Modified", "Sun, 06 Nov 1994 07:49:37 GMT");
    for (case, is_ours) in [
        (case(599, &[(CC, "max-age=9")], &[], 1), true),
        (case(404, &[], &[], 1), true),
        (case(501, &[(CC, "max-age=60")], &[], 20), false),
        (case(200, &[("Expires", later), ("Expires", "0")], &[], 1), false),
        (case(200, &[(CC, "max-age=9"), ("Date", older)], &[], 1), false),
        (case(200, &[(CC, "max-age=9, proxy-revalidate")], &[], 1), true),
        (case(200, &[(CC, "max-age=9, public"), ("Set-Cookie", "a")], &[], 1), false),
        (case(200, &[(CC, "s-maxage=9")], &[(CC, "max-stale")], 10), false),
        (case(200, &[(CC, "max-age=9, no-cache")], &[(CC, "max-stale")], 1), false),
        (case(200, &[(CC, "max-age=9")], &[(CC, "x"), ("Pragma", "no-cache")], 1), true),
        (case(200, &[(CC, "a=\"b, no-store, c\", max-age=9")], &[], 1), true),
        (case(200, &[], &[(CC, "max-stale")], 1), false),
        (case(200, &[(CC, "max-age=0")], &[(CC, "max-stale")], 1), false),
        (case(200, &[("Expires", "0")], &[(CC, "max-stale")], 1), false),
        (case(200, &[(CC, "max-age=5"), ("Age", "7")], &[(CC, "max-stale")], 1), false),
        (Case { first: vec![("Cookie", "a".into())], ..case(200, &[modified], &[], 1) }, false),
    ] {
        let why = difference(&case);
        assert!(why.is_some(), "{case:?}");
        assert_eq!((case.ours(), case.theirs()), (is_ours, !is_ours), "{why:?} {case:?}");
    }
}
