//! A file as an answer: whole, in part, or not at all because the client has it.

use baton_buf::Piece;
use baton_content::{BodySource, Stored};
use baton_http::multipart::Multipart;
use baton_http::{ByteRange, Method, Ranges, RequestHead, Stamp, Status};

use super::env::Ready;
use super::page::Page;
use super::routed::Routed;
use super::selection::{Selection, select};
use crate::context::Context;
use crate::outlet::{SendPolicy, is_resident};
use crate::protocol::Responder;
use crate::send_way::Trial;

impl Routed<'_> {
    /// Answers with what the client should get of a file.
    pub(super) fn file(
        &self,
        ctx: &mut Context,
        head: &RequestHead<'_>,
        stored: &Stored,
        ranges_max: usize,
        reply: &mut Responder<'_>,
    ) -> Ready {
        match select(ctx, head, stored, ranges_max) {
            Selection::NotModified => self.not_modified(ctx, stored, reply),
            Selection::PreconditionFailed => self.page(ctx, Page::error(Status::PRECONDITION_FAILED), reply),
            Selection::Bytes(Ranges::Whole) => self.whole(ctx, stored, reply),
            Selection::Bytes(Ranges::Parts(parts)) => match *parts {
                [only] => self.part(ctx, stored, only, reply),
                ref several => self.parts(ctx, stored, several, reply),
            },
            Selection::Bytes(Ranges::Unsatisfiable) => {
                self.page(ctx, Page::range_not_satisfiable(stored.len()), reply)
            }
        }
    }

    /// The cached response: for a small file one buffer, head and body in it.
    fn whole(&self, ctx: &mut Context, stored: &Stored, reply: &mut Responder<'_>) -> Ready {
        if ctx.answers_mark() || self.allowed.is_some() {
            return self.whole_for_one(ctx, stored, reply);
        }
        let form = reply.head_form();
        // The cost of a head alone says nothing about the two ways.
        let (way, mut trial) = match self.method {
            Method::Get => choose(ctx, stored, stored.len(), reply.may_send_by_reference()),
            _ => (BodySource::Memory, None),
        };
        let mut whole = stored.whole(form, ctx.clock.stamp(), way);
        let rest = whole.rest.as_ref();
        if way == BodySource::File && !rest.is_none_or(|rest| may_go(rest, &ctx.send, ctx.clock.stamp())) {
            (whole, trial) = (stored.whole(form, ctx.clock.stamp(), BodySource::Memory), None);
        }
        reply.send_whole(whole);
        Ready { trial, ..Status::OK.into() }
    }

    /// The same with a head of its own, for a request whose id is answered, or of a page that may read the response.
    fn whole_for_one(&self, ctx: &mut Context, stored: &Stored, reply: &mut Responder<'_>) -> Ready {
        let mut bytes = ctx.heads.take();
        let mut head = self.begin(ctx, &mut bytes, Status::OK, reply);
        head.number("Content-Length", stored.len()).raw(stored.fields()).end();
        let (body, trial) = range(ctx, stored, 0, stored.len(), reply.may_send_by_reference());
        reply.send_with(&mut ctx.heads, bytes, body);
        Ready { trial, ..Status::OK.into() }
    }

    fn not_modified(&self, ctx: &mut Context, stored: &Stored, reply: &mut Responder<'_>) -> Ready {
        let mut bytes = ctx.heads.take();
        let mut head = self.begin(ctx, &mut bytes, Status::NOT_MODIFIED, reply);
        head.raw(stored.fields()).end();
        reply.send(&mut ctx.heads, bytes, b"");
        Status::NOT_MODIFIED.into()
    }

    /// One range, which nearly all requests for ranges ask for.
    fn part(&self, ctx: &mut Context, stored: &Stored, part: ByteRange, reply: &mut Responder<'_>) -> Ready {
        let mut bytes = ctx.heads.take();
        let mut head = self.begin(ctx, &mut bytes, Status::PARTIAL_CONTENT, reply);
        head.number("Content-Length", part.len()).content_range(part, stored.len());
        head.raw(stored.fields()).end();
        let (body, trial) = range(ctx, stored, part.first, part.len(), reply.may_send_by_reference());
        reply.send_with(&mut ctx.heads, bytes, body);
        Ready { trial, ..Status::PARTIAL_CONTENT.into() }
    }

    /// Several ranges, in a form with a part for each.
    fn parts(
        &self,
        ctx: &mut Context,
        stored: &Stored,
        parts: &[ByteRange],
        reply: &mut Responder<'_>,
    ) -> Ready {
        let boundary = boundary(stored, ctx.clock.now_ms());
        let form = Multipart { boundary: &boundary, media_type: stored.media_type(), length: stored.len() };
        let mut bytes = ctx.heads.take();
        let mut head = self.begin(ctx, &mut bytes, Status::PARTIAL_CONTENT, reply);
        let mut content_type = Vec::new();
        form.push_content_type(&mut content_type);
        head.number("Content-Length", form.content_length(parts)).field("Content-Type", content_type);
        // The type of the file itself stands with each part.
        for line in stored.fields().split_inclusive(|&byte| byte == b'\n') {
            if !line.starts_with(b"Content-Type:") {
                head.raw(line);
            }
        }
        head.end();
        reply.send(&mut ctx.heads, bytes, b"");
        for part in parts {
            let mut part_head = ctx.heads.take();
            form.push_part_head(&mut part_head, *part);
            reply.send_body(ctx.heads.freeze(part_head));
            reply.send_body(stored.body(part.first, part.len()));
        }
        let mut tail = ctx.heads.take();
        form.push_tail(&mut tail);
        reply.send_body(ctx.heads.freeze(tail));
        Status::PARTIAL_CONTENT.into()
    }
}

