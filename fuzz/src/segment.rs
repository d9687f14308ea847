//! The rules of the shared cache over any request and response: decisions do not contradict each other, and what the
//! cache writes can be read.

use baton_http::origin::{RESPONSE_HEAD_BYTES_MAX, RequestKind, ResponseHead, ResponsePart, ResponseReader};
use baton_http::{HeadLimits, RequestHead};
use baton_segment::rules::{
    CacheRequest, Conditional, Decision, Fetched, Key, KeySecret, ResponseDirectives, RouteRules, Scheme,
    Stored, Times, VariantKey, decide, invalidated, labels_of,
};

/// Input: a request, and the response to it behind its blank line.
pub fn rules(input: &[u8]) {
    let Some(end) = input.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4) else {
        return;
    };
    let Ok(request) = RequestHead::parse(&input[..end], &HeadLimits::default()) else { return };
    let Some(head) = response(&input[end..]) else { return };
    let (rules, secret) = (RouteRules::default(), KeySecret::new([0; 16]));

    let authority = (request.host.unwrap_or("a"), request.port);
    let key = Key::of_request(&rules.query, Scheme::Https, authority, request.path, request.query);
    let Some(key) = key else { return };
    assert_eq!([key.origin(), key.target()].concat(), key.as_bytes());
    if let Some(invalidation) = invalidated(&rules, request.method, &key, &head) {
        assert!(invalidation.keys.len() <= 3);
        assert!(invalidation.keys.iter().all(|other| other.origin() == key.origin()));
    }
    let _ = labels_of(&rules, &secret, &key, &head);
    let times = Times { requested_s: NOW_S - 1, received_s: NOW_S };
    let status = head.status();
    let Ok(stored) = Stored::of(&rules, Fetched { request: &request, head, times }) else { return };

    assert!(stored.variant().matches(&request), "a response answers its own request");
    let variant = VariantKey::from_bytes(stored.variant().as_bytes()).expect("a key can be kept");
    assert_eq!(Stored::restore(&rules, stored.head().clone(), times, variant), stored, "it can be kept");
    assert_ne!(status.code(), 304);
    let freshness = stored.freshness();
    for now_s in [0, NOW_S, NOW_S + 1, NOW_S + 100, u64::MAX] {
        assert!(freshness.age_s(now_s) <= freshness.age_s(now_s.saturating_add(9)));
        assert!(freshness.is_fresh(now_s) || !freshness.is_fresh(now_s.saturating_add(9)));
        let Ok(asked) = CacheRequest::of(&rules, &request) else { continue };
        match decide(&asked, [&stored].into_iter(), now_s) {
            Decision::Serve(hit) => {
                assert_eq!(hit.ttl_s > 0, freshness.ttl_s(now_s) > 0);
            }
            Decision::Revalidate(..) | Decision::NotCached(_) => {}
            Decision::Fetch(_) => panic!("it matches"),
        }
    }

    // The conditions that the cache sends are read as they are meant.
    let conditional = Conditional::of(&stored);
    let validators = stored.validators();
    if let Some(tags) = conditional.if_none_match {
        let text = [b"GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: ", &tags[..], b"\r\n\r\n"].concat();
        let asks = RequestHead::parse(&text, &HeadLimits::default()).expect("a tag fits a request");
        assert!(asks.conditions.names_current(validators.etag, None));
    }

    // A confirmation of what has just come changes nothing that counts.
    let update = Fetched { request: &request, head: stored.head().clone(), times };
    if let Ok(freshened) = stored.freshen(&rules, &update) {
        assert_eq!(freshened.freshness().ttl_s(NOW_S), freshness.ttl_s(NOW_S));
        assert_eq!(freshened.variant(), stored.variant());
    }
}

/// Input: the value of a Cache-Control field. It is read alike alone, and behind another line.
pub fn cache_control(input: &[u8]) {
    let alone = ResponseDirectives::parse([input].into_iter());
    let behind = ResponseDirectives::parse([&b"no-store"[..], input].into_iter());
    assert_eq!(behind, ResponseDirectives { no_store: true, ..alone.clone() });
    let twice = ResponseDirectives::parse([input, input].into_iter());
    assert_eq!(ResponseDirectives { withheld: alone.withheld.clone(), ..twice }, alone);
}

fn response(text: &[u8]) -> Option<ResponseHead> {
    let mut reader = ResponseReader::new(RESPONSE_HEAD_BYTES_MAX);
    reader.begin(RequestKind::Usual, Vec::new());
    match reader.read(text) {
        Ok((_, ResponsePart::Head(head) | ResponsePart::Interim(head))) => Some(head),
        _ => None,
    }
}

const NOW_S: u64 = 784_111_777;
