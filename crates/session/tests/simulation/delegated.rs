//! Requests for the application, and the model of their answers.

use aws_lc_rs::digest::{SHA256, digest};
use baton_upstream::Protocol;

use super::application::{AFTER_FILES, Manner, Query, REDIRECTED_TO};
use super::choices::Choices;
use super::expected::{Content, Expected, Persistence};
use super::request::{Body, Bounds, Request, body, file_request, persistence};
use super::site::{APPLICATION, Folder};

/// A request that the application is to answer in some manner.
pub(crate) fn request(folder: &Folder, bounds: Bounds, number: usize, choices: &mut Choices) -> Request {
    let method = choices.one(&["GET", "GET", "GET", "HEAD", "POST", "PUT"]);
    let len_max = choices.one(&[10_000, 10_000, 300_000]);
    let len = choices.size(len_max);
    let manner = manner(method, bounds.protocol, choices);
    let query = Query { number, len, manner };
    let mut fields = String::from("Host: simulated\r\n");
    let mut expected = Expected {
        status: vec![manner.status()],
        persistence: Persistence::Kept,
        is_malformed: false,
        is_applications: true,
        is_failure: manner.fails(),
        // A POST is not repeated where an application closes its connection instead of reading the request.
        // Kept connections to an origin may end, or have stray bytes, and the budget of retries may be used up.
        may_fail: manner.fails()
            || manner.is_of_offers()
            || method == "POST"
            || !bounds.is_prompt
            || bounds.protocol == Protocol::Http1,
        lies: manner.is_of_offers(),
        is_head: method == "HEAD",
        content: Content::Page,
        fields: Vec::new(),
        tag: None,
    };
    if matches!(manner, Manner::SendFile | Manner::AccelRedirect) {
        let file = query.file(&folder.files).0;
        expected.content = Content::Exact(file.bytes.clone());
        if method == "GET" {
            // Of several ranges the whole is sent.
            file_request(file, Bounds { ranges_max: 1, ..bounds }, &mut fields, &mut expected, choices);
        }
        if matches!(expected.status[..], [412 | 416]) {
            expected.content = Content::Exact(Vec::new());
        }
        expected.fields.push(("X-Own", "yes".into()));
    }
    let version = persistence(bounds, &mut fields, &mut expected, choices);
    if version == "HTTP/1.0" {
        // It depends on whether the length is known in time.
        expected.open();
    }
    let body = match choices.chance(40) {
        true => Body::default(),
        false if bounds.protocol == Protocol::Http1 => streamed_body(bounds, version, &mut fields, choices),
        false => body(bounds, version, &mut fields, choices),
    };
    if bounds.protocol == Protocol::Http1 && !body.bytes.is_empty() {
        // The origin has the request before the body is complete, and may fail before that.
        expected.open();
    }
    if manner.is_of_offers() {
        // It lies only to a server that has made the right offer.
        expected.open();
    }
    if !manner.is_orderly() {
        // It may be answered before all of its body has been read.
        expected.open();
    }
    // Requests wait for one another, and time passes while they do.
    expected.status.push(503);
    if expected.may_fail {
        expected.status.extend([502, 504]);
    }
    if expected.is_head {
        expected.content = Content::Any;
    } else if let Some(content) = own_content(query, method, &body.content, folder) {
        let is_own = manner.status() == 200 && manner != Manner::Redirect;
        if bounds.digests && method == "GET" && is_own {
            let is_named = choices.chance(40);
            name_body(&content, is_named, &mut fields, &mut expected);
        }
        expected.content = Content::Exact(content);
    }
    if let Some((status, _)) = body.refused {
        expected.refuse(status);
    }
    Request::assemble(
        format!("{method} {APPLICATION}?{} {version}", query.write()),
        &fields,
        &body.bytes,
        expected,
    )
}

/// Expects the digest of the body as its tag; `is_named`: the client has that body.
fn name_body(content: &[u8], is_named: bool, fields: &mut String, expected: &mut Expected) {
    let digest = digest(&SHA256, content);
    let half: String = digest.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{half}\"");
    if is_named {
        fields.push_str(&format!("If-None-Match: {tag}\r\n"));
        expected.status.push(304);
    }
    expected.tag = Some((tag, is_named));
}

/// A body that may be refused for its head only: the origin may answer before anything else of it is known.
fn streamed_body(bounds: Bounds, version: &str, fields: &mut String, choices: &mut Choices) -> Body {
    loop {
        let mut own = fields.clone();
        let body = body(bounds, version, &mut own, choices);
        if !matches!(body.refused, Some((_, false))) {
            *fields = own;
            return body;
        }
    }
}

fn manner(method: &str, protocol: Protocol, choices: &mut Choices) -> Manner {
    let manner = match choices.number(0..10) {
        0..=2 => Manner::Whole,
        3 | 4 => Manner::Open,
        5 if protocol != Protocol::Http1 => {
            choices.one(&[Manner::SendFile, Manner::AccelRedirect, Manner::ZeroCopy])
        }
        _ => choices.one(&Manner::of(protocol)),
    };
    // Without a body, there is none to be cut.
    let is_cut = matches!(manner, Manner::Short | Manner::Cut | Manner::OpenCut | Manner::HeadOnly);
    if method == "HEAD" && is_cut { Manner::Whole } else { manner }
}

/// The content that the application decides, unless it is one file.
fn own_content(query: Query, method: &str, body: &[u8], folder: &Folder) -> Option<Vec<u8>> {
    match query.manner {
        Manner::SendFile | Manner::AccelRedirect => None,
        Manner::Redirect => {
            folder.files.iter().find(|file| file.path == REDIRECTED_TO).map(|file| file.bytes.clone())
        }
        Manner::Early => Some(query.content(method, b"")),
        Manner::ZeroCopy => {
            let (file, other) = query.file(&folder.files);
            Some([&query.content(method, body), &file.bytes, &other.bytes, AFTER_FILES].concat())
        }
        manner => (!manner.fails()).then(|| query.content(method, body)),
    }
}
