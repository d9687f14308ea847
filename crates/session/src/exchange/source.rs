//! Where an answer comes from, by the route, and the answers that the server gives itself.

use std::borrow::Cow;
use std::sync::Arc;

use baton_content::Found;
use baton_http::response::Framing;
use baton_http::{Method, PathRefusal, RequestHead, Status, VariableSource};
use baton_response::{Page, Response};
use baton_site::plan::{Action, Delegate, Terms};
use baton_site::template;
use baton_telemetry::log::Outcome;
use rustix::io::Errno;

use super::application::{Program, split_path_info};
use super::find::find;
use super::lent::{self, Whereabouts};
use super::routed::Routed;
use super::{location, x_sendfile};
use crate::context::Context;
use crate::job::Job;
use crate::protocol::StreamId;

/// Where an answer comes from.
#[derive(Debug)]
pub(super) enum Source<'a> {
    /// What there is at the path.
    Found(Found),
    /// The document is at another server, at this address.
    Away(String),
    /// What answers elsewhere; of an application, the program.
    Elsewhere(&'a Arc<Delegate>, Option<Program>),
    /// A page for this status.
    Status(Status),
    /// What the route says, or a page that explains why there is nothing else.
    Page(Option<PathRefusal>),
}

impl<'a> Routed<'a> {
    /// Where the answer comes from, or the job that finds out.
    pub(super) fn source(
        &self,
        ctx: &mut Context,
        stream: StreamId,
        head: &RequestHead<'_>,
        opens_tunnel: bool,
        found: Option<Found>,
    ) -> Result<Source<'a>, Job> {
        // What answers for missing files may take other methods.
        let is_read = matches!(self.method, Method::Get | Method::Head) || self.otherwise().is_some();
        let (tree, delegate) = match self.route.map(|route| &route.action) {
            Some(Action::Delegated(delegate)) if opens_tunnel && delegate.proxy().is_some() => {
                return Ok(Source::Elsewhere(delegate, None));
            }
            _ if matches!(self.method, Method::Connect | Method::Trace) => {
                return Ok(Source::Page(self.refused));
            }
            Some(Action::Delegated(delegate)) => {
                return Ok(match &delegate.terms {
                    Terms::Proxy(_) => Source::Elsewhere(delegate, None),
                    Terms::Cgi(terms) => match terms.decode(head.path, &mut ctx.path) {
                        Ok(_) => Source::Elsewhere(delegate, Some(Program::below(&terms.path, &ctx.path))),
                        Err(refusal) => Source::Page(Some(refusal)),
                    },
                });
            }
            Some(Action::Files(tree)) if is_read => {
                return found.map_or_else(|| find(ctx, stream, tree, head, head.path), Ok).map(Source::Found);
            }
            Some(Action::Lent(tree, lending)) if is_read => {
                return Ok(match lent::look(ctx, stream, head, (tree, lending), found)? {
                    Whereabouts::Found(found) => Source::Found(found),
                    Whereabouts::Elsewhere(address) => Source::Away(address),
                });
            }
            Some(Action::Copies(copies, delegate)) if is_read => {
                return Ok(match lent::look_at_copy(ctx, head, copies) {
                    Ok(()) => Source::Elsewhere(delegate, None),
                    Err(address) => Source::Away(address),
                });
            }
            Some(Action::Scripts(tree, delegate)) => (tree, delegate),
            _ => return Ok(Source::Page(self.refused)),
        };
        let Some(terms) = delegate.cgi() else { return Ok(Source::Page(self.refused)) };
        // Split the decoded path, like the router: else the path behind the name could leave the route that allows it.
        let plain_len = match terms.decode(head.path, &mut ctx.path) {
            Ok(plain_len) => plain_len,
            Err(refusal) => return Ok(Source::Page(Some(refusal))),
        };
        let (name, path_info) = split_path_info(&ctx.path, &tree.config().scripts);
        // Only the part for the script may contain what no file name may contain.
        let looked_for = if path_info.is_empty() || name.len() > plain_len {
            Cow::Borrowed(head.path)
        } else {
            Cow::Owned(x_sendfile::escaped(&[b"/", name].concat()))
        };
        Ok(match found.map_or_else(|| find(ctx, stream, tree, head, &looked_for), Ok)? {
            Found::Script(script) => {
                Source::Elsewhere(delegate, Some(Program::script(tree, &script, path_info)))
            }
            Found::Fallback(script) => {
                Source::Elsewhere(delegate, Some(Program::fallback(tree, &script, &ctx.path)))
            }
            // Only a program can use the path behind its name.
            _ if !path_info.is_empty() => Source::Found(Found::Missing),
            file => Source::Found(file),
        })
    }

    /// Answers without an application. `variables`: what stands for parts of the request.
    pub(super) fn respond(
        &self,
        head: &RequestHead<'_>,
        source: Source<'_>,
        variables: &dyn VariableSource,
    ) -> Response {
        let action = self.route.map(|route| &route.action);
        let has_path = head.path.starts_with(b"/");
        match (source, self.method, action) {
            (Source::Status(status), ..) => {
                let has_failed = status == Status::INTERNAL_SERVER_ERROR;
                let outcome = if has_failed { Outcome::Failed } else { Outcome::Complete };
                self.rules.page(Page::error(status)).ending(outcome)
            }
            // Whatever was to be done with a resource, it is elsewhere (RFC 9110 section 15.4), or not there.
            (Source::Page(None), _, Some(Action::Redirect { status, location })) if has_path => {
                let Some(route) = self.route else {
                    return self.rules.page(Page::error(Status::NOT_FOUND));
                };
                let parts = template::RequestParts::of(head, &route.matcher);
                let location = location.expand(&parts, variables);
                self.rules.page(Page::redirect(Status::new(*status), &location))
            }
            (Source::Page(None), method, Some(Action::Respond { status, media_type, body }))
                if has_path && (*status >= 400 || is_bodiless(*status) && method != Method::Options) =>
            {
                self.rules.page(Page::fixed(Status::new(*status), media_type, &body.filled(variables)))
            }
            // "*", which only OPTIONS has, is no path and needs none.
            (_, Method::Options, _) => self.rules.page(Page::options(self.allowed_methods())),
            (Source::Page(Some(refusal)), ..) => self.rules.page(Page::refused_path(refusal)),
            (_, _, Some(Action::Https { host, port })) => {
                let location = location::https(host.as_deref(), *port, head);
                let page = location.as_deref().map_or(Page::error(Status::BAD_REQUEST), |location| {
                    Page::redirect(Status::PERMANENT_REDIRECT, location)
                });
                self.rules.page(page)
            }
            (_, Method::Other | Method::Connect, _) => self.rules.page(Page::error(Status::NOT_IMPLEMENTED)),
            (Source::Away(address), Method::Get | Method::Head, _) => self.rules.page(Page::away(&address)),
            (Source::Found(found), Method::Get | Method::Head, _) => self.found(head, found),
            (_, Method::Get | Method::Head, Some(Action::Respond { status, media_type, body })) => {
                self.rules.page(Page::fixed(Status::new(*status), media_type, &body.filled(variables)))
            }
            (_, Method::Get | Method::Head, _) => self.rules.page(Page::error(Status::NOT_FOUND)),
            _ => self.rules.page(Page::method_not_allowed(self.allowed_methods())),
        }
    }

    /// Answers with what was found.
    fn found(&self, head: &RequestHead<'_>, found: Found) -> Response {
        match found {
            Found::File(stored) => Response::file(stored),
            Found::Listing(listed) => Response::listing(&listed),
            Found::AddSlash => {
                let location = location::with_slash(head);
                self.rules.page(Page::redirect(Status::MOVED_PERMANENTLY, &location))
            }
            // A script that does not run must not be readable either.
            Found::Missing | Found::Script(_) | Found::Fallback(_) => {
                self.rules.page(Page::error(Status::NOT_FOUND))
            }
            Found::Forbidden => self.rules.page(Page::error(Status::FORBIDDEN)),
            Found::Refused(refusal) => self.rules.page(Page::refused_path(refusal)),
            Found::Failed(errno) => self.rules.page(Page::error(status_of(errno))).ending(Outcome::Failed),
        }
    }
}

/// Whether a status says all that there is to say, whatever the method.
fn is_bodiless(status: u16) -> bool {
    Framing::without_body(status).is_some()
}

/// The status for a file that could not be opened or read.
fn status_of(errno: Errno) -> Status {
    match errno {
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::STALE => Status::SERVICE_UNAVAILABLE,
        _ => Status::INTERNAL_SERVER_ERROR,
    }
}
