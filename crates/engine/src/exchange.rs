//! One request and its answer: route, find content, plan. Knows no socket and no framing.
//!
//! ```text
//!   RequestHead ─► site ─► route ─► find ─► conditions ─► ranges ─► head + body as an aggregate
//!                                     │
//!                                     └─► Answer::Needs(job), when finding might wait for a disk
//! ```

mod file;
mod page;

use std::sync::Arc;

use baton_buf::Buffer;
use baton_content::{Found, NeedsDisk, Query, Tree};
use baton_http::{AcceptedCodings, Method, ReplyHead, RequestHead, Status, Version};
use rustix::io::Errno;

use crate::connection::{Body, Request};
use crate::context::Context;
use crate::job::Job;
use crate::log::Outcome;
use crate::outlet::Outlet;
use crate::plan::{Action, Plan, Site};
use crate::ways::Trial;
use page::Page;

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The response is in the outlet.
    Ready(Ready),
    /// The same again once this is done, with what it found.
    Needs(Job),
    /// The same again once the body has come: the client has been told to send it.
    Continue,
}

/// A response that has been put into the outlet.
#[derive(Debug)]
pub(crate) struct Ready {
    /// Its status.
    pub(crate) status: u16,
    /// Bytes of its head.
    pub(crate) head_bytes: u64,
    /// Whether the connection goes on.
    pub(crate) keep_alive: bool,
    /// Index of the site in the plan.
    pub(crate) site: usize,
    /// How the request ends if the response arrives.
    pub(crate) outcome: Outcome,
    /// Whether it is to be measured what sending it costs.
    pub(crate) trial: Option<Trial>,
}

/// What the parts of an answer need to know of its request.
#[derive(Clone, Copy, Debug)]
struct Asked<'a> {
    site: &'a Site,
    site_index: usize,
    method: Method,
    version: Version,
    keep_alive: bool,
    server_header: bool,
}

/// Answers a request into the outlet. `keep_alive_allowed`: whether the server is willing to go on after it.
pub(crate) fn answer(
    ctx: &mut Context,
    plan: &Plan,
    request: &Request<'_>,
    listener: usize,
    keep_alive_allowed: bool,
    found: Option<Found>,
    outlet: &mut Outlet,
) -> Answer {
    let head = &request.head;
    let Some(site_index) = plan.site(listener, head.host) else {
        return Answer::Ready(refuse(ctx, plan, Status::NOT_FOUND, "No site answers here.", outlet));
    };
    let site = &plan.sites()[site_index];
    let asked = Asked {
        site,
        site_index,
        method: head.method,
        version: head.version,
        // Where the next request begins is not known before a body has been read past.
        keep_alive: head.keep_alive && keep_alive_allowed && request.body == Body::Passed,
        server_header: plan.server_header,
    };
    if request.body == Body::TooLarge {
        return Answer::Ready(asked.page(ctx, Page::error(Status::CONTENT_TOO_LARGE), outlet));
    }
    let action = match site.route(head.path, &mut ctx.path) {
        Ok(route) => route.map(|route| &route.action),
        // "*", which only OPTIONS has, is no path and needs none.
        Err(_) if head.method == Method::Options => None,
        Err(refusal) => return Answer::Ready(asked.page(ctx, Page::refused_path(refusal), outlet)),
    };
    let is_read = matches!(head.method, Method::Get | Method::Head);
    if request.body == Body::Awaited && is_read && action.is_some() {
        // Nobody wants the body, but to be rid of it costs the client less than a new connection.
        outlet.push(Buffer::new(CONTINUE.to_vec()));
        return Answer::Continue;
    }
    // Nothing may be put into the outlet before it is certain that the answer can be: what needs a job is tried again.
    let found = match (action, found) {
        (Some(Action::Files(tree)), None) if is_read => match find(ctx, tree, head) {
            Ok(found) => Some(found),
            Err(job) => return Answer::Needs(job),
        },
        (_, found) => found,
    };
    let ready = match (action, head.method) {
        (_, Method::Options) => asked.page(ctx, Page::options(), outlet),
        (_, Method::Other | Method::Connect) => asked.page(ctx, Page::error(Status::NOT_IMPLEMENTED), outlet),
        _ if !is_read => asked.page(ctx, Page::method_not_allowed(), outlet),
        (None, _) => asked.page(ctx, Page::error(Status::NOT_FOUND), outlet),
        (Some(Action::Redirect { status, location }), _) => {
            let location = page::expand(location, head);
            asked.page(ctx, Page::redirect(Status::new(*status), &location), outlet)
        }
        (Some(Action::Respond { status, media_type, headers, body }), _) => {
            asked.page(ctx, Page::fixed(Status::new(*status), media_type, headers, body), outlet)
        }
        (Some(Action::Files(_)), _) => {
            asked.found(ctx, head, found.unwrap_or(Found::Missing), plan.limits.ranges_max, outlet)
        }
    };
    Answer::Ready(ready)
}

