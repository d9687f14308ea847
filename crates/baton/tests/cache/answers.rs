//! What clients get from the cache, and what the cache keeps.

use crate::common::folder::pattern;
use crate::protocols;
use crate::site::{Site, status};

protocols::over_every_protocol!(
    a_fresh_response_is_fetched_once,
    conditions_and_ranges_are_answered_here,
    bodies_of_many_blocks,
    responses_vary,
    stale_responses_are_revalidated,
    a_confirmation_that_is_not_kept_is_for_its_client,
    a_changed_response_takes_the_place,
    what_is_not_for_others_is_not_kept,
    changes_invalidate,
    clients_may_want_more,
    errors_are_covered_by_stale_responses,
    a_stale_response_is_served_while_it_is_revalidated,
    what_no_key_has_does_not_reach_the_origin,
    what_the_cache_leaves_alone_is_named,
    a_head_tells_of_what_is_stored,
);

const FRESH: &str = "200|Cache-Control: max-age=60|ETag: \"1\"|X-Own: yes||a body";

fn a_fresh_response_is_fetched_once(site: &Site) {
    let mut visitor = site.visitor("fresh");
    let first = visitor.get(FRESH);
    assert_eq!((first.status, first.text(), first.field("x-own")), (200, "a body", Some("yes")));
    assert_eq!(status(&first), "baton; fwd=uri-miss; stored");
    // It comes as the origin sent it. If a second has begun meanwhile, it is that old.
    assert_ne!(first.field("age"), Some("0"));
    for _ in 0..3 {
        let hit = visitor.get("500||never");
        assert_eq!((hit.status, hit.text(), hit.field("x-own")), (200, "a body", Some("yes")));
        assert_eq!(status(&hit), "baton; hit");
        assert!(hit.field("age").is_some_and(|age| age.parse::<u32>().is_ok()), "{hit:?}");
        assert_eq!((hit.field("content-length"), hit.field("date")), (Some("6"), first.field("date")));
    }
    assert_eq!(visitor.seen().len(), 1);
    assert_eq!(site.words_of(&visitor.path, 4), ["hit", "hit", "hit", "uri-miss"]);
}

fn conditions_and_ranges_are_answered_here(site: &Site) {
    let mut visitor = site.visitor("conditions");
    visitor.get(FRESH);
    let same = visitor.ask("GET", "500", "If-None-Match: \"0\", \"1\"\r\n");
    assert_eq!((same.status, same.text(), same.field("etag")), (304, "", Some("\"1\"")));
    let other = visitor.ask("GET", "500", "If-None-Match: \"2\"\r\n");
    assert_eq!((other.status, other.text()), (200, "a body"));
    let part = visitor.ask("GET", "500", "Range: bytes=2-\r\n");
    assert_eq!((part.status, part.text(), part.field("content-range")), (206, "body", Some("bytes 2-5/6")));
    let part = visitor.ask("GET", "500", "Range: bytes=0-0\r\nIf-Range: \"2\"\r\n");
    assert_eq!((part.status, part.text()), (200, "a body"));
    let none = visitor.ask("GET", "500", "Range: bytes=6-\r\n");
    assert_eq!((none.status, none.text(), none.field("content-range")), (416, "", Some("bytes */6")));
    let head = visitor.ask("HEAD", "500", "");
    assert_eq!((head.status, head.text(), head.field("content-length")), (200, "", Some("6")));
    assert_eq!(visitor.seen().len(), 1);
}

fn bodies_of_many_blocks(site: &Site) {
    for (manner, bytes) in [("#", 0), ("~", 0), ("#", 262_144), ("~", 262_145), ("#", 3_000_000)] {
        let mut visitor = site.visitor("blocks");
        let answer = format!("200|Cache-Control: max-age=60||{manner}{bytes}");
        for expected in ["baton; fwd=uri-miss; stored", "baton; hit"] {
            let response = visitor.get(&answer);
            assert_eq!(status(&response), expected, "{manner}{bytes}");
            assert!(response.body == pattern(bytes, 7), "{manner}{bytes}: {expected}");
        }
        if bytes > 0 {
            let part = visitor.ask("GET", "500", &format!("Range: bytes={}-\r\n", bytes - 262_100));
            assert!(part.status == 206 && part.body == pattern(bytes, 7)[bytes - 262_100..], "{}", part.line);
        }
        assert_eq!(visitor.seen().len(), 1);
    }
}

fn responses_vary(site: &Site) {
    let mut visitor = site.visitor("vary");
    let answer =
        |body: &str| format!("200|Cache-Control: max-age=60|Vary: Accept-Language, Accept-Encoding||{body}");
    for language in ["de", "fr"] {
        let fields = format!("Accept-Language: {language}\r\n");
        assert_eq!(visitor.ask("GET", &answer(language), &fields).text(), language);
    }
    for language in ["de", "fr", "de"] {
        let fields = format!("Accept-Language: {language}\r\nAccept-Encoding: x-unknown\r\n");
        let hit = visitor.ask("GET", "500", &fields);
        assert_eq!((hit.text(), status(&hit).as_str()), (language, "baton; hit"));
    }
    let other = visitor.get(&answer("none"));
    assert_eq!((other.text(), status(&other).as_str()), ("none", "baton; fwd=vary-miss; stored"));
    assert_eq!(visitor.seen().len(), 3);
}

