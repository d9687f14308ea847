//! One request and its answer: route, find content, plan. Knows no socket and no framing.
//!
//! ```text
//!   RequestHead ─► site ─► route ─► find ─► conditions ─► ranges ─► head + body as an aggregate
//!                                     │
//!                                     └─► Answer::Needs(job), when finding might wait for a disk
//! ```

mod file;
mod page;

use baton_content::{Found, NeedsDisk, Query};
use baton_http::{AcceptedCodings, BodyFraming, Method, ReplyHead, RequestHead, Status, Version};
use rustix::io::Errno;

use crate::context::Context;
use crate::job::Job;
use crate::log::Outcome;
use crate::outlet::Outlet;
use crate::plan::{Action, Plan, Site};
use page::Page;

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The response is in the outlet.
    Ready(Ready),
    /// The same again once this is done, with what it found.
    Needs(Job),
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
    head: &RequestHead<'_>,
    listener: usize,
    keep_alive_allowed: bool,
    found: Option<Found>,
    outlet: &mut Outlet,
) -> Answer {
    let Some(site_index) = plan.site(listener, head.host) else {
        return Answer::Ready(refuse(ctx, plan, Status::NOT_FOUND, "No site answers here.", outlet));
    };
    let site = &plan.sites()[site_index];
    let mut asked = Asked {
        site,
        site_index,
        method: head.method,
        version: head.version,
        keep_alive: head.keep_alive && keep_alive_allowed,
        server_header: plan.server_header,
    };
    if let BodyFraming::Length(length) = head.framing
        && length > plan.limits.body_bytes_max
    {
        asked.keep_alive = false;
        return Answer::Ready(asked.page(ctx, Page::error(Status::CONTENT_TOO_LARGE), outlet));
    }
    let route = site.route(head.path);
    let method_allowed = matches!(head.method, Method::Get | Method::Head);
    if head.expects_continue {
        if method_allowed && route.is_some() {
            // The body will be read past in any case: let it come (RFC 9110, section 10.1.1).
            outlet.push(baton_buf::Buffer::new(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()));
        } else {
            // Whether the body follows is the client's choice; where the next request begins is unknown.
            asked.keep_alive = false;
        }
    }
    let ready = match route.map(|route| &route.action) {
        _ if head.method == Method::Options => asked.page(ctx, Page::options(), outlet),
        _ if matches!(head.method, Method::Other | Method::Connect) => {
            asked.page(ctx, Page::error(Status::NOT_IMPLEMENTED), outlet)
        }
        _ if !method_allowed => asked.page(ctx, Page::method_not_allowed(), outlet),
        None => asked.page(ctx, Page::error(Status::NOT_FOUND), outlet),
        Some(Action::Redirect { status, location }) => {
            let location = page::expand(location, head);
            asked.page(ctx, Page::redirect(Status::new(*status), &location), outlet)
        }
        Some(Action::Respond { status, media_type, headers, body }) => {
            asked.page(ctx, Page::fixed(Status::new(*status), media_type, headers, body), outlet)
        }
        Some(Action::Files(tree)) => {
            let found = match found {
                Some(found) => found,
                None => {
                    let query = Query {
                        path: head.path,
                        accepted: AcceptedCodings::parse(head.accept_encoding),
                        accept_json: tree.lists() && page::prefers_json(head),
                    };
                    match ctx.cache.find(tree, &query, ctx.clock.stamp(), ctx.blocking) {
                        Ok(found) => found,
                        Err(NeedsDisk) => return Answer::Needs(Job::find(ctx, tree, &query)),
                    }
                }
            };
            match found {
                Found::File(stored) => asked.file(ctx, head, &stored, plan.limits.ranges_max, outlet),
                Found::Listing(listed) => asked.page(ctx, Page::listing(&listed), outlet),
                Found::AddSlash => {
                    let location = page::with_slash(head);
                    asked.page(ctx, Page::redirect(Status::MOVED_PERMANENTLY, &location), outlet)
                }
                Found::Missing => asked.page(ctx, Page::error(Status::NOT_FOUND), outlet),
                Found::Forbidden => asked.page(ctx, Page::error(Status::FORBIDDEN), outlet),
                Found::Refused(refusal) => asked.page(ctx, Page::refused_path(refusal), outlet),
                Found::Failed(errno) => {
                    let mut ready = asked.page(ctx, Page::error(status_of(errno)), outlet);
                    ready.outcome = Outcome::Failed;
                    ready
                }
            }
        }
    };
    Answer::Ready(ready)
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
    outlet.push(baton_buf::Buffer::new(body));
    Ready {
        status: status.code(),
        head_bytes,
        keep_alive: false,
        site: usize::MAX,
        outcome: Outcome::Refused,
    }
}

/// What a failed look at a file means to the client.
fn status_of(errno: Errno) -> Status {
    match errno {
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::STALE => Status::SERVICE_UNAVAILABLE,
        _ => Status::INTERNAL_SERVER_ERROR,
    }
}
