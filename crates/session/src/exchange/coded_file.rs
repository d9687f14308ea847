//! Files in a content coding that is made on the fly: once, by a job, and from then on from the cache.

use std::sync::Arc;

use baton_content::{Coded, Stored};
use baton_http::RequestHead;
use baton_telemetry::metrics::Metric;

use crate::context::Context;
use crate::job::{CodedFile, Job};
use crate::protocol::StreamId;

/// The form of a file that this client gets, or the job that makes it.
pub(super) fn coded(
    ctx: &mut Context,
    stream: StreamId,
    head: &RequestHead<'_>,
    stored: Arc<Stored>,
) -> Result<Arc<Stored>, Job> {
    let Some(rules) = stored.compress() else { return Ok(stored) };
    // Ranges are of the file as it is: a part of a coded one is of use only with all the others.
    if head.range.is_some() || !rules.covers_file(stored.len()) {
        return Ok(stored);
    }
    let Some(coding) = rules.choose(head.accept_encoding) else { return Ok(stored) };
    match ctx.cache.coded(&stored, coding, ctx.clock.stamp()) {
        Coded::Made(made) => {
            ctx.tally.add(Metric::of_coded_response(coding), 1);
            Ok(made)
        }
        Coded::ToDo(to_code) => Err(Job::Code(stream, to_code)),
        Coded::AsItIs => Ok(stored),
    }
}

/// The form of a file that a job has made, which is counted.
pub(super) fn take(ctx: &mut Context, coded: CodedFile) -> Arc<Stored> {
    let CodedFile { coding, file_bytes, stored } = coded;
    ctx.tally.add(Metric::CompressionBytesIn, file_bytes);
    if stored.is_coded() {
        ctx.tally.add(Metric::CompressionBytesOut, stored.len());
        ctx.tally.add(Metric::of_coded_response(coding), 1);
    }
    stored
}
