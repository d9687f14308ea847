//! Behind a switch of protocols: an origin and a client exchange bytes that mean nothing here.

use std::sync::Arc;

use baton_telemetry::log::Outcome;
use baton_telemetry::metrics::Metric;
use baton_upstream::{Failure, FailureReason, ResponseEvent, TunnelEnd};

use super::delegated::Reaction;
use super::env::{Env, Shown, Wants};
use super::record::Record;

/// A tunnel.
#[derive(Debug)]
pub(super) struct Tunnel {
    /// The origin's end, if it has come from another process and the gateway has not been given it.
    arrived: Option<Box<TunnelEnd>>,
    /// The origin, and the request, as warnings show them.
    pub(super) shown: Shown,
    /// The gateway had no event when it was asked last.
    is_quiet: bool,
}

impl Tunnel {
    /// The origin has switched.
    pub(super) fn new(shown: Shown) -> Self {
        Self { arrived: None, shown, is_quiet: false }
    }

    /// A tunnel of another process.
    pub(super) fn arrived(end: TunnelEnd, shown: Shown) -> Self {
        Self { arrived: Some(Box::new(end)), ..Self::new(shown) }
    }

    /// Whether the gateway has it.
    pub(super) fn is_with_gateway(&self) -> bool {
        self.arrived.is_none()
    }

    /// The client has taken all: the gateway is asked for its next event again.
    pub(super) fn handle_room(&mut self) {
        self.is_quiet = false;
    }

    /// What is needed next.
    pub(super) fn poll(&mut self) -> Wants {
        match self.arrived.take() {
            Some(end) => Wants::Resume(end),
            None if std::mem::take(&mut self.is_quiet) => Wants::ResponseAwaited,
            None => Wants::ResponseEvents,
        }
    }

    /// The gateway's next event; `None`: nothing more for now.
    pub(super) fn handle_response_event(
        &mut self,
        env: &mut Env<'_>,
        event: Option<ResponseEvent>,
        record: &mut Record,
    ) -> Reaction {
        self.is_quiet = event.is_none();
        match event {
            Some(ResponseEvent::Body(body)) => env.reply.send_part(body),
            Some(ResponseEvent::HalfEnd) => env.reply.end_half(),
            Some(ResponseEvent::Trail(origin, trail)) => {
                env.ctx.tally.add(Metric::OriginRetries, u64::from(trail.tries.saturating_sub(1)));
                record.note_trail(Arc::clone(&origin), trail);
            }
            Some(ResponseEvent::End { .. }) => {
                // Fails for a body with a length.
                let _ = env.reply.end(None);
                record.close();
                return Reaction::Answered;
            }
            Some(ResponseEvent::Failed(failure)) => return self.fail(env, &failure, record),
            _ => {}
        }
        Reaction::More
    }

    /// What the origin says ends before its time.
    fn fail(&self, env: &mut Env<'_>, failure: &Failure, record: &mut Record) -> Reaction {
        if failure.why == FailureReason::ClientGone {
            return Reaction::NoClient(Outcome::ClientGone);
        }
        let origin = record.origin_name().unwrap_or(&self.shown.origin);
        env.ctx.warn(format_args!("origin {origin}: {}: {}", self.shown.request, failure.why));
        record.note_failure(failure.why.label());
        env.reply.cut();
        record.fail(Outcome::OriginFailed);
        record.close();
        Reaction::Answered
    }
}