fn stale_responses_are_revalidated(site: &Site) {
    let mut visitor = site.visitor("revalidated");
    visitor.get("200|Cache-Control: max-age=0|ETag: \"1\"|X-Old: yes||the body");
    let response = visitor.get("304|Cache-Control: max-age=60|ETag: \"1\"|X-Old: no");
    assert_eq!((response.status, response.text(), response.field("x-old")), (200, "the body", Some("no")));
    assert_eq!(status(&response), "baton; fwd=stale; fwd-status=304");
    assert_eq!(visitor.seen()[1].field("if-none-match"), Some("\"1\""));
    let hit = visitor.get("500");
    assert_eq!((hit.text(), status(&hit).as_str()), ("the body", "baton; hit"));
}

/// RFC 9111 section 4.3.4: what a 304 says counts for the client that has asked, even where it may not be stored.
fn a_confirmation_that_is_not_kept_is_for_its_client(site: &Site) {
    let stored = "200|Cache-Control: public, max-age=0|ETag: \"1\"|Date: Sun, 06 Nov 1994 08:49:37 GMT|X-Old: yes||the body";
    for (update, fields, is_kept) in [
        ("304|Cache-Control: no-store|ETag: \"1\"|X-Old: no", "", false),
        ("304|Cache-Control: max-age=60|ETag: \"1\"|X-Old: no", "Authorization: Basic YTpi\r\n", true),
    ] {
        let mut visitor = site.visitor("confirmed");
        visitor.get(stored);
        let response = visitor.ask("GET", update, fields);
        assert_eq!(
            (response.status, response.text(), response.field("x-old")),
            (200, "the body", Some("no"))
        );
        assert!(!response.field("date").unwrap().contains("1994"), "{response:?}");
        assert!(response.field("age").unwrap().parse::<u32>().unwrap() < 1_000, "{response:?}");
        let next = visitor.get("304|ETag: \"1\"");
        assert_eq!(next.field("x-old").is_some(), is_kept, "{update}: {next:?}");
        assert_eq!(visitor.seen()[2].field("if-none-match").is_some(), is_kept, "{update}");
    }
}

fn a_changed_response_takes_the_place(site: &Site) {
    let mut visitor = site.visitor("changed");
    visitor.get("200|Cache-Control: max-age=0|ETag: \"1\"||old");
    let response = visitor.get("200|Cache-Control: max-age=60|ETag: \"2\"||new");
    assert_eq!((response.text(), status(&response).as_str()), ("new", "baton; fwd=stale; stored"));
    assert_eq!(visitor.get("500").text(), "new");
    assert_eq!(visitor.seen().len(), 2);
}

fn what_is_not_for_others_is_not_kept(site: &Site) {
    for (answer, fields) in [
        ("200|Cache-Control: no-store", ""),
        ("200|Cache-Control: private, max-age=60", ""),
        ("200|Cache-Control: max-age=60|Set-Cookie: a=b", ""),
        ("200|Cache-Control: max-age=60|Vary: *", ""),
        ("200|Cache-Control: max-age=60", "Authorization: Basic YTpi\r\n"),
        ("200|Cache-Control: max-age=60", "Cache-Control: no-store\r\n"),
        ("302|Location: /elsewhere", ""),
        ("500|X-Some: thing", ""),
    ] {
        let mut visitor = site.visitor("private");
        for number in 0..3 {
            let response = visitor.ask("GET", &format!("{answer}||{number}"), fields);
            assert_eq!(response.text(), number.to_string(), "{answer} {fields}");
            assert!(
                !status(&response).contains("stored") && !status(&response).contains("hit"),
                "{response:?}"
            );
        }
        assert_eq!(visitor.seen().len(), 3, "{answer} {fields}");
    }
}

fn changes_invalidate(site: &Site) {
    let mut visitor = site.visitor("invalidated");
    visitor.get("200|Cache-Control: max-age=60||one");
    assert_eq!(visitor.ask("POST", "500", "").status, 500);
    assert_eq!(visitor.get("500").text(), "one", "a change that failed is none");
    assert_eq!(visitor.ask("POST", "204", "").status, 204);
    assert_eq!(visitor.get("200|Cache-Control: max-age=60||two").text(), "two");
    assert_eq!(site.words_of(&visitor.path, 5), ["hit", "method", "method", "uri-miss", "uri-miss"]);
}

