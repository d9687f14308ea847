//! Input that is no request, or the rest of one that is none.

use baton_http::{Refusal, Status};

use baton_telemetry::log::Outcome;

/// Why a request, or the rest of it, is refused.
#[derive(Debug)]
pub(crate) struct Refused<'a> {
    pub(crate) status: Status,
    pub(crate) why: &'a str,
    pub(crate) outcome: Outcome,
}

impl Refused<'static> {
    /// The client takes too long to send its request.
    pub(crate) const LATE: Self = Self {
        status: Status::REQUEST_TIMEOUT,
        why: "The request took too long to arrive.",
        outcome: Outcome::TimedOut,
    };
}

impl<'a> Refused<'a> {
    /// `why` is the refusal in words.
    pub(crate) fn by(refusal: Refusal, why: &'a str) -> Self {
        Self { status: refusal.status(), why, outcome: Outcome::Refused }
    }
}
