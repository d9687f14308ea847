//! How the origin of a cached route answers a request for a [`Resource`].

use std::fmt::Write;
use std::ops::Range;

use super::answer::{Answer, Ending};
use super::scene::Scene;
use crate::cached::{Ranges, Resource, Validator, Version, range_in};
use crate::choices::Choices;
use crate::clock;
use crate::ledger::{OriginRequest, Target};
use crate::request::date;

/// The answer to a request for a resource of this name and of that scheme, whose fields are looked up by name; it has none
/// that is empty.
pub(super) fn answer(
    (name, scheme): (u32, String),
    method: &str,
    field: &dyn Fn(&str) -> String,
    scene: Scene<'_>,
    choices: &mut Choices,
) -> Answer {
    let resource = Resource::of(name);
    let number: usize = field("X-Number").parse().expect("it goes on");
    scene.ledger.note(method, number - 1);
    let is_authorized = !field("Authorization").is_empty();
    let now_ms = clock::now_ms();
    let date_now = date(clock::unix_seconds_at(now_ms));
    let mut fields = format!("Date: {date_now}\r\nX-Time: {now_ms}\r\nX-Scheme: {scheme}\r\n");
    let target = Target { name, scheme };
    if method == "POST" {
        scene.ledger.note_change(target);
        let text = format!("posted {number}");
        let _ = write!(fields, "Cache-Control: no-store\r\nContent-Length: {}\r\n\r\n{text}", text.len());
        return Answer { bytes: fields.into_bytes(), ending: Ending::Complete };
    }
    let kind = if resource.varies { field("X-Kind") } else { "a".into() };
    let is_own = OWN_FIELDS.iter().any(|own| !field(own).is_empty());
    let is_plain = method == "GET" && resource.is_lasting() && !is_own;
    let asked = OriginRequest { target, kind: kind.clone(), is_plain };
    let fetch = scene.ledger.begin(asked, now_ms, scene.connection);
    let fault = choices.chance(resource.fault_percent).then(|| choices.number(0..5));
    match fault {
        Some(0) => return Answer { bytes: Vec::new(), ending: Ending::Closes },
        Some(1) => return Answer { bytes: Vec::new(), ending: Ending::Never },
        Some(2) => {
            let bytes = format!(
                "Status: 503 Fault\r\n{fields}Cache-Control: no-store\r\nContent-Length: 5\r\n\r\nfault"
            );
            return Answer { bytes: bytes.into_bytes(), ending: Ending::Complete };
        }
        _ => {}
    }
    let version = Version {
        number: resource.number_at(now_ms),
        kind,
        owner: if resource.is_private || is_authorized { number } else { 0 },
    };
    let Version { number, kind, owner } = &version;
    let _ =
        write!(fields, "X-Version: {number}\r\nX-Kind: {kind}\r\nX-Owner: {owner}\r\nX-Fetch: {fetch}\r\n");
    let _ = write!(fields, "Cache-Control: {}\r\n{}", resource.control, resource.field);
    if resource.varies && !resource.field.starts_with("Vary") {
        fields.push_str("Vary: X-Kind\r\n");
    }
    let etag = resource.etag(&version);
    let modified = date(clock::unix_seconds_at(resource.since_s(&version) * 1000));
    if let Some(etag) = &etag {
        let _ = write!(fields, "ETag: {etag}\r\n");
    } else if resource.validator == Validator::Date {
        let _ = write!(fields, "Last-Modified: {modified}\r\n");
    }
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let is_named = |tag: &String| field("If-None-Match").split(',').any(|other| opaque(other) == opaque(tag));
    // A date does not tell the versions of two users apart.
    let is_dated = resource.validator == Validator::Date && *owner == 0;
    let is_unmodified = is_dated && field("If-Modified-Since") == modified;
    if etag.as_ref().is_some_and(is_named) || is_unmodified {
        return Answer {
            bytes: format!("Status: 304 Same\r\n{fields}\r\n").into_bytes(),
            ending: Ending::Complete,
        };
    }
    let whole = resource.content(&version);
    let part = part_of(&resource, &field, etag.as_deref(), whole.len()).filter(|_| method == "GET");
    let content = match part {
        Some(part) => {
            let total = whole.len() + usize::from(resource.ranges == Ranges::OtherTotal);
            let said = format!("bytes {}-{}/{total}", part.start, part.end - 1);
            fields = format!("Status: 206 Part\r\n{fields}Content-Range: {said}\r\n");
            whole[part].to_vec()
        }
        None => whole,
    };
    if resource.has_length {
        let _ = write!(fields, "Content-Length: {}\r\n", content.len());
    }
    let (len, ending) = match fault {
        Some(3) if content.len() > 1 => (choices.number(0..content.len()), Ending::Closes),
        Some(4) if content.len() > 1 => (choices.number(0..content.len()), Ending::Never),
        _ => (content.len(), Ending::Complete),
    };
    Answer { bytes: [format!("{fields}\r\n").as_bytes(), &content[..len]].concat(), ending }
}

/// Fields of requests that want another response than the one for all, or not the stored one.
const OWN_FIELDS: [&str; 6] =
    ["Authorization", "Cache-Control", "If-Modified-Since", "If-None-Match", "If-Range", "Range"];

/// Which part it sends. `None`: the whole.
fn part_of(
    resource: &Resource,
    field: &dyn Fn(&str) -> String,
    etag: Option<&str>,
    len: usize,
) -> Option<Range<usize>> {
    let condition = field("If-Range");
    let is_current = condition.is_empty() || etag == Some(&condition) && !condition.starts_with("W/");
    let asked = field("Range");
    let range = range_in(&asked, len)?;
    match resource.ranges {
        Ranges::Ignored => None,
        _ if !is_current => None,
        Ranges::Misplaced if len > range.end => Some(range.start + 1..range.end + 1),
        _ => Some(range),
    }
}
