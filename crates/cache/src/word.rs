//! What the cache did with a request, in one word: in the log, in the metrics and in `Cache-Status`.

use baton_segment::rules::{Forward, Hit};

/// What the cache did with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheWord {
    /// It answered with a fresh response, or with one that the client wants stale.
    Hit,
    /// It answered with a stale response: while it is revalidated, or since the origin fails.
    Stale,
    /// The request went to the origin.
    Forward(Forward),
}

impl CacheWord {
    /// All of them, for tables of metrics.
    pub const ALL: [Self; 10] = [
        Self::Hit,
        Self::Stale,
        Self::Forward(Forward::Bypass),
        Self::Forward(Forward::Method),
        Self::Forward(Forward::UriMiss),
        Self::Forward(Forward::VaryMiss),
        Self::Forward(Forward::Miss),
        Self::Forward(Forward::Request),
        Self::Forward(Forward::Stale),
        Self::Forward(Forward::Partial),
    ];

    /// The word for an answer from the store.
    pub(crate) fn of_hit(hit: &Hit<'_>) -> Self {
        if hit.ttl_s > 0 || !hit.revalidates { Self::Hit } else { Self::Stale }
    }

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Stale => "hit-stale",
            Self::Forward(forward) => forward.label(),
        }
    }
}