fn clients_may_want_more(site: &Site) {
    let mut visitor = site.visitor("wishes");
    let only = visitor.ask("GET", FRESH, "Cache-Control: only-if-cached\r\n");
    assert_eq!((only.status, visitor.seen().len()), (504, 0));
    visitor.get(FRESH);
    let only = visitor.ask("GET", "500", "Cache-Control: only-if-cached\r\n");
    assert_eq!((only.status, only.text()), (200, "a body"));
    let fresh = visitor.ask("GET", "200|Cache-Control: max-age=60||other", "Cache-Control: no-cache\r\n");
    assert_eq!((fresh.text(), status(&fresh).as_str()), ("other", "baton; fwd=request; stored"));
    assert_eq!(visitor.get("500").text(), "other");
}

fn errors_are_covered_by_stale_responses(site: &Site) {
    let mut visitor = site.visitor("errors");
    visitor.get("200|Cache-Control: max-age=0, stale-if-error=600|ETag: \"1\"||the body");
    for error in ["503||no", "500||no", "gone"] {
        let stale = visitor.get(error);
        assert_eq!((stale.status, stale.text()), (200, "the body"), "{error}");
        assert!(status(&stale).contains("detail=origin-failed"), "{stale:?}");
    }
    let error = visitor.get("501||not so");
    assert_eq!((error.status, error.text()), (501, "not so"), "no failure of the moment");
    let mut other = site.visitor("errors");
    other.get("200|Cache-Control: max-age=0, must-revalidate|ETag: \"1\"||the body");
    assert_eq!(other.get("503||no").status, 503);
}

fn a_stale_response_is_served_while_it_is_revalidated(site: &Site) {
    let mut visitor = site.visitor("while");
    visitor.get("200|Cache-Control: max-age=0, stale-while-revalidate=60|ETag: \"1\"||old");
    let stale = visitor.get("200|Cache-Control: max-age=60|ETag: \"2\"||new");
    assert_eq!((stale.text(), status(&stale).as_str()), ("old", "baton; hit"));
    crate::common::server::wait_until("a revalidation in the background", || {
        visitor.get("500").text() == "new"
    });
    assert_eq!(visitor.seen().len(), 2);
    assert!(site.words_of(&visitor.path, 3).contains(&"hit-stale".to_owned()));
}

fn what_no_key_has_does_not_reach_the_origin(site: &Site) {
    let mut visitor = site.visitor("poison");
    let evil = "X-Forwarded-Host: evil\r\nX_Forwarded_Host: evil\r\nX-Original-URL: /evil\r\nX-HTTP-Method-Override: PUT\r\n";
    visitor.ask("GET", FRESH, evil);
    let seen = visitor.seen();
    assert!(!seen[0].head.contains("evil") && !seen[0].head.contains("PUT"), "{}", seen[0].head);
    assert_eq!(seen[0].field("accept-encoding"), Some("identity"));
}

/// RFC 9211: the words of the field are those of the log.
fn what_the_cache_leaves_alone_is_named(site: &Site) {
    let mut visitor = site.visitor("bypass");
    for (method, fields, expected) in [
        ("GET", "If-Match: \"1\"\r\n", "baton; fwd=bypass; detail=precondition"),
        (
            "HEAD",
            "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            "baton; fwd=bypass; detail=precondition",
        ),
        ("POST", "", "baton; fwd=method"),
        ("OPTIONS", "", "baton; fwd=method"),
        ("DELETE", "", "baton; fwd=method"),
    ] {
        let response = visitor.ask(method, "200||x", fields);
        assert_eq!((response.status, status(&response).as_str()), (200, expected), "{method} {fields}");
    }
    assert_eq!(site.words_of(&visitor.path, 5), ["bypass", "bypass", "method", "method", "method"]);
}

/// RFC 9111 section 4.3.5: the answer to a HEAD confirms what is stored, or ends it.
fn a_head_tells_of_what_is_stored(site: &Site) {
    let store = "200|Cache-Control: max-age=0|ETag: \"1\"|X-Own: old||a body";
    let mut visitor = site.visitor("head");
    visitor.get(store);
    let head = visitor.ask("HEAD", "200|Cache-Control: max-age=60|ETag: \"1\"|X-Own: new||a body", "");
    assert_eq!((head.status, status(&head).as_str()), (200, "baton; fwd=stale"));
    let hit = visitor.get("500");
    assert_eq!(
        (hit.text(), hit.field("x-own"), status(&hit).as_str()),
        ("a body", Some("new"), "baton; hit")
    );
    for (answer, expected) in [
        ("200|Cache-Control: max-age=60|ETag: \"2\"||a body", "baton; fwd=uri-miss; stored"),
        ("200|Cache-Control: max-age=60|ETag: \"1\"||another body", "baton; fwd=uri-miss; stored"),
        ("404||", "baton; fwd=uri-miss; stored"),
        ("500||", "baton; fwd=stale; stored"),
    ] {
        let mut visitor = site.visitor("head");
        visitor.get(store);
        visitor.ask("HEAD", answer, "");
        let next = visitor.get("200|Cache-Control: max-age=60||next");
        assert_eq!((next.text(), status(&next).as_str()), ("next", expected), "{answer}");
    }
}
