//! A body in a content coding, if the route and the client want that.

use baton_compress::{Verdict, code, judge};
use baton_http::origin::ResponseHead;
use baton_http::{Coding, Method, RequestHead};
use baton_telemetry::metrics::Tally;

use crate::coder::Coder;
use crate::head::Beginning;
use crate::value::Author;

/// What is sent of a body: what is there of it, and its length if that is all.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) bytes: Beginning,
    pub(crate) whole: Option<u64>,
}

/// Whether a response is coded. A short one of the server's own never is.
pub(crate) fn verdict(
    rules: Option<&baton_compress::Rules>,
    author: Author,
    request: &RequestHead<'_>,
    head: &ResponseHead,
    whole: Option<u64>,
) -> Verdict {
    let Some(rules) = rules.filter(|_| !matches!(author, Author::File)) else { return Verdict::Never };
    let is_short = head.content_length().is_some_and(|bytes| bytes < rules.min_bytes);
    match author {
        Author::Server(_) if is_short => Verdict::Never,
        _ => judge(rules, request, head, whole),
    }
}

/// Codes the body as far as it is there, in its first turn. Returns what codes the rest.
pub(crate) fn begin(
    coding: Coding,
    method: Method,
    head: &mut ResponseHead,
    sent: &mut Sent,
    tally: &mut Tally,
) -> Option<Box<Coder>> {
    let declared = head.content_length();
    if method == Method::Head {
        code(head, coding);
        sent.whole = None;
        return None;
    }
    let mut coder = Coder::new(coding, declared, tally)?;
    code(head, coding);
    coder.take(std::mem::take(&mut sent.bytes).into());
    match sent.whole {
        // A head that is not sent yet can say how long the body has become.
        Some(_) if coder.can_finish() => {
            if let Ok(coded) = coder.finish(tally) {
                (sent.whole, sent.bytes) = (Some(coded.len()), Beginning::Several(coded));
                return None;
            }
        }
        _ => sent.bytes = Beginning::Several(coder.code(tally).unwrap_or_default()),
    }
    // What has failed fails again behind the head.
    sent.whole = None;
    Some(Box::new(coder))
}
