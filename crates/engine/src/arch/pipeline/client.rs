//! A client, which the loop and the stages own in turn.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_session::context::Context;
use baton_session::session::{Need, Session, Spare, Stage, Wake};
use baton_upstream::ClientSocket;
use rustix::net::Shutdown;

use crate::client::Client;
use crate::clients::{Connection, Token};
use crate::takeable::Takeable;

/// `None`: it has ended, perhaps while a stage was about to take its step.
pub(super) struct SharedSession(Mutex<Option<Session>>);

impl SharedSession {
    pub(super) fn lock(&self) -> MutexGuard<'_, Option<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A step that a stage is to take.
pub(super) struct Step {
    pub(super) whose: Token,
    pub(super) session: Arc<SharedSession>,
}

/// A client, seen from the loop.
pub(super) struct PipelineClient {
    session: Arc<SharedSession>,
    socket: Arc<ClientSocket>,
    /// A stage takes its step, or a writer does a job for it.
    is_away: bool,
    /// Why it was woken meanwhile. The kernel reports each event once.
    missed: Option<Wake>,
    /// Applications' events and wishes for requests of it meanwhile.
    missed_of_applications: Vec<Wake>,
}

impl PipelineClient {
    /// Hands the client to a stage.
    pub(super) fn leave(&mut self) -> Arc<SharedSession> {
        self.is_away = true;
        Arc::clone(&self.session)
    }

    fn miss(&mut self, wake: Wake) -> Need {
        self.missed = Some(match (self.missed.take(), wake) {
            (
                Some(Wake::Ready { readable, input_ends, hung_up }),
                Wake::Ready { readable: also_readable, input_ends: also_ends, hung_up: also_hung_up },
            ) => Wake::Ready {
                readable: readable || also_readable,
                input_ends: input_ends || also_ends,
                hung_up: hung_up || also_hung_up,
            },
            (Some(ready @ Wake::Ready { .. }), _) => ready,
            (_, wake) => wake,
        });
        Need::JobUnderWay
    }
}

impl Client for PipelineClient {
    fn begin(session: Session, _ctx: &mut Context) -> Option<Self> {
        let socket = session.share_socket();
        let session = Arc::new(SharedSession(Mutex::new(Some(session))));
        Some(Self { session, socket, is_away: false, missed: None, missed_of_applications: Vec::new() })
    }

    /// Never reads requests, writes or looks for content: for those the client needs a turn, which a stage takes.
    fn advance(&mut self, wake: Wake, ctx: &mut Takeable<Context>) -> Need {
        match wake {
            Wake::Resumed if self.is_away => return Need::JobUnderWay,
            Wake::Ready { .. } | Wake::Turn if self.is_away => return self.miss(wake),
            Wake::BodyWanted(_) | Wake::ResponseReady(_) if self.is_away => {
                self.missed_of_applications.push(wake);
                return self.miss(Wake::Turn);
            }
            // What its log line would say of an origin.
            Wake::ResponseEvents(..) if self.is_away => return Need::JobUnderWay,
            // Wakes a writer that waits for this client. An error means that the connection is over already.
            Wake::End(_) if self.is_away => drop(rustix::net::shutdown(&self.socket, Shutdown::Both)),
            _ => {}
        }
        let mut place = self.session.lock();
        let Some(session) = place.as_mut() else { return Need::Finished };
        for missed in self.missed_of_applications.drain(..) {
            session.handle_wake(missed, ctx);
        }
        let mut need = session.handle_wake(wake, ctx);
        if let Some(missed) = self.missed.take() {
            session.handle_wake(missed, ctx);
            need =
                need.filter(|need| !matches!(need, Need::Readable | Need::Writable | Need::ResponseAwaited));
        }
        let need = match need {
            Some(need) => need,
            // Between the pieces of an application's answer there is nothing to read.
            None if session.is_delegated() => match session.step(ctx, Stage::Read) {
                Need::Writable if session.stage() == Stage::Write => Need::Turn,
                need => need,
            },
            None => Need::Turn,
        };
        self.is_away = matches!(need, Need::Job(..) | Need::JobUnderWay);
        if matches!(need, Need::Finished) {
            *place = None;
        }
        need
    }

