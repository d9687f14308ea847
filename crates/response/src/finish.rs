//! The steps that every response takes, in their order: digests, conditions and ranges, compression, what the configuration says,
//! framing. What follows its head is the protocol's business.

use std::sync::Arc;

use baton_buf::{Aggregate, Buffer};
use baton_compress::Verdict;
use baton_content::{BodySource, Stored};
use baton_http::multipart::Multipart;
use baton_http::origin::ResponseHead;
use baton_http::response::{Framing, HeadLines, push_join};
use baton_http::{ByteRange, Method, Ranges, ReplyHead, RequestHead, Status};

use crate::compress::{self, Sent};
use crate::digest::digested;
use crate::file::{boundary, choose, may_go, range};
use crate::head::Beginning;
use crate::page::Page;
use crate::reply::Reply;
use crate::rules::{Rules, push_date};
use crate::selection::{Selection, select};
use crate::send_way::Trial;
use crate::supplies::Supplies;
use crate::value::{Author, Body, Head, Ready, Response};

/// Finishes a response, and gives it to the protocol. `request`: `None`: it could not be read.
pub fn finish(
    response: Response,
    rules: &Rules<'_>,
    request: Option<&RequestHead<'_>>,
    supplies: &mut Supplies<'_>,
    reply: &mut impl Reply,
) -> Ready {
    let response = match request {
        Some(request) => selected(digested(response, rules, request, supplies), rules, request, supplies),
        None => response,
    };
    let outcome = response.outcome;
    let method = request.map_or(Method::Get, |request| request.method);
    if let (Head::Ready(Status::OK, stored), Body::File(_)) = (&response.head, &response.body)
        && !rules.is_personal()
    {
        return Ready {
            outcome,
            trial: send_ready_made(stored, method, supplies, reply),
            ..Status::OK.into()
        };
    }
    let (mut sent, mut trial) = (Sent::default(), None);
    let part = if let Body::Part(stored, part) = &response.body { Some((*part, stored.len())) } else { None };
    let declared = of_body(response.body, method, supplies, reply, &mut sent, &mut trial);
    let mut fields = supplies.heads.take();
    let (coder, status) = match response.head {
        Head::Ready(status, stored) => {
            rules.push_fields(Author::File, supplies.now, &mut fields);
            push_content_range(part, &mut fields);
            supplies.log.see_response([stored.fields(), &fields[..]]);
            let framing = Framing::of(status.code(), declared, sent.whole, reply.client());
            let lines = HeadLines { status, reason: status.reason().as_bytes(), text: stored.fields() };
            reply.send_head(supplies.heads, lines, framing, &fields, sent.bytes);
            (None, status)
        }
        Head::Lines(mut head, author) => {
            if declared.is_some() {
                head.set_content_length(declared);
            }
            let verdict = match request {
                Some(request) => compress::verdict(rules.compress, author, request, &head, sent.whole),
                None => Verdict::Never,
            };
            join_varies(&head, &mut fields);
            if verdict != Verdict::Never {
                push_join(&mut fields, "Vary", "Accept-Encoding");
            }
            let coder = match verdict {
                Verdict::Coded(coding) => {
                    compress::begin(coding, method, &mut head, &mut sent, supplies.tally)
                }
                Verdict::Never | Verdict::NotHere => None,
            };
            push_date(author, &head, supplies.now, &mut fields);
            rules.push_fields(author, supplies.now, &mut fields);
            push_content_range(part, &mut fields);
            let status = head.status();
            supplies.log.see_response([head.text(), &fields[..]]);
            let framing = Framing::of(status.code(), head.content_length(), sent.whole, reply.client());
            reply.send_head(supplies.heads, HeadLines::of(&head), framing, &fields, sent.bytes);
            (coder, status)
        }
    };
    supplies.heads.freeze(fields);
    let has_body = method != Method::Head && Framing::without_body(status.code()).is_none();
    Ready { status, outcome, trial: trial.filter(|_| has_body), coder }
}

/// Finishes the head of a response that switches protocols. Returns the status that the client sees.
pub fn switch(
    head: &ResponseHead,
    author: Author,
    rules: &Rules<'_>,
    supplies: &mut Supplies<'_>,
    reply: &mut impl Reply,
) -> Status {
    let mut fields = supplies.heads.take();
    push_date(author, head, supplies.now, &mut fields);
    rules.push_fields(author, supplies.now, &mut fields);
    supplies.log.see_response([head.text(), &fields[..]]);
    let status = reply.send_switch(supplies.heads, head, &fields);
    supplies.heads.freeze(fields);
    status
}

/// What the client's conditions and ranges leave of a file (RFC 9110, sections 13.2 and 14.2).
fn selected(
    mut response: Response,
    rules: &Rules<'_>,
    request: &RequestHead<'_>,
    supplies: &mut Supplies<'_>,
) -> Response {
    let (Status::OK, Body::File(stored)) = (response.status(), &response.body) else { return response };
    // Of several ranges of a file that an application has named, the whole: section 14.2 leaves it to the server.
    let ranges_max = if matches!(response.head, Head::Ready(..)) { rules.ranges_max } else { 1 };
    let (status, body) = match select(supplies.now, request, stored, ranges_max) {
        Selection::Bytes(Ranges::Whole) => return response,
        Selection::Bytes(Ranges::Parts(parts)) => match *parts {
            [only] => (Status::PARTIAL_CONTENT, Body::Part(Arc::clone(stored), only)),
            ref several => return in_parts(stored, several, supplies),
        },
        Selection::Bytes(Ranges::Unsatisfiable) => (Status::RANGE_NOT_SATISFIABLE, Body::None),
        Selection::NotModified => (Status::NOT_MODIFIED, Body::None),
        Selection::PreconditionFailed => (Status::PRECONDITION_FAILED, Body::None),
    };
    match (&mut response.head, status) {
        (Head::Ready(..), Status::RANGE_NOT_SATISFIABLE) => {
            return rules.page(Page::range_not_satisfiable(stored.len()));
        }
        (Head::Ready(..), Status::PRECONDITION_FAILED) => return rules.page(Page::error(status)),
        (Head::Ready(of_head, _), _) => *of_head = status,
        // The application's fields stay.
        (Head::Lines(head, _), _) => {
            head.set_status(status);
            if status == Status::RANGE_NOT_SATISFIABLE {
                head.add("Content-Range", format!("bytes */{}", stored.len()).as_bytes());
            }
        }
    }
    Response { body, ..response }
}

