//! One request and its answer: route, find content, plan. Knows no socket and no framing.
//!
//! ```text
//!   RequestHead ─► site ─► route ─► find ─► conditions ─► ranges ─► head + body as an aggregate
//!                              │      │
//!                              │      └─► Answer::Needs(job), when finding might wait for a disk
//!                              └─► Answer::Delegated, when an application is to answer
//! ```

mod application;
mod file;
mod location;
mod named;
mod page;
mod selection;

use std::borrow::Cow;
use std::sync::Arc;

use baton_content::{Found, NeedsDisk, Query, Tree};
use baton_http::{AcceptedCodings, BodyFraming, FieldRules, Method, PathRefusal, RequestHead, Status};
use rustix::io::Errno;

use crate::context::Context;
use crate::job::Job;
use crate::log::Outcome;
use crate::plan::{Action, Delegate, Plan, Site};
use crate::protocol::{Body, Request, Responder};
use crate::transport::Transport;
use crate::upload::Upload;
use crate::ways::Trial;
use application::{Program, split_path_info};
use page::Page;

pub(crate) use application::{Delegation, Origin, failure_page, response_fields};
pub(crate) use file::range;
pub(crate) use named::{NamedFile, answer_with_body, answer_with_file};

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The response is in the outlet.
    Ready(Ready),
    /// The same again once this is done, with what it found.
    Needs(Job),
    /// The same again once the answers before it have been sent.
    AfterOthers,
    /// An application is to answer.
    Delegated(Box<Delegation>),
    /// The same again once the body has come.
    NeedsBody {
        /// Where its contents are kept; `None`: the answer waits for nothing but what has arrived.
        upload: Option<Box<Upload>>,
        /// Bytes of it that are taken.
        bytes_max: u64,
    },
}

/// A response that has been put into the outlet.
#[derive(Debug)]
pub(crate) struct Ready {
    /// Its status.
    pub(crate) status: u16,
    /// Bytes of its head.
    pub(crate) head_bytes: u64,
    /// Index of the site in the plan.
    pub(crate) site: usize,
    /// How the request ends if the response arrives.
    pub(crate) outcome: Outcome,
    /// Whether it is to be measured what sending it costs.
    pub(crate) trial: Option<Trial>,
}

/// What there is for a request beside itself.
#[derive(Debug)]
pub(crate) struct Given<'a> {
    /// Where it arrived.
    pub(crate) listener: usize,
    /// What the job found that it needed.
    pub(crate) found: Option<Found>,
    /// Who asks.
    pub(crate) client: &'a Transport,
    /// Its body, if it was kept.
    pub(crate) upload: &'a mut Option<Box<Upload>>,
}

/// What the parts of an answer need to know of its request.
#[derive(Clone, Copy, Debug)]
struct Asked<'a> {
    site: &'a Site,
    site_index: usize,
    method: Method,
    server_header: bool,
    /// Fields that the configuration adds to each response.
    headers: &'a FieldRules,
}

