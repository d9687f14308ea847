//! A request with its site and route.

use baton_http::{FieldRules, Method, PathRefusal, RequestHead};

use crate::cors::{Allowed, Cors};
use crate::guards::Guards;
use crate::plan::{Delegate, Otherwise, Plan, Route, Site};

/// The site and route of a request, and what of the configuration its answer needs.
#[derive(Debug)]
pub(super) struct Routed<'a> {
    pub(super) site: &'a Site,
    pub(super) site_index: usize,
    pub(super) route: Option<&'a Route>,
    /// Why its path cannot be a name.
    pub(super) refused: Option<PathRefusal>,
    pub(super) method: Method,
    /// The media types that the client takes.
    pub(super) accept: Option<&'a [u8]>,
    pub(super) server_header: bool,
    /// Fields that the configuration adds to each response.
    pub(super) headers: &'a FieldRules,
    /// Which pages of other origins may read the response.
    pub(super) cors: Option<&'a Cors>,
    /// Whether the page may that has sent the request.
    pub(super) allowed: Option<Allowed<'a>>,
    /// Rules for its requests.
    pub(super) guards: Option<&'a Guards>,
}

impl<'a> Routed<'a> {
    pub(super) fn of(
        plan: &'a Plan,
        site_index: usize,
        route: Option<&'a Route>,
        head: &RequestHead<'a>,
    ) -> Self {
        let site = &plan.sites()[site_index];
        let cors = route.map_or(&site.cors, |route| &route.cors).as_deref();
        Self {
            site,
            site_index,
            route,
            refused: None,
            method: head.method,
            accept: head.accept,
            server_header: plan.server_header,
            guards: route.map_or(&site.guards, |route| &route.guards).as_deref(),
            headers: route.map_or(&site.headers, |route| &route.headers),
            cors,
            allowed: cors.and_then(|cors| cors.allowed(head)),
        }
    }

    /// The same of a request that is answered elsewhere.
    pub(super) fn delegated(
        plan: &'a Plan,
        site_index: usize,
        delegate: &'a Delegate,
        head: &RequestHead<'a>,
    ) -> Self {
        let cors = delegate.cors.as_deref();
        let allowed = cors.and_then(|cors| cors.allowed(head));
        Self { headers: &delegate.headers, cors, allowed, ..Self::of(plan, site_index, None, head) }
    }

    /// What is done where the folder of the route has nothing for the request.
    pub(super) fn otherwise(&self) -> Option<&'a Otherwise> {
        self.route?.otherwise.as_ref()
    }
}
