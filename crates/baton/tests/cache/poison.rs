//! Attackers who want others to get their answers, or answers that are not theirs.

use crate::common::agent::Body;
use crate::protocols;
use crate::site::{Site, status};

protocols::over_every_protocol!(
    what_no_key_has_changes_no_answer,
    what_reaches_the_origin_is_in_the_key,
    a_trusted_proxy_tells_responses_apart,
    other_spellings_are_other_responses,
    hosts_have_one_form,
    credentials_keep_a_response_from_others,
);

const MINE: &str = "200|Cache-Control: max-age=600||mine";
const EVIL: &str = "200|Cache-Control: max-age=600||evil";

/// Goal: whatever an attacker sends along, the next client gets a response to its own request. Method: the origin answers
/// what the attacker wants; either that is not stored, or the origin did not see what the attacker sent.
fn what_no_key_has_changes_no_answer(site: &Site) {
    for field in [
        "X-Forwarded-Host: evil",
        "X-Forwarded-Scheme: evil",
        "X-Forwarded-Prefix: /evil",
        "X-Host: evil",
        "X-Original-URL: /evil",
        "X-Rewrite-URL: /evil",
        "X-HTTP-Method: evil",
        "X-HTTP-Method-Override: evil",
        "X-Method-Override: evil",
        "X_Forwarded_Host: evil",
        "Forwarded: host=evil",
        "Range: bytes=0-evil",
        "If-None-Match: \"evil\"",
    ] {
        let mut visitor = site.visitor("unkeyed");
        visitor.ask("GET", MINE, &format!("{field}\r\n"));
        let seen = visitor.seen();
        assert!(!seen[0].head.contains("evil"), "{field}: {}", seen[0].head);
        assert_eq!(visitor.get("500").text(), "mine", "{field}");
    }
    let mut visitor = site.visitor("fat");
    let path = visitor.path.clone();
    visitor.agent.begin("GET", "localhost", &path, &format!("X-Answer: {EVIL}\r\n"), Body::Length(4));
    visitor.agent.send_body(b"evil");
    visitor.agent.finish_body();
    let evil = visitor.agent.response();
    assert_eq!((evil.text(), status(&evil).as_str()), ("evil", "baton; fwd=bypass; detail=body"));
    assert_eq!(visitor.get(MINE).text(), "mine", "a GET with a body");
}

/// Goal: applications answer to fields that neither a list nor Vary knows, and no client gets what another one has asked for by
/// them. Method: the attacker's answer is stored; it must be for those alone who send the same.
fn what_reaches_the_origin_is_in_the_key(site: &Site) {
    for field in [
        "X-Envoy-Original-Path: /evil",
        "X-Override-URL: /evil",
        "X-Matched-Path: /evil",
        "X-Now-Route-Matches: evil",
        "X-Middleware-Rewrite: /evil",
        "RSC: 1",
        "X-Requested-With: XMLHttpRequest",
        "Origin: https://evil.test",
        "X-Never-Heard-Of: evil",
    ] {
        let mut visitor = site.visitor("keyed");
        assert_eq!(visitor.ask("GET", EVIL, &format!("{field}\r\n")).text(), "evil", "{field}");
        assert!(visitor.seen()[0].head.to_ascii_lowercase().contains(&field.to_ascii_lowercase()), "{field}");
        assert_eq!(visitor.get(MINE).text(), "mine", "{field}");
        let again = visitor.ask("GET", "500", &format!("{field}\r\n"));
        assert_eq!((again.text(), status(&again).as_str()), ("evil", "baton; hit"), "{field}");
        assert_eq!(visitor.get("500").text(), "mine", "{field}");
    }
    // What clients send without asking for something else.
    let mut visitor = site.visitor("harmless");
    assert_eq!(visitor.get(MINE).text(), "mine");
    for field in
        ["User-Agent: a", "Sec-Fetch-Mode: cors", "DNT: 1", "Traceparent: b", "CF-Ray: c", "Accept: d/e"]
    {
        assert_eq!(visitor.ask("GET", "500", &format!("{field}\r\n")).text(), "mine", "{field}");
    }
}

/// Goal: behind a front-end with TLS, redirects to https end, and no client gets the links of another scheme or host. Method:
/// the same URL as a trusted proxy passes it on for several clients.
fn a_trusted_proxy_tells_responses_apart(site: &Site) {
    let mut visitor = site.visitor("behind/x");
    let mut ask = |fields: &str, answer: &str| visitor.ask("GET", answer, fields).text().to_owned();
    let answer = |text: &str| format!("200|Cache-Control: max-age=600||{text}");
    let own = site.server.protocol().scheme();
    let other = if own == "http" { "https" } else { "http" };
    let scheme = format!("X-Forwarded-Proto: {other}\r\n");
    let newer = format!("Forwarded: for=192.0.2.7;proto={other}\r\n");
    let host = "X-Forwarded-Host: www.test\r\nX-Forwarded-For: 192.0.2.7\r\n";
    assert_eq!(ask("", &answer("own")), "own");
    assert_eq!(ask(&scheme, &answer("scheme")), "scheme");
    assert_eq!(ask(host, &answer("host")), "host");
    assert_eq!(ask("Forwarded: host=evil\r\n", &answer("evil")), "evil");
    for (fields, expected) in [("", "own"), (&*scheme, "scheme"), (&*newer, "scheme"), (host, "host")] {
        assert_eq!(ask(fields, "500"), expected, "{fields}");
    }
    let seen = visitor.seen();
    let protos: Vec<_> = seen.iter().filter_map(|seen| seen.field("x-forwarded-proto")).collect();
    assert_eq!(protos, [own, other, own, own]);
    assert_eq!(seen[2].field("x-forwarded-host"), Some("www.test"));
    let told = seen[2].field("forwarded").expect("told");
    assert_eq!(told, format!("for=192.0.2.7;proto={own};host=www.test, for=127.0.0.1"));
}

