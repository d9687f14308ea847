//! A request that the cache was asked, and where its answer comes from.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_segment::rules::Forward;
use baton_upstream::{Failure, FailureReason, RequestId, ResponseEvent};

use crate::Ask;
use crate::fill::Fill;
use crate::reading::{Reading, Source};
use crate::template::Template;
use crate::visit::Supply;

/// A request, until its last event is taken.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) ask: Arc<Ask>,
    pub(crate) template: Arc<Template>,
    /// What the loop has for it already.
    pub(crate) events: VecDeque<ResponseEvent>,
    pub(crate) state: State,
    pub(crate) is_announced: bool,
    /// It asks for the whole, since the origin's parts are of no use.
    pub(crate) wants_whole: bool,
    /// How often it has begun anew, since the origin had another version.
    pub(crate) restarts: u32,
}

impl Exchange {
    /// Whether it has begun this fetch, and goes on with it.
    pub(crate) fn began(&self, fill: &Arc<Fill>) -> bool {
        match &self.state {
            State::Waiting { fill: own, is_first, .. } => *is_first && Arc::ptr_eq(own, fill),
            State::Reading(Reading { source: Source::Stream(own), visit, .. }) => {
                visit.supply() == Supply::Origin && Arc::ptr_eq(own, fill)
            }
            _ => false,
        }
    }
}

/// Where the answer comes from.
#[derive(Debug)]
pub(crate) enum State {
    /// Nothing but `events` follows.
    Over,
    /// The head of a fetch is waited for, which this request began or not.
    Waiting { fill: Arc<Fill>, forward: Forward, is_first: bool },
    /// A content is read.
    Reading(Reading),
    /// The gateway has the request under another name.
    Passing(Passing),
}

/// A request that the gateway has.
#[derive(Debug)]
pub(crate) struct Passing {
    pub(crate) inner: RequestId,
    pub(crate) forward: Forward,
    /// When it was sent, in seconds since 1970.
    pub(crate) requested_s: u64,
    /// Why the response is not stored, if that is known.
    pub(crate) detail: Option<&'static str>,
}

/// A failure before or after the head, of which the client's connection knows nothing.
pub(crate) fn failed(why: FailureReason) -> Failure {
    Failure { why, client_lost: false, must_end: false }
}