    fn socket(&self) -> &ClientSocket {
        &self.socket
    }
}

impl Connection for PipelineClient {
    fn deadline_ms(&self) -> u64 {
        let session = (!self.is_away).then(|| self.session.lock());
        session.and_then(|session| session.as_ref().map(Session::deadline_ms)).unwrap_or(u64::MAX)
    }

    fn spare(&self) -> Option<Spare> {
        self.session.lock().as_ref().filter(|_| !self.is_away).and_then(Session::spare)
    }

    fn passport_version(&self) -> Option<u32> {
        self.session.lock().as_ref().filter(|_| !self.is_away).and_then(Session::passport_version)
    }

    fn may_go_back(&self) -> bool {
        !self.is_away && self.session.lock().as_ref().is_some_and(Session::may_go_back)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use baton_buf::{FileSlice, OpenFile};
    use baton_content::CacheSettings;
    use baton_session::job::Job;
    use baton_telemetry::log::Outcome;

    use super::*;

    fn begin() -> (PipelineClient, Takeable<Context>, UnixStream) {
        let (socket, client) = UnixStream::pair().unwrap();
        let mut ctx = Context::without_sites(CacheSettings::default());
        let session = Session::new(socket.into(), None, 0, &mut ctx);
        (PipelineClient::begin(session, &mut ctx).unwrap(), Takeable::new(ctx), client)
    }

    /// The kernel tells of an event once, perhaps while a stage finds nothing to do any more.
    #[test]
    fn an_event_that_comes_during_a_step_is_not_lost() {
        let ready = |readable, hung_up| Wake::Ready { readable, input_ends: hung_up, hung_up };
        for events in [vec![ready(true, false)], vec![ready(false, true), Wake::Turn], vec![Wake::Turn]] {
            let (mut pipelined, mut ctx, _client) = begin();
            assert!(matches!(pipelined.advance(Wake::Turn, &mut ctx), Need::Turn));
            pipelined.leave();
            for event in events {
                assert!(matches!(pipelined.advance(event, &mut ctx), Need::JobUnderWay));
            }
            assert_eq!(pipelined.deadline_ms(), u64::MAX, "no deadline is the stage's");
            let stepped = |pipelined: &mut PipelineClient, ctx: &mut _| {
                pipelined.leave();
                pipelined.advance(Wake::Stepped(Need::Readable), ctx)
            };
            assert!(matches!(stepped(&mut pipelined, &mut ctx), Need::Turn), "another step");
            assert!(matches!(stepped(&mut pipelined, &mut ctx), Need::Readable), "for each event one");
            assert!(pipelined.deadline_ms() < u64::MAX);
        }
    }

    /// A job takes the client away; anything else that it asked for leaves it with work to do.
    #[test]
    fn a_client_goes_on_behind_what_is_no_job() {
        let (mut pipelined, mut ctx, _client) = begin();
        assert!(matches!(pipelined.advance(Wake::Resumed, &mut ctx), Need::Turn));
        let slice = FileSlice::new(Arc::new(OpenFile::new(tempfile::tempfile().unwrap().into())), 0, 0);
        let job = Need::Job(Job::PageIn { stream: None, slice }, None);
        assert!(matches!(pipelined.advance(Wake::Stepped(job), &mut ctx), Need::Job(..)));
        assert!(matches!(pipelined.advance(Wake::Resumed, &mut ctx), Need::JobUnderWay));
    }

    /// A stage that comes to a client that has ended finds none, and a writer that waits for it goes on.
    #[test]
    fn a_client_may_end_while_a_stage_has_it() {
        let (mut pipelined, mut ctx, client) = begin();
        pipelined.advance(Wake::Turn, &mut ctx);
        let step = pipelined.leave();
        assert!(matches!(pipelined.advance(Wake::End(Outcome::Stopped), &mut ctx), Need::Finished));
        assert!(step.lock().is_none());
        let mut byte = [0];
        assert_eq!(std::io::Read::read(&mut &client, &mut byte).unwrap(), 0, "the connection has ended");
    }
}