/// Answers a request, or says what has to come before.
pub(crate) fn answer(
    ctx: &mut Context,
    plan: &Plan,
    request: &Request<'_>,
    mut given: Given<'_>,
    reply: &mut Responder<'_>,
) -> Answer {
    let head = &request.head;
    let Some(site_index) = plan.site(given.listener, head.host) else {
        return Answer::Ready(refuse(ctx, plan, Status::NOT_FOUND, "No site answers here.", reply));
    };
    let site = &plan.sites()[site_index];
    let asked = Asked {
        site,
        site_index,
        method: head.method,
        server_header: plan.server_header,
        headers: &site.headers,
    };
    let routed = site.route(head.path, &mut ctx.path);
    let headers = routed.ok().flatten().map_or(asked.headers, |route| &route.headers);
    let asked = Asked { headers, ..asked };
    if request.body == Body::TooLarge {
        return Answer::Ready(asked.body_refused(ctx, given.upload.take(), reply));
    }
    // "*", which only OPTIONS has, is no path and needs none.
    let needs_path = head.method != Method::Options;
    let (action, mut refused) = match routed {
        Ok(route) => (route.map(|route| &route.action), None),
        Err(refusal) => (None, Some(refusal)),
    };
    let is_read = matches!(head.method, Method::Get | Method::Head);
    let mut found = given.found.take();
    if let (Some(Action::Files(tree) | Action::Scripts(tree, _)), Some(_)) = (action, &found) {
        tell_hidden_link(ctx, tree);
    }
    match find_program(ctx, action, head, &mut found) {
        Ok(Some((delegate, program))) => {
            return asked.application(ctx, request, given, delegate, &program, reply);
        }
        Ok(None) => {}
        Err(NoProgram::Path(refusal)) => refused = Some(refusal),
        Err(NoProgram::Yet(job)) => return Answer::Needs(job),
    }
    if let Body::Ahead { awaited } = request.body
        && (!awaited || is_longer(head.framing, plan.limits.body_bytes_max))
    {
        // The answer does not depend on the body: what has arrived of it is read, and nothing is waited for.
        return Answer::NeedsBody { upload: None, bytes_max: plan.limits.body_bytes_max };
    }
    if let Some(refusal) = refused.filter(|_| needs_path) {
        return Answer::Ready(asked.page(ctx, Page::refused_path(refusal), reply));
    }
    // Nothing may be put into the outlet before it is certain that the answer can be: what needs a job is tried again.
    let found = match (action, found) {
        (Some(Action::Files(tree)), None) if is_read => match find(ctx, tree, head, head.path) {
            Ok(found) => Some(found),
            Err(job) => return Answer::Needs(job),
        },
        (_, found) => found,
    };
    let ready = match (action, head.method) {
        (_, Method::Options) => asked.page(ctx, Page::options(), reply),
        (_, Method::Other | Method::Connect) => asked.page(ctx, Page::error(Status::NOT_IMPLEMENTED), reply),
        _ if !is_read => asked.page(ctx, Page::method_not_allowed(), reply),
        (None, _) => asked.page(ctx, Page::error(Status::NOT_FOUND), reply),
        (Some(Action::Redirect { status, location }), _) => {
            let route_path = routed.ok().flatten().map_or("/", |route| &route.path);
            let location = location::expand(location, route_path, head);
            asked.page(ctx, Page::redirect(Status::new(*status), &location), reply)
        }
        (Some(Action::Respond { status, media_type, body }), _) => {
            asked.page(ctx, Page::fixed(Status::new(*status), media_type, body), reply)
        }
        (Some(Action::Files(_) | Action::Scripts(..) | Action::Application(_)), _) => {
            asked.found(ctx, head, found.unwrap_or(Found::Missing), plan.limits.ranges_max, reply)
        }
    };
    Answer::Ready(ready)
}

/// Whether a body is declared to be longer than this.
fn is_longer(framing: BodyFraming, bytes_max: u64) -> bool {
    matches!(framing, BodyFraming::Length(length) if length > bytes_max)
}

/// Why a request has no program.
enum NoProgram {
    /// Its path cannot be a name.
    Path(PathRefusal),
    /// Whether it has one is not known before this is done.
    Yet(Job),
}

/// The program that is to answer a request, if one is. What was `found` instead is a file, or nothing.
fn find_program<'p>(
    ctx: &mut Context,
    action: Option<&'p Action>,
    head: &RequestHead<'_>,
    found: &mut Option<Found>,
) -> Result<Option<(&'p Arc<Delegate>, Program)>, NoProgram> {
    let (tree, delegate) = match action {
        _ if matches!(head.method, Method::Connect | Method::Trace) => return Ok(None),
        Some(Action::Application(delegate)) => {
            delegate.decode(head.path, &mut ctx.path).map_err(NoProgram::Path)?;
            return Ok(Some((delegate, Program::below(&delegate.path, &ctx.path))));
        }
        Some(Action::Scripts(tree, delegate)) => (tree, delegate),
        _ => return Ok(None),
    };
    // Split as it is routed, decoded: else what is behind a name could lead out of the route again that allows it.
    let plain_len = delegate.decode(head.path, &mut ctx.path).map_err(NoProgram::Path)?;
    let (name, path_info) = split_path_info(&ctx.path, &tree.config().scripts);
    // Only in what is for the script may there be what no file's name may have.
    let looked_for = if path_info.is_empty() || name.len() > plain_len {
        Cow::Borrowed(head.path)
    } else {
        Cow::Owned(named::escaped(&[b"/", name].concat()))
    };
    match found.take().map_or_else(|| find(ctx, tree, head, &looked_for), Ok) {
        Ok(Found::Script(script)) => Ok(Some((delegate, Program::script(tree, &script, path_info)))),
        Ok(Found::Fallback(script)) => Ok(Some((delegate, Program::fallback(tree, &script, &ctx.path)))),
        Ok(file) => {
            // Only a program has something to do with what comes behind its name.
            *found = Some(if path_info.is_empty() { file } else { Found::Missing });
            Ok(None)
        }
        Err(job) => Err(NoProgram::Yet(job)),
    }
}

