//! A request for what answers elsewhere, and what the cache is asked about it.

use std::sync::Arc;

use crate::Ask;

/// A request that the cache may answer.
#[derive(Debug)]
pub struct SourceRequest {
    /// As it goes to the origin or application. If there is something to `ask`, without conditions and ranges, and in the
    /// form of [`Ask::forwarded`].
    pub upstream: Box<baton_upstream::Request>,
    /// What the cache is asked; `None`: it has nothing to do with the request.
    pub ask: Option<Arc<Ask>>,
}
