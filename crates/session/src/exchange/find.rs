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
    let query = query(tree, head, path);
    let found = ctx.find(tree, &query);
    tell_hidden_link(ctx, tree);
    found.map_err(|NeedsDisk| Job::find(ctx, stream, tree, &query))
}

/// Whether the answer is in memory, as far as that is known without a look at the file system.
pub(super) fn is_at_hand(ctx: &Context, tree: &Tree, head: &RequestHead<'_>) -> bool {
    ctx.cache.has_at_hand(tree, &query(tree, head, head.path), ctx.clock.stamp())
}

fn query<'a>(tree: &Tree, head: &RequestHead<'a>, path: &'a [u8]) -> Query<'a> {
    let accepted = AcceptedCodings::parse(head.accept_encoding);
    Query { path, accepted, view: if tree.lists() { view(head) } else { View::default() } }
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
