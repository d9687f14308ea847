//! Why a session is woken.

use baton_telemetry::log::Outcome;
use baton_upstream::{ResponseEvents, TunnelEnd};

use super::{Need, Session, UpstreamNeed};
use crate::context::Context;
use crate::job::JobDone;
use crate::protocol::StreamId;

/// Why a client is woken.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one is there at a time, and a box would be an allocation for each response"
)]
pub enum Wake {
    /// It has a turn.
    Turn,
    /// Its socket is ready.
    Ready {
        /// There is something to read.
        readable: bool,
        /// The client sends no more.
        input_ends: bool,
        /// The client takes no more either.
        hung_up: bool,
    },
    /// What it asked for is under way: other requests of it may go on.
    Resumed,
    /// A job it waited for is done.
    Job(JobDone),
    /// Another thread has run its step, which ended with this need.
    Stepped(Need),
    /// The gateway's next events for this request; none: nothing more for now.
    ResponseEvents(StreamId, ResponseEvents),
    /// There may be an event of the gateway for this request.
    ResponseReady(StreamId),
    /// The application wants more of this request's body.
    BodyWanted(StreamId),
    /// Its deadline has passed.
    TimedOut,
    /// Another process may go on with it, and with its tunnel, of which this is the origin's end.
    Depart(Option<Box<TunnelEnd>>),
    /// It goes back to the front-end that has handed it over, if the handoff agent takes it now.
    GoBack,
    /// It has to end now; unfinished requests are logged with this outcome.
    End(Outcome),
}

impl Session {
    /// Tells the session why it was woken. `None`: its next step shows what it needs.
    pub fn handle_wake(&mut self, wake: Wake, ctx: &mut Context) -> Option<Need> {
        match wake {
            Wake::Ready { input_ends: true, hung_up, .. } => {
                self.handle_ready(true);
                self.handle_input_end();
                if hung_up {
                    self.handle_hangup();
                }
                None
            }
            Wake::Ready { readable, .. } => {
                self.handle_ready(readable);
                None
            }
            Wake::Turn | Wake::Resumed => None,
            Wake::Stepped(need) => Some(need),
            Wake::Job(done) => {
                self.handle_job(done, ctx);
                None
            }
            Wake::ResponseEvents(stream, events) => self
                .handle_response_events(stream, events, ctx)
                .then_some(Need::Upstream(UpstreamNeed::ResponseEvents(stream))),
            Wake::ResponseReady(stream) => self
                .handle_response_ready(stream)
                .then_some(Need::Upstream(UpstreamNeed::ResponseEvents(stream))),
            Wake::BodyWanted(stream) => {
                self.handle_body_wanted(stream);
                None
            }
            Wake::Depart(tunnel) => Some(self.depart(tunnel.map(|end| *end), ctx)),
            Wake::GoBack => {
                self.go_back();
                None
            }
            Wake::TimedOut => Some(self.handle_timeout(ctx)),
            Wake::End(outcome) => Some(self.end(outcome, ctx)),
        }
    }
}