/// What may lead the origin elsewhere is another URL here, too.
fn other_spellings_are_other_responses(site: &Site) {
    let mut visitor = site.visitor("spelt");
    let path = visitor.path.clone();
    let mut ask = |rest: &str, answer: &str| {
        visitor.path = format!("{path}{rest}");
        visitor.get(answer)
    };
    for (evil, mine) in [
        ("/a%2Fb", "/a/b"),
        ("/a;evil", "/a"),
        ("/c%3Fevil", "/c?evil"),
        ("/d?", "/d"),
        ("/e//f", "/e/f"),
        ("/g%2e%2e/h", "/g../h"),
        ("/i?x=1&x=2", "/i?x=2&x=1"),
        ("/j%00", "/j"),
    ] {
        ask(evil, EVIL);
        let response = ask(mine, MINE);
        assert_eq!(response.text(), "mine", "{evil} {mine}: {}", status(&response));
    }
    // Those that clients resolve themselves are resolved before the key is made.
    assert_eq!(ask("/k/../l", MINE).text(), "mine");
    assert_eq!(status(&ask("/l", "500")), "baton; hit");
}

fn hosts_have_one_form(site: &Site) {
    let mut visitor = site.visitor("hosts");
    let path = visitor.path.clone();
    let port = if site.server.protocol().is_secure() { 443 } else { 80 };
    let mut ask = |host: &str, answer: &str| {
        visitor.agent.ask_host(host, "GET", &path, &format!("X-Answer: {answer}\r\n"))
    };
    for evil in ["evil", "localhost:1", "localhost.evil"] {
        assert_eq!(ask(evil, EVIL).text(), "evil", "{evil}");
    }
    assert_eq!(ask("localhost", MINE).text(), "mine");
    for same in ["LOCALHOST", "localhost.", &format!("localhost:{port}"), &format!("LocalHost:{port}")] {
        let hit = ask(same, "500");
        assert_eq!((hit.text(), status(&hit).as_str()), ("mine", "baton; hit"), "{same}");
    }
    // The origin gets the host that is in the key.
    assert!(visitor.seen().iter().all(|seen| seen.fields("host").len() == 1));
    let mut visitor = site.visitor("usual-port");
    let path = visitor.path.clone();
    for host in [format!("LocalHost:{port}"), format!("localhost.:{port}")] {
        visitor.agent.ask_host(&host, "GET", &path, "X-Answer: 200|Cache-Control: no-store||x\r\n");
    }
    for seen in visitor.seen() {
        assert_eq!(seen.field("host"), Some("localhost"), "{}", seen.head);
        assert_eq!(seen.field("x-forwarded-host"), Some("localhost"), "{}", seen.head);
    }
}

/// Goal: what an origin tells one user no other one sees. Method: a response to credentials, then a client without; then
/// responses that say so themselves, stored or not.
fn credentials_keep_a_response_from_others(site: &Site) {
    for (answer, fields) in [
        ("200|Cache-Control: max-age=600||secret", "Authorization: Bearer x\r\n"),
        ("200||secret", "Cookie: session=x\r\n"),
        ("200|Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT||secret", "Cookie: session=x\r\n"),
        ("200|Cache-Control: private||secret", ""),
        ("200|Cache-Control: private, max-age=600||secret", ""),
        ("200|Cache-Control: no-store, max-age=600||secret", ""),
        ("200|Cache-Control: max-age=600|Set-Cookie: session=x||secret", ""),
        ("200|Cache-Control: max-age=600|Vary: *||secret", ""),
    ] {
        let mut visitor = site.visitor("secret");
        assert_eq!(visitor.ask("GET", answer, fields).text(), "secret");
        let mut other = crate::site::Visitor { agent: site.server.agent(), path: visitor.path.clone() };
        assert_eq!(other.get("200||mine").text(), "mine", "{answer} {fields}");
    }
    let mut visitor = site.visitor("by-cookie");
    visitor.ask("GET", "200|Cache-Control: max-age=600|Vary: Cookie||one", "Cookie: user=one\r\n");
    let two = visitor.ask("GET", "200|Cache-Control: max-age=600|Vary: Cookie||two", "Cookie: user=two\r\n");
    assert_eq!(two.text(), "two");
    assert_eq!(visitor.ask("GET", "500", "Cookie: user=one\r\n").text(), "one");
}
