//! A route whose responses are cached.

use std::sync::Arc;

use baton_segment::policy::PolicyChoice;
use baton_segment::rules::RouteRules;

/// How the responses of a route are cached.
#[derive(Clone, Debug)]
pub struct CachedRoute {
    /// Which sites and origins share what they have stored: the name of the site, and of what answers.
    pub partition: Arc<str>,
    /// Which segments are kept; what it leaves open, the cache's own policy decides.
    pub policy: PolicyChoice,
    /// What the protocol leaves to the operator.
    pub rules: RouteRules,
    /// Segments behind the one that a client gets which are fetched before it asks for them.
    pub prefetch: u32,
}