/// What there is at the request's path; or what has to be done to find out.
fn find(ctx: &Context, tree: &Arc<Tree>, head: &RequestHead<'_>) -> Result<Found, Job> {
    let query = Query {
        path: head.path,
        accepted: AcceptedCodings::parse(head.accept_encoding),
        accept_json: tree.lists() && page::prefers_json(head),
    };
    let found = ctx.cache.find(tree, &query, ctx.clock.stamp(), ctx.blocking);
    found.map_err(|NeedsDisk| Job::find(ctx, tree, &query))
}

impl Asked<'_> {
    /// Answers with what was found.
    fn found(
        &self,
        ctx: &mut Context,
        head: &RequestHead<'_>,
        found: Found,
        ranges_max: usize,
        outlet: &mut Outlet,
    ) -> Ready {
        match found {
            Found::File(stored) => self.file(ctx, head, &stored, ranges_max, outlet),
            Found::Listing(listed) => self.page(ctx, Page::listing(&listed), outlet),
            Found::AddSlash => {
                let location = page::with_slash(head);
                self.page(ctx, Page::redirect(Status::MOVED_PERMANENTLY, &location), outlet)
            }
            Found::Missing => self.page(ctx, Page::error(Status::NOT_FOUND), outlet),
            Found::Forbidden => self.page(ctx, Page::error(Status::FORBIDDEN), outlet),
            Found::Refused(refusal) => self.page(ctx, Page::refused_path(refusal), outlet),
            Found::Failed(errno) => {
                let mut ready = self.page(ctx, Page::error(status_of(errno)), outlet);
                ready.outcome = Outcome::Failed;
                ready
            }
        }
    }
}

/// Refuses something that is not a request we understand; the connection ends with it.
pub(crate) fn refuse(
    ctx: &mut Context,
    plan: &Plan,
    status: Status,
    why: &str,
    outlet: &mut Outlet,
) -> Ready {
    let head_start = outlet.end();
    let body = page::text(status, why);
    let mut head = ctx.heads.take();
    let mut reply = ReplyHead::begin(&mut head, status);
    if plan.server_header {
        reply.field("Server", page::SERVER);
    }
    reply.date(ctx.clock.stamp());
    reply.field("Connection", "close");
    reply.field("Content-Type", page::HTML);
    reply.number("Content-Length", body.len() as u64);
    reply.end();
    outlet.push(ctx.heads.freeze(head));
    let head_bytes = outlet.end() - head_start;
    outlet.push(Buffer::new(body));
    Ready {
        status: status.code(),
        head_bytes,
        keep_alive: false,
        site: usize::MAX,
        outcome: Outcome::Refused,
        trial: None,
    }
}

/// What a failed look at a file means to the client.
fn status_of(errno: Errno) -> Status {
    match errno {
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::STALE => Status::SERVICE_UNAVAILABLE,
        _ => Status::INTERNAL_SERVER_ERROR,
    }
}

/// What a client that expects it is sent before the answer.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
