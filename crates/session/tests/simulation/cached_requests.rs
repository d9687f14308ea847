//! Requests for what is cached.

use std::fmt::Write;
use std::rc::Rc;

use super::cached::{CACHED, Resource, Shelf, Version, Wanted};
use super::choices::Choices;
use super::clock;
use super::expected::{Content, Expected, Persistence};
use super::request::{Bounds, Request, persistence};

/// A request for one of these resources.
pub(crate) fn request(shelf: &Shelf, bounds: Bounds, number: usize, choices: &mut Choices) -> Request {
    // 0 is the owner of what all may have.
    let owner = number + 1;
    let (name, is_plain) = match shelf.crowd_name(number) {
        Some(name) => (name, choices.chance(70)),
        None => (choices.one(&shelf.names), false),
    };
    let resource = Resource::of(name);
    let methods: &[&str] = if is_plain { &["GET"] } else { &METHODS };
    let method = choices.one(methods);
    let kind = choices.one(&["a", "a", "b"]);
    let mut fields = format!("Host: simulated\r\nX-Number: {owner}\r\nX-Kind: {kind}\r\n");
    let is_authorized = !is_plain && choices.chance(10);
    if is_authorized {
        fields.push_str("Authorization: Basic eA==\r\n");
    }
    let range = if method == "GET" && !is_plain && choices.chance(40) {
        range(&resource, choices)
    } else {
        String::new()
    };
    if !range.is_empty() {
        let _ = write!(fields, "Range: {range}\r\n");
    }
    // Of the version that is current when the client connects: it may be another one when it asks.
    let guess = Version { number: resource.number_at(clock::now_ms()), kind: kind.into(), owner: 0 };
    let tag = resource.etag(&guess).filter(|_| method != "POST" && !is_plain && choices.chance(25));
    let is_condition = tag.is_some() && (range.is_empty() || choices.chance(30));
    if let Some(tag) = &tag {
        let name = if is_condition { "If-None-Match" } else { "If-Range" };
        let _ = write!(fields, "{name}: {tag}\r\n");
    }
    let control = match choices.number(if is_plain { 4..5 } else { 0..20 }) {
        0 => "no-cache",
        1 => "max-age=0",
        2 => "only-if-cached",
        3 => "no-store",
        _ => "",
    };
    if !control.is_empty() {
        let _ = write!(fields, "Cache-Control: {control}\r\n");
    }
    let body: &[u8] = if method == "POST" { b"abc" } else { b"" };
    if !body.is_empty() {
        fields.push_str("Content-Length: 3\r\n");
    }
    let wanted = Wanted {
        resource,
        method,
        number: owner,
        kind,
        is_authorized,
        range,
        if_none_match: tag.clone().filter(|_| is_condition),
        if_range: tag.filter(|_| !is_condition),
        is_validated: matches!(control, "no-cache" | "max-age=0"),
        begun_ms: None.into(),
        ledger: Rc::clone(&shelf.ledger),
    };
    let mut expected = Expected {
        status: wanted.statuses(),
        persistence: Persistence::Kept,
        is_malformed: false,
        is_applications: true,
        is_failure: false,
        may_fail: true,
        lies: false,
        is_head: method == "HEAD",
        content: Content::Cached(Box::new(wanted)),
        fields: Vec::new(),
        tag: None,
    };
    let version = persistence(bounds, &mut fields, &mut expected, choices);
    if version == "HTTP/1.0" || !body.is_empty() {
        // It depends on whether the length is known in time, and on when the origin answers.
        expected.open();
    }
    let line = format!("{method} {CACHED}/{}.ts?n={number} {version}", resource.name);
    Request::assemble(line, &fields, body, expected)
}

const METHODS: [&str; 10] = ["GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST"];

fn range(resource: &Resource, choices: &mut Choices) -> String {
    let len = resource.len().max(1);
    let first = choices.number(0..len);
    match choices.number(0..8) {
        0 => format!("bytes=-{}", choices.size(len)),
        1 | 2 => format!("bytes={first}-"),
        3 => format!("bytes={}-", len + 100),
        4 => format!("bytes=0-{}, {first}-", first / 2),
        _ => format!("bytes={first}-{}", first + choices.size(len)),
    }
}
