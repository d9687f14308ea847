//! How a loop runs a session: directly, or within a thread of its own.

use baton_session::context::Context;
use baton_session::session::{Need, Session, Spare, Stage, Wake};
use baton_upstream::ClientSocket;

use crate::clients::Connection;
use crate::takeable::Takeable;

/// A session in the form in which an architecture runs it.
pub(crate) trait Client: Connection + Sized {
    /// The client of a session that has just been made. `None`: there is no memory for it, and the session has ended.
    fn begin(session: Session, ctx: &mut Context) -> Option<Self>;
    /// Advances the client until it has to wait. Returns [`Need::Finished`] after [`Wake::End`] and whenever the
    /// session is over.
    fn advance(&mut self, wake: Wake, ctx: &mut Takeable<Context>) -> Need;
    /// The client has ended: keeps what other clients can use again.
    fn finish(self) {}
    /// Its socket, to wait on.
    fn socket(&self) -> &ClientSocket;
}

/// The event-driven way: the session itself.
impl Client for Box<Session> {
    fn begin(session: Session, _ctx: &mut Context) -> Option<Self> {
        Some(Self::new(session))
    }

    fn advance(&mut self, wake: Wake, ctx: &mut Takeable<Context>) -> Need {
        match self.handle_wake(wake, ctx) {
            Some(need) => need,
            None => self.step(ctx, Stage::Any),
        }
    }

    fn socket(&self) -> &ClientSocket {
        Session::socket(self)
    }
}

impl Connection for Box<Session> {
    fn deadline_ms(&self) -> u64 {
        Session::deadline_ms(self)
    }

    fn spare(&self) -> Option<Spare> {
        Session::spare(self)
    }

    fn passport_version(&self) -> Option<u32> {
        Session::passport_version(self)
    }

    fn may_go_back(&self) -> bool {
        Session::may_go_back(self)
    }
}
