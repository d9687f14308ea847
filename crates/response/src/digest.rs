//! Digests of bodies as entity tags, for responses that bring none (RFC 9110 section 8.8.3): a client that has the body
//! gets a 304 in its place.

use baton_compress::Verdict;
use baton_http::origin::ResponseHead;
use baton_http::response::is_type_among;
use baton_http::{ETag, Precondition, RequestHead, Status, list_members};
use baton_site::plan::Digest;

use crate::compress;
use crate::page::Page;
use crate::rules::Rules;
use crate::supplies::Supplies;
use crate::value::{Author, Body, Head, Response};

/// Whether a response gets the digest of its body as its tag, once the body has ended and is not too long.
///
/// Of `no-store` a client keeps nothing that it could ask about. A stream of events is not held back until its end.
pub fn is_digested(digest: Option<Digest>, head: &ResponseHead) -> bool {
    let is_of_events = |media_type| is_type_among(media_type, [&b"text/event-stream"[..]].into_iter());
    digest.is_some()
        && head.status() == Status::OK
        && head.field("ETag").is_none()
        && head.content_length().is_none_or(|bytes| bytes <= Digest::BYTES_MAX)
        && !head.field("Content-Type").is_some_and(is_of_events)
        && !head.values("Cache-Control").any(says_no_store)
}

/// Gives a response the digest of its body as its tag, and obeys the client's conditions on that.
pub(crate) fn digested(
    mut response: Response,
    rules: &Rules<'_>,
    request: &RequestHead<'_>,
    supplies: &mut Supplies<'_>,
) -> Response {
    let (
        Head::Lines(head, author @ (Author::Application { .. } | Author::Origin)),
        Body::Begun(body, true),
        Some(digest),
    ) = (&mut response.head, &response.body, rules.digest)
    else {
        return response;
    };
    let is_whole = head.content_length().is_none_or(|declared| declared == body.len());
    if !is_whole || body.len() > Digest::BYTES_MAX || !is_digested(rules.digest, head) {
        return response;
    }
    let Some(tag) = supplies.digests.of(body, digest).map(ETag::of_digest) else { return response };
    let verdict = compress::verdict(rules.compress, *author, request, head, Some(body.len()));
    let promises_bytes = !matches!(verdict, Verdict::Coded(_)) && !has_ranges(digest, head);
    let tag = if promises_bytes { tag } else { tag.weakened() };
    head.add("ETag", tag.as_ref());
    match request.conditions.evaluate(request.method, &tag, None) {
        Precondition::Proceed => response,
        Precondition::Failed => rules.page(Page::error(Status::PRECONDITION_FAILED)),
        Precondition::NotModified => {
            head.set_status(Status::NOT_MODIFIED);
            // Without a type it varies as the response in whose place it is.
            if verdict != Verdict::Never {
                head.retain(|name, _| !name.eq_ignore_ascii_case(b"Content-Type"));
            }
            Response { body: Body::None, ..response }
        }
    }
}

/// Whether ranges are answered without a look at the tag. A client adds none to bytes with a weak tag (section 13.1.5).
fn has_ranges(digest: Digest, head: &ResponseHead) -> bool {
    let accepts = |unit: &[u8]| !unit.eq_ignore_ascii_case(b"none");
    digest == Digest::Kept || head.values("Accept-Ranges").any(accepts)
}

fn says_no_store(value: &[u8]) -> bool {
    list_members(value).any(|member| member.eq_ignore_ascii_case(b"no-store"))
}
