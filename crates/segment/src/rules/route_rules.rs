//! How the responses of a route are cached, where the protocol leaves it to the operator.

use super::QueryRule;

/// The settings of a cached route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteRules {
    /// What the query counts for.
    pub query: QueryRule,
    /// Fields of requests that go on beside the key, besides those that are [known](super::FieldUse).
    pub unkeyed_fields: Vec<String>,
    /// Fields that replace Cache-Control and Expires for this cache, the first valid one (RFC 9213).
    pub targeted_fields: Vec<String>,
    /// Fields whose words, separated by commas or blanks, are tags for purging, besides `Cache-Groups`.
    pub tag_fields: Vec<String>,
    /// The lifetime in seconds of a response that says nothing about it and has a status that may be stored all the same;
    /// 0 for the heuristic one.
    pub default_s: u32,
    /// The heuristic lifetime in percent of the time since Last-Modified; 0 for none, at most 100. RFC 9111 section 4.2.2
    /// calls 10 typical.
    pub heuristic_percent: u32,
    /// The longest heuristic lifetime in seconds.
    pub heuristic_max_s: u32,
    /// The longest lifetime in seconds of a manifest of HLS or DASH that says nothing about it, and the lifetime of one
    /// without Last-Modified: a live one changes with each segment.
    pub manifest_s: u32,
    /// The lifetime in seconds of a 404 or 410 that says nothing about it; 0 for none.
    pub negative_s: u32,
    /// The longest lifetime in seconds of a server error, or of an error that the request's own fields may have caused,
    /// whatever it says itself: one client's malformed request must not stay for all.
    pub error_max_s: u32,
    /// How long in seconds a stale response is served while it is revalidated, if it does not say.
    pub stale_while_revalidate_s: u32,
    /// How long in seconds a stale response stands in for a 500, 502, 503 or 504, if it does not say.
    pub stale_if_error_s: u32,
    /// How long in seconds a stale response stands in for an origin that cannot be reached, if it does not say.
    pub stale_if_unreachable_s: u32,
    /// Whether responses with Set-Cookie are stored. Each client would get the cookie of the first one.
    pub stores_set_cookie: bool,
    /// Whether directives of requests count. Otherwise no client can make the server fetch what it has.
    pub obeys_requests: bool,
}

impl Default for RouteRules {
    fn default() -> Self {
        Self {
            query: QueryRule::default(),
            unkeyed_fields: Vec::new(),
            targeted_fields: vec!["CDN-Cache-Control".into()],
            tag_fields: vec!["Cache-Tag".into(), "Surrogate-Key".into()],
            default_s: 0,
            heuristic_percent: 10,
            heuristic_max_s: 86_400,
            manifest_s: 1,
            negative_s: 10,
            error_max_s: 10,
            stale_while_revalidate_s: 0,
            stale_if_error_s: 0,
            stale_if_unreachable_s: 60,
            stores_set_cookie: false,
            obeys_requests: true,
        }
    }
}
