//! How a request has come to the target that its route answers.
//!
//! A rewrite depends on nothing but the target, so it can be done again from another one: from what the key of a cache has
//! of the client's.

use baton_cache::{Arrival, Bypass, CachedRoute};
use baton_http::{RequestHead, decode_any_path};

use crate::plan::{Action, Otherwise, Route, Site};
use crate::template::{RequestParts, Template};

/// The routes that have given a request another target, by their indexes within its site.
#[derive(Clone, Debug, Default)]
pub struct Rewrites(Vec<usize>);

/// The target to which a request was rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewrittenTarget {
    /// The path, as a URI has it.
    pub path: String,
    /// The query, without its question mark.
    pub query: Option<String>,
}

impl Rewrites {
    /// The route with this index gives the request another target.
    pub fn note(&mut self, route_index: usize) {
        self.0.push(route_index);
    }

    /// How many there were.
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// What is asked for a request on a cached route, as far as its key tells requests apart. `None`: it was not rewritten.
    ///
    /// # Errors
    /// The key does not say where the request was rewritten to, so the cache has nothing to do with it.
    pub fn forwarded_target(
        &self,
        route: &CachedRoute,
        arrival: Arrival,
        head: &RequestHead<'_>,
        site: &Site,
    ) -> Result<Option<RewrittenTarget>, Bypass> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = route.key_of(arrival, head)?;
        self.follow(site, key.target(), head.path).map(Some).ok_or(Bypass::Path)
    }

    /// Where they lead from another target than the client's. `None`: not to `path`, where the client's has led.
    fn follow(&self, site: &Site, target: &[u8], path: &[u8]) -> Option<RewrittenTarget> {
        let mut reached = None;
        for index in &self.0 {
            let (path, query) = match reached.as_ref().map(RewrittenTarget::parts) {
                None => split(target),
                Some(parts) => parts,
            };
            let route = site.routes.get(*index)?;
            let asked = RequestParts { path, query, host: None, matcher: &route.matcher };
            let (path, query) = route.new_target()?.expand_target(&asked);
            reached = Some(RewrittenTarget { path, query });
        }
        reached.filter(|reached| is_same_path(reached.path.as_bytes(), path))
    }
}

impl RewrittenTarget {
    /// Path and query.
    pub fn parts(&self) -> (&[u8], Option<&[u8]>) {
        (self.path.as_bytes(), self.query.as_deref().map(str::as_bytes))
    }
}

impl Route {
    /// What it gives to requests that other routes shall answer.
    fn new_target(&self) -> Option<&Template> {
        match (&self.action, &self.otherwise) {
            (Action::Rewrite(to), _) | (_, Some(Otherwise::Rewrite(to))) => Some(to),
            _ => None,
        }
    }
}

fn split(target: &[u8]) -> (&[u8], Option<&[u8]>) {
    match target.iter().position(|byte| *byte == b'?') {
        Some(mark) => (&target[..mark], Some(&target[mark + 1..])),
        None => (target, None),
    }
}

/// Whether two paths differ in their spelling at most.
fn is_same_path(one: &[u8], other: &[u8]) -> bool {
    let (mut plain, mut other_plain) = (Vec::new(), Vec::new());
    one == other
        || decode_any_path(one, &mut plain).is_ok()
            && decode_any_path(other, &mut other_plain).is_ok()
            && plain == other_plain
}
