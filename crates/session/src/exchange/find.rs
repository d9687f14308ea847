//! What there is at a path of a folder.

use std::sync::Arc;

use baton_content::{Found, NeedsDisk, Query, Tree, View};
use baton_http::{AcceptedCodings, RequestHead, preferred_media_type};

use crate::context::Context;
use crate::job::Job;
use crate::protocol::StreamId;

/// What there is at a path, or the job that finds out.
pub(super) fn find(
    ctx: &Context,
    stream: StreamId,
    tree: &Arc<Tree>,
    head: &RequestHead<'_>,
    path: &[u8],
) -> Result<Found, Job> {
    let query = Query {
        path,
        accepted: AcceptedCodings::parse(head.accept_encoding),
        view: if tree.lists() { view(head) } else { View::default() },
    };
    let found = ctx.find(tree, &query);
    tell_hidden_link(ctx, tree);
    found.map_err(|NeedsDisk| Job::find(ctx, stream, tree, &query))
}

/// How a client wants its listings: browsers as HTML, programs as JSON.
fn view(head: &RequestHead<'_>) -> View {
    let prefers_json = preferred_media_type(head.accept, &["text/html", "application/json"]) == 1;
    View::of_request(head.query, prefers_json)
}

/// Tells the operator, at its first request, of a link that is not followed and thus of a path that is not found.
pub(super) fn tell_hidden_link(ctx: &Context, tree: &Tree) {
    if let Some(link) = tree.take_hidden_link() {
        ctx.warn(format_args!("{link}"));
    }
}