/// What there is at a path; or what has to be done to find out.
fn find(ctx: &Context, tree: &Arc<Tree>, head: &RequestHead<'_>, path: &[u8]) -> Result<Found, Job> {
    let query = Query {
        path,
        accepted: AcceptedCodings::parse(head.accept_encoding),
        accept_json: tree.lists() && page::prefers_json(head),
    };
    let found = ctx.find(tree, &query);
    tell_hidden_link(ctx, tree);
    found.map_err(|NeedsDisk| Job::find(ctx, tree, &query))
}

/// Tells the operator of a link that is not followed, and so of a path that is not found, when the first request comes upon
/// it.
fn tell_hidden_link(ctx: &Context, tree: &Tree) {
    if let Some(link) = tree.take_hidden_link() {
        ctx.remark(format_args!("{link}"));
    }
}

impl Asked<'_> {
    /// Answers a request of whose body no more is taken.
    fn body_refused(
        &self,
        ctx: &mut Context,
        upload: Option<Box<Upload>>,
        reply: &mut Responder<'_>,
    ) -> Ready {
        let (status, outcome) = match upload.as_ref().and_then(|upload| upload.trouble()) {
            None => (Status::CONTENT_TOO_LARGE, Outcome::Refused),
            Some(why) => {
                ctx.remark(format_args!("cannot keep the body of a request: {why}"));
                (Status::SERVICE_UNAVAILABLE, Outcome::Failed)
            }
        };
        Ready { outcome, ..self.page(ctx, Page::error(status), reply) }
    }

    /// Answers with what was found.
    fn found(
        &self,
        ctx: &mut Context,
        head: &RequestHead<'_>,
        found: Found,
        ranges_max: usize,
        reply: &mut Responder<'_>,
    ) -> Ready {
        match found {
            Found::File(stored) => self.file(ctx, head, &stored, ranges_max, reply),
            Found::Listing(listed) => self.page(ctx, Page::listing(&listed), reply),
            Found::AddSlash => {
                let location = location::with_slash(head);
                self.page(ctx, Page::redirect(Status::MOVED_PERMANENTLY, &location), reply)
            }
            // A script that nobody runs is not to be read either.
            Found::Missing | Found::Script(_) | Found::Fallback(_) => {
                self.page(ctx, Page::error(Status::NOT_FOUND), reply)
            }
            Found::Forbidden => self.page(ctx, Page::error(Status::FORBIDDEN), reply),
            Found::Refused(refusal) => self.page(ctx, Page::refused_path(refusal), reply),
            Found::Failed(errno) => {
                let mut ready = self.page(ctx, Page::error(status_of(errno)), reply);
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
    reply: &mut Responder<'_>,
) -> Ready {
    let body = page::text(status, why);
    let mut joined = ctx.heads.take();
    let server = plan.server_header.then_some(page::SERVER);
    let mut head = reply.head(&mut joined, status, server, ctx.clock.stamp());
    head.field("Content-Type", page::HTML).number("Content-Length", body.len() as u64).end();
    let head_bytes = reply.send(&mut ctx.heads, joined, &body);
    let (site, outcome) = (usize::MAX, Outcome::Refused);
    Ready { status: status.code(), head_bytes, site, outcome, trial: None }
}

/// What a failed look at a file means to the client.
fn status_of(errno: Errno) -> Status {
    match errno {
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::STALE => Status::SERVICE_UNAVAILABLE,
        _ => Status::INTERNAL_SERVER_ERROR,
    }
}
