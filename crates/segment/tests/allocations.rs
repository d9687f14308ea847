//! Goal: deciding that a fresh response is served costs no heap allocation.
//! Method: the rules of a hit under a counting allocator.

use baton_http::origin::ResponseHead;
use baton_http::{HeadLimits, RequestHead, Status};
use baton_segment::rules::{
    Answer, CacheRequest, Decision, Fetched, Generations, Key, KeySecret, RouteRules, Scheme, Stored, Times,
    decide,
};

const REQUEST: &[u8] = b"GET /film.mp4?a=b HTTP/1.1\r\nHost: example.org\r\nCache-Control: max-age=60\r\n\
    Accept-Encoding: gzip, br\r\nAccept-Language: de, en;q=0.5\r\nIf-None-Match: \"b\", \"c\"\r\n\
    Range: bytes=0-99\r\n\r\n";

const RESPONSE: &[u8] = b"Cache-Control: max-age=60, stale-while-revalidate=30\nETag: \"a\"\n\
    Vary: Accept-Encoding, Accept-Language\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\n";

#[test]
fn a_fresh_hit_allocates_nothing() {
    let rules = RouteRules::default();
    let request = RequestHead::parse(REQUEST, &HeadLimits::default()).unwrap();
    let head = ResponseHead::of_lines(RESPONSE.to_vec(), Status::OK, b"OK", Some(1000), |_| true);
    let times = Times { requested_s: 784_111_800, received_s: 784_111_800 };
    let stored = Stored::of(&rules, Fetched { request: &request, head, times }).unwrap();
    let secret = KeySecret::new([0; 16]);
    let authority = ("example.org", None);
    let key = Key::of_request(&rules.query, Scheme::Https, authority, request.path, request.query).unwrap();
    let generations = Generations::new(8);
    let allocations = allocation_counter::measure(|| {
        key.hash(&secret);
        assert!(generations.is_current(0, &secret, &key, &[]));
        let asked = CacheRequest::of(&rules, &request).unwrap();
        let Decision::Serve(hit) = decide(&asked, [&stored].into_iter(), 784_111_810) else {
            panic!("a hit")
        };
        assert_eq!((hit.answer, hit.age_s, hit.ttl_s), (Answer::Ranges, 10, 50));
    });
    assert_eq!(allocations.count_total, 0);
}
