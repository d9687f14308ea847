//! A request with its site and route.

use std::sync::Arc;

use baton_content::Tree;
use baton_http::{Method, PathRefusal, RequestHead, Status};
use baton_response::{Page, Response, Rules};
use baton_site::condition::RequestView;
use baton_site::cors::Cors;
use baton_site::guards::{AllowedMethods, Guards};
use baton_site::plan::{Action, Otherwise, Plan, Route, Site, UNANSWERED};
use baton_telemetry::log::Outcome;

use crate::context::Context;
use crate::upload::Upload;

/// Where a request's route is in its plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct RouteIndex {
    pub(super) site: usize,
    /// Among those of the site; `None`: none has its path.
    pub(super) route: Option<usize>,
}

/// The site and route of a request, and what of the configuration its answer needs.
#[derive(Debug)]
pub(super) struct Routed<'a> {
    pub(super) site: &'a Site,
    pub(super) route: Option<&'a Route>,
    pub(super) index: RouteIndex,
    /// Why its path cannot be a name.
    pub(super) refused: Option<PathRefusal>,
    pub(super) method: Method,
    /// What every response to it obeys.
    pub(super) rules: Rules<'a>,
    /// Which pages of other origins may read the response.
    pub(super) cors: Option<&'a Cors>,
    /// Rules for its requests.
    pub(super) guards: Option<&'a Guards>,
}

impl RouteIndex {
    pub(super) fn of(self, plan: &Plan) -> (&Site, Option<&Route>) {
        let site = &plan.sites()[self.site];
        (site, self.route.map(|index| &site.routes[index]))
    }
}

impl<'a> Routed<'a> {
    pub(super) fn of(plan: &'a Plan, index: RouteIndex, head: &RequestHead<'a>) -> Self {
        let (site, route) = index.of(plan);
        let cors = route.map_or(&site.cors, |route| &route.cors).as_deref();
        let pages = route.and_then(|route| route.pages.as_deref());
        let rules = Rules {
            headers: Some(route.map_or(&site.headers, |route| &route.headers)),
            matcher: route.map(|route| &route.matcher),
            error_pages: pages.map_or(&site.error_pages, |pages| &pages.pages),
            compress: route.map_or(&site.compress, |route| &route.compress).as_deref(),
            // HEAD has no content to digest, and a POST selects no representation.
            digest: route.and_then(|route| route.digest).filter(|_| head.method == Method::Get),
            allowed: cors.and_then(|cors| cors.allowed(head)),
            accept: head.accept,
            ..Rules::without_site(plan)
        };
        Self {
            site,
            route,
            index,
            refused: None,
            method: head.method,
            rules,
            guards: route.map_or(&site.guards, |route| &route.guards).as_deref(),
            cors,
        }
    }

    /// Whether the connection ends in place of an answer.
    pub(super) fn is_unanswered(&self) -> bool {
        matches!(self.route.map(|route| &route.action), Some(Action::Respond { status: UNANSWERED, .. }))
    }

    /// The folder of a route that is nothing but its files.
    pub(super) fn files(&self) -> Option<&'a Arc<Tree>> {
        match self.route.map(|route| &route.action) {
            Some(Action::Files(tree)) => Some(tree),
            _ => None,
        }
    }

    /// What is done where the folder of the route has nothing for the request.
    pub(super) fn otherwise(&self) -> Option<&'a Otherwise> {
        self.route?.otherwise.as_ref()
    }

    /// Methods that the server itself answers here.
    pub(super) fn allowed_methods(&self) -> &'a str {
        self.guards.and_then(|guards| guards.methods.as_ref()).map_or(ALLOWED, AllowedMethods::own)
    }
}

/// Refuses the rest of a request's body.
pub(super) fn body_refused(rules: &Rules<'_>, ctx: &Context, upload: Option<&Upload>) -> Response {
    let (status, outcome) = match upload.and_then(Upload::error) {
        None => (Status::CONTENT_TOO_LARGE, Outcome::Refused),
        Some(why) => {
            ctx.warn(format_args!("cannot keep the body of a request: {why}"));
            (Status::SERVICE_UNAVAILABLE, Outcome::Failed)
        }
    };
    rules.page(Page::error(status)).ending(outcome)
}

/// Whether the shared cache has nothing to do with a request of this route.
pub(super) fn bypasses_cache(route: Option<&Route>, view: &RequestView<'_>) -> bool {
    route.and_then(|route| route.cache_bypass.as_ref()).is_some_and(|when| when.holds(view))
}

/// Whether an error of what answers a route elsewhere gives way to a page.
pub(super) fn intercepts(route: Option<&Route>, status: Status) -> bool {
    let pages = route.and_then(|route| route.pages.as_ref());
    pages.is_some_and(|pages| pages.intercepted.contains(&status.code()))
}

/// Methods that files and fixed responses know.
const ALLOWED: &str = "GET, HEAD, OPTIONS";