/// A range of a file, from the source that costs less; and the measurement to make if only its head leaves with it.
pub(super) fn range(
    ctx: &mut Context,
    stored: &Stored,
    first: u64,
    len: u64,
    by_reference: bool,
) -> (Piece, Option<Trial>) {
    let (way, trial) = choose(ctx, stored, len, by_reference);
    // Test the whole file, so that one test a second serves all its ranges.
    let may_go = || may_go(&stored.body_by(way, 0, stored.len()), &ctx.send, ctx.clock.stamp());
    match way == BodySource::Memory || may_go() {
        true => (stored.body_by(way, first, len), trial),
        false => (stored.body(first, len), None),
    }
}

/// The way for so many bytes of a file, and whether it is to be measured. `by_reference`: the client's connection takes
/// ranges of files.
fn choose(ctx: &mut Context, stored: &Stored, len: u64, by_reference: bool) -> (BodySource, Option<Trial>) {
    match stored.has_both_ways() && by_reference {
        true => ctx.send_ways.choose(len),
        false => (BodySource::Memory, None),
    }
}

/// Whether sending this would not wait for a disk. If the page cache has dropped the file, the server sends its own
/// copy.
fn may_go(piece: &Piece, policy: &SendPolicy, now: &Stamp) -> bool {
    match piece {
        Piece::File(slice) if policy.test_residency => is_resident(slice, slice.len(), now.unix_seconds),
        _ => true,
    }
}

/// A boundary that the file contains with a probability of 2^-64: a hash that no client can compute.
fn boundary(stored: &Stored, now_ms: u64) -> String {
    use std::hash::{BuildHasher, RandomState};
    let hash = RandomState::new().hash_one((stored.etag().as_ref(), now_ms));
    format!("baton{hash:016x}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use baton_buf::FileSlice;

    use super::*;
    use crate::SendfileMode;
    use crate::cold_file::cold_file;

    /// A file in memory goes from the page cache only if it is there, unless the thread may wait anyway.
    #[test]
    fn no_send_waits_for_a_disk_with_the_bytes_in_memory() {
        const LEN: u64 = 64 * 1024;
        let now = Stamp::at(1);
        let policy = |test_residency| SendPolicy {
            sendfile: SendfileMode::NonBlocking,
            quantum_bytes: u64::MAX,
            test_residency,
            kernel_tls: false,
        };
        let file = cold_file(LEN);
        let piece = Piece::from(FileSlice::new(Arc::clone(&file), 0, LEN));
        assert!(may_go(&piece, &policy(false), &now));
        assert!(!may_go(&piece, &policy(true), &now));
        baton_sys::residency::bring_in(&*file, 0, LEN).unwrap();
        assert!(may_go(&piece, &policy(true), &now));
    }
}