/// Several ranges of a file, in a form with a part for each.
fn in_parts(stored: &Arc<Stored>, parts: &[ByteRange], supplies: &mut Supplies<'_>) -> Response {
    let boundary = boundary(supplies.ids);
    let mut head = ResponseHead::of_status(Status::PARTIAL_CONTENT);
    head.add_with("Content-Type", |value| form(stored, &boundary).push_content_type(value));
    // The type of the file itself stands with each part.
    for line in stored.fields().split_inclusive(|&byte| byte == b'\n') {
        if !line.starts_with(b"Content-Type:") {
            head.add_lines(line);
        }
    }
    Response::of_lines(head, Author::File, Body::Parts(Arc::clone(stored), parts.to_vec(), boundary))
}

fn form<'a>(stored: &'a Stored, boundary: &'a str) -> Multipart<'a> {
    Multipart { boundary, media_type: stored.media_type(), length: stored.len() }
}

/// A whole file with its ready-made head: of a small one, both are in one buffer.
fn send_ready_made(
    stored: &Stored,
    method: Method,
    supplies: &mut Supplies<'_>,
    reply: &mut impl Reply,
) -> Option<Trial> {
    supplies.log.see_response([stored.fields()]);
    let form = reply.head_form();
    // The cost of a head alone says nothing about the two ways.
    let (way, mut trial) = match method {
        Method::Get => choose(supplies, stored, stored.len(), reply.may_send_by_reference()),
        _ => (BodySource::Memory, None),
    };
    let mut whole = stored.whole(form, supplies.now, way);
    let rest = whole.rest.as_ref();
    if way == BodySource::File && !rest.is_none_or(|rest| may_go(rest, supplies.is_resident, supplies.now)) {
        (whole, trial) = (stored.whole(form, supplies.now, BodySource::Memory), None);
    }
    reply.send_whole(whole);
    trial
}

/// What is sent of a body. Returns its length, if the body itself says it.
fn of_body(
    body: Body,
    method: Method,
    supplies: &mut Supplies<'_>,
    reply: &impl Reply,
    sent: &mut Sent,
    trial: &mut Option<Trial>,
) -> Option<u64> {
    let is_sent = method != Method::Head;
    let length = match &body {
        Body::None => 0,
        Body::Bytes(bytes) => bytes.len() as u64,
        Body::File(stored) => stored.len(),
        Body::Part(_, part) => part.len(),
        Body::Parts(stored, parts, boundary) => form(stored, boundary).content_length(parts),
        Body::Begun(..) => 0,
    };
    let by_reference = reply.may_send_by_reference();
    let mut of_file = |stored: &Stored, first, len, supplies: &mut Supplies<'_>| {
        let (piece, measured) = range(supplies, stored, first, len, by_reference);
        *trial = measured;
        Beginning::One(piece)
    };
    sent.bytes = match body {
        Body::Begun(bytes, is_whole) => {
            sent.whole = (is_whole && is_sent).then(|| bytes.len());
            sent.bytes = Beginning::Several(bytes);
            return None;
        }
        _ if !is_sent || length == 0 => Beginning::default(),
        Body::None => Beginning::default(),
        Body::Bytes(bytes) => Beginning::One(Buffer::new(bytes).into()),
        Body::File(stored) => of_file(&stored, 0, length, supplies),
        Body::Part(stored, part) => of_file(&stored, part.first, length, supplies),
        Body::Parts(stored, parts, boundary) => {
            Beginning::Several(parts_of(&stored, &parts, &boundary, supplies))
        }
    };
    sent.whole = Some(length);
    Some(length)
}

fn parts_of(stored: &Stored, parts: &[ByteRange], boundary: &str, supplies: &mut Supplies<'_>) -> Aggregate {
    let form = form(stored, boundary);
    let mut bytes = Aggregate::new();
    for part in parts {
        let mut part_head = supplies.heads.take();
        form.push_part_head(&mut part_head, *part);
        bytes.push(supplies.heads.freeze(part_head));
        bytes.push(stored.body(part.first, part.len()));
    }
    let mut tail = supplies.heads.take();
    form.push_tail(&mut tail);
    bytes.push(supplies.heads.freeze(tail));
    bytes
}

/// Has one line of several that say by which fields a response varies.
fn join_varies(head: &ResponseHead, fields: &mut Vec<u8>) {
    head.values("Vary").skip(1).for_each(|list| push_join(fields, "Vary", list));
}

fn push_content_range(part: Option<(ByteRange, u64)>, fields: &mut Vec<u8>) {
    if let Some((part, length)) = part {
        ReplyHead::resume(fields).content_range(part, length);
    }
}
