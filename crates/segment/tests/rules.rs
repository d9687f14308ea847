//! Goal: what is decided about a request never contradicts what was decided about the response.
//! Method: random responses and requests, in the words that matter, through all rules in turn.

use baton_http::origin::ResponseHead;
use baton_http::{HeadLimits, RequestHead, Stamp, Status};
use baton_segment::rules::{CacheRequest, Decision, Fetched, RouteRules, Stored, Times, decide};
use proptest::prelude::*;

const NOW_S: u64 = 784_111_777;

fn with_request<T>(fields: &str, ask: impl FnOnce(&RequestHead<'_>) -> T) -> T {
    let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    ask(&RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap())
}

fn words(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(words), 0..4).prop_map(|words| words.join(", "))
}

fn control() -> impl Strategy<Value = String> {
    words(&[
        "max-age=5",
        "max-age=60",
        "s-maxage=30",
        "no-store",
        "no-cache",
        "private",
        "private=\"a\"",
        "public",
        "must-revalidate",
        "proxy-revalidate",
        "must-understand",
        "stale-while-revalidate=20",
        "stale-if-error=40",
        "x=\"no-store\"",
    ])
}

fn request() -> impl Strategy<Value = String> {
    let wishes = words(&[
        "no-cache",
        "max-age=9",
        "min-fresh=9",
        "max-stale",
        "max-stale=9",
        "only-if-cached",
        "no-store",
    ]);
    let others = prop::sample::select(vec![
        "",
        "Foo: 1\r\n",
        "Foo: 2\r\n",
        "Authorization: x\r\n",
        "Cookie: x\r\n",
        "If-None-Match: \"a\"\r\n",
        "Range: bytes=0-1\r\n",
    ]);
    (wishes, others).prop_map(|(wishes, other)| format!("Cache-Control: {wishes}\r\n{other}"))
}

fn response() -> impl Strategy<Value = (u16, String)> {
    let others = prop::sample::subsequence(
        vec![
            "ETag: \"a\"".to_owned(),
            format!("Last-Modified: {}", String::from_utf8_lossy(&Stamp::at(NOW_S - 900).date)),
            "Vary: Foo".to_owned(),
            "Set-Cookie: a".to_owned(),
            "Age: 3".to_owned(),
        ],
        0..4,
    );
    let statuses = prop::sample::select(vec![200u16, 200, 200, 206, 301, 404, 503, 599]);
    (statuses, control(), others).prop_map(|(status, control, others)| {
        (status, format!("Cache-Control: {control}\n{}\n", others.join("\n")))
    })
}

fn store(rules: &RouteRules, request: &str, status: u16, fields: &str, at_s: u64) -> Option<Stored> {
    let head =
        ResponseHead::of_lines(fields.as_bytes().to_vec(), Status::new(status), b"", Some(9), |_| true);
    let times = Times { requested_s: at_s, received_s: at_s };
    with_request(request, |request| Stored::of(rules, Fetched { request, head, times }).ok())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_is_served_that_may_not_be(
        first in request(), (status, fields) in response(), second in request(), wait_s in 0u64..200,
    ) {
        let rules = RouteRules::default();
        let Some(stored) = store(&rules, &first, status, &fields, NOW_S) else { return Ok(()) };
        let (says, asks) = (|word: &str| fields.contains(word), |word: &str| second.contains(word));
        // Storing: RFC 9111 section 3.
        let understood = says("must-understand") && status != 599;
        prop_assert!(!says(" no-store") || understood);
        prop_assert!(!says("private\n") && !says("private,") && !says("Set-Cookie"));
        prop_assert!(!first.contains("no-store"));
        prop_assert!(!first.contains("Authorization") || says("public") || says("must-revalidate") || says("s-maxage"));
        // Reuse: RFC 9111 section 4.
        with_request(&second, |request| {
            let asked = CacheRequest::of(&rules, request).unwrap();
            let now_s = NOW_S + wait_s;
            match decide(&asked, [&stored].into_iter(), now_s) {
                Decision::Serve(hit) => {
                    assert!(stored.variant().matches(request) && !says("no-cache") && !asks("no-cache"));
                    assert_eq!(u64::from(hit.age_s), wait_s + if says("Age: 3") { 3 } else { 0 });
                    assert!(!asks(" max-age=9") || hit.age_s <= 9);
                    assert!(!asks("min-fresh") || hit.ttl_s >= 9);
                    if !stored.freshness().is_fresh(now_s) {
                        assert!(!says("must-revalidate") && !says("proxy-revalidate"), "{fields}");
                        assert_eq!(hit.revalidates, says("stale-while-revalidate") && hit.ttl_s > -20);
                        assert!(hit.revalidates || (asks("max-stale") && !says("s-maxage")));
                    }
                }
                Decision::Revalidate(found, _) => assert!(found == &stored && !asks("only-if-cached")),
                Decision::Fetch(_) => assert!(!stored.variant().matches(request) && !asks("only-if-cached")),
                Decision::NotCached(_) => assert!(asks("only-if-cached")),
            }
        });
    }

    /// What a 304 confirms is what is stored if it had come so: the order of the two decisions does not matter.
    #[test]
    fn freshening_is_storing_again(
        request in request(), (_, fields) in response(), update in control(), wait_s in 0u64..200,
    ) {
        let rules = RouteRules::default();
        let Some(stored) = store(&rules, "", 200, &fields, NOW_S) else { return Ok(()) };
        let text = format!("Cache-Control: {update}\nETag: \"b\"\n").into_bytes();
        let head = ResponseHead::of_lines(text, Status::NOT_MODIFIED, b"", None, |_| true);
        let times = Times { requested_s: NOW_S + wait_s, received_s: NOW_S + wait_s };
        let freshened = with_request(&request, |request| stored.freshen(&rules, &Fetched { request, head, times }));
        let other: String = fields
            .lines()
            .filter(|line| !line.starts_with("Cache-Control") && !line.starts_with("Age"))
            .map(|line| format!("{line}\n"))
            .collect();
        let anew = store(&rules, &request, 200, &format!("{other}Cache-Control: {update}\n"), NOW_S + wait_s);
        prop_assert_eq!(freshened.as_ref().ok().map(Stored::freshness), anew.as_ref().map(Stored::freshness));
        prop_assert_eq!(freshened.as_ref().ok().map(Stored::variant), anew.as_ref().map(Stored::variant));
        if let Ok(freshened) = freshened {
            prop_assert_eq!(freshened.head().field("ETag"), stored.head().field("ETag"));
        }
    }
}
