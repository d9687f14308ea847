//! A client: its transport, the protocol on it, and what is being sent.
//!
//! [`Session::step`] takes the client as far as it goes without waiting and answers what is needed next. It never
//! decides who waits: that is the architecture's part. See `LIFECYCLE.md` beside this file for the states.

mod deadline;
mod delegated;
mod feeding;
mod input;
mod named;
mod under_way;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_buf::{Slice, Stop};
use baton_content::Found;
use baton_gateway::{ClientSocket, Why};

use crate::context::Context;
use crate::job::{Job, JobDone};
use crate::log::Outcome;
use crate::metrics::Metric;
use crate::outlet::{Flush, Outlet};
use crate::protocol::{Http1, LastClose, Responder};
use crate::transport::{Received, Transport};
use crate::upload::Upload;
use crate::ways::Trial;
use deadline::Waiting;
use delegated::Delegated;
use feeding::Feeding;
use named::{Naming, Redirected};
use under_way::UnderWay;

/// What a session needs before its next step.
#[derive(Debug)]
pub(crate) enum Need {
    /// Its socket readable.
    Readable,
    /// Its socket writable.
    Writable,
    /// A job done that may block; then [`Session::handle_job`].
    Job(Job),
    /// The job that was asked for before.
    JobUnderWay,
    /// A request to be given to its application; then [`Session::handle_news`].
    Delegate(Box<baton_gateway::Request>),
    /// A piece of the body of the request that was given away to be passed on, or word that there will be none.
    Body(Result<Slice, Why>),
    /// The next news of the answer to the request that was given away, or word that there is none.
    News,
    /// To be woken when there is news of that answer.
    NewsUnderWay,
    /// Nothing but another step: others are to have their turn in between, or this stage may not go on.
    Turn,
    /// Nothing ever again: drop it.
    Finished,
}

/// The halves of the work, for architectures that give them to different threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Reading, parsing, finding content.
    Read,
    /// Sending.
    Write,
    /// Both.
    Any,
}

/// One client.
#[derive(Debug)]
pub(crate) struct Session {
    transport: Transport,
    listener: usize,
    protocol: Http1,
    outlet: Outlet,
    /// What has arrived and is not consumed: an incomplete head, or requests whose turn has not come. No memory
    /// while there is nothing.
    inbox: Vec<u8>,
    /// The body of the request at the front of the inbox, if somebody wants it.
    upload: Option<Box<Upload>>,
    /// The rest of the body of the request that was given away, if that was not complete.
    feeding: Option<Feeding>,
    /// Whether the inbox may hold a whole request.
    inbox_untried: bool,
    /// What is in the outlet is measured: nothing else is in it.
    trial: Option<Trial>,
    /// Responses not yet handed to the kernel as a whole, oldest first.
    under_way: VecDeque<UnderWay>,
    state: State,
    waiting: Waiting,
    deadline_ms: u64,
    /// The request at the front of the inbox is not what the client asked for.
    redirected: Option<Box<Redirected>>,
    /// What the outlet had sent when the deadline was set.
    sent_at_deadline_start: u64,
}

#[derive(Debug)]
enum State {
    /// Requests are taken.
    Open,
    /// The request at the front of the inbox waits for a job.
    Finding,
    /// The job is done; what it found belongs to the request at the front of the inbox.
    Found(Box<Found>),
    /// An application answers a request that is not in the inbox any more. What is there comes behind it.
    Delegated(Box<Delegated>),
    /// The application has ended; its answer is put together from files that it named.
    Naming(Box<Naming>),
    /// What is in the outlet is the last.
    Ending(LastClose),
    /// Our side is closed; what the client still sends is thrown away.
    Lingering,
    /// Over.
    Closed,
}

impl Session {
    /// A client that has just been accepted on the listener with this id.
    pub(crate) fn new(socket: OwnedFd, peer: Option<SocketAddr>, listener: usize, ctx: &mut Context) -> Self {
        Self::over(Transport::new(socket, peer), listener, ctx)
    }

    /// The same over any transport.
    pub(crate) fn over(transport: Transport, listener: usize, ctx: &mut Context) -> Self {
        ctx.tally.add(Metric::ConnectionsAccepted, 1);
        ctx.tally.add(Metric::ConnectionsOpen, 1);
        let mut session = Self {
            transport,
            listener,
            protocol: Http1::new(),
            outlet: Outlet::default(),
            inbox: Vec::new(),
            upload: None,
            feeding: None,
            inbox_untried: false,
            trial: None,
            under_way: VecDeque::new(),
            state: State::Open,
            waiting: Waiting::FirstRequest,
            deadline_ms: u64::MAX,
            redirected: None,
            sent_at_deadline_start: 0,
        };
        session.wait_for(Waiting::FirstRequest, ctx);
        session
    }

    /// The socket, to wait on.
    pub(crate) fn socket(&self) -> &Arc<ClientSocket> {
        self.transport.socket()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due, in milliseconds of the clock; `u64::MAX`: never.
    pub(crate) fn deadline_ms(&self) -> u64 {
        self.deadline_ms
    }

    /// Which half of the work is next.
    pub(crate) fn stage(&self) -> Stage {
        if self.outlet.is_empty() { Stage::Read } else { Stage::Write }
    }

    /// Whether no request has been begun that is not answered: such a connection can be closed without loss.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Open)
            && self.outlet.is_empty()
            && self.inbox.is_empty()
            && !self.protocol.is_in_body()
            && !self.protocol.is_in_unwanted_body()
    }

    /// Whether the client may have sent more than was taken.
    fn has_unread_input(&self) -> bool {
        self.transport.is_readable() || !self.inbox.is_empty()
    }

    /// The response to the request that was taken last.
    fn respond(&mut self, ctx: &Context) -> Responder<'_> {
        self.protocol.respond(&mut self.outlet, ctx.draining)
    }

    fn waits_for_job(&self) -> bool {
        self.waiting == Waiting::Job
    }

    /// The socket has something to read.
    pub(crate) fn handle_readable(&mut self) {
        self.transport.handle_readable();
    }

    /// The client has ended its input, perhaps behind something to read, or is gone. Only for who is told that once.
    pub(crate) fn handle_input_end(&mut self) {
        self.transport.handle_input_end();
    }

    /// The connection is over in both directions: nobody is there to take an answer.
    pub(crate) fn handle_hangup(&mut self) {
        self.transport.handle_hangup();
    }

    /// Whether a request of this session is with an application.
    pub(crate) fn is_delegated(&self) -> bool {
        matches!(self.state, State::Delegated(_))
    }

    /// The job that [`Need::Job`] asked for is done.
    pub(crate) fn handle_job(&mut self, done: JobDone, ctx: &Context) {
        match done {
            JobDone::Found(found) => match &mut self.state {
                State::Naming(naming) => naming.found = Some(found),
                _ => self.state = State::Found(Box::new(found)),
            },
            JobDone::BroughtIn { until } => self.outlet.handle_pages(until),
            JobDone::Sent(sent) => self.outlet.handle_waited(sent),
        }
        self.wait_for(Waiting::Send, ctx);
    }

    /// Goes as far as it can without waiting; `stage` says which half of the work the caller does.
    pub(crate) fn step(&mut self, ctx: &mut Context, stage: Stage) -> Need {
        if self.waits_for_job() {
            return Need::JobUnderWay;
        }
        let need = self.go(ctx, stage);
        self.await_need(&need, ctx);
        need
    }

    fn go(&mut self, ctx: &mut Context, stage: Stage) -> Need {
        loop {
            // First, whatever is to be sent: the client may take nothing before it has sent its body.
            if let Some(need) = self.feed(ctx) {
                return need;
            }
            if !self.outlet.is_empty() {
                if stage == Stage::Read {
                    return Need::Writable;
                }
                if let Some(need) = self.send(ctx) {
                    return need;
                }
            }
            let need = match self.state {
                State::Open | State::Found(_) if stage == Stage::Write => {
                    let has_input = self.transport.is_readable()
                        || self.inbox_untried
                        || matches!(self.state, State::Found(_));
                    Some(if has_input { Need::Turn } else { Need::Readable })
                }
                State::Open | State::Found(_) => self.receive(ctx),
                State::Finding => Some(Need::JobUnderWay),
                State::Delegated(ref mut delegated) => Some(match () {
                    // An application that has written to the socket finds out by itself. If it has not, whoever knows that
                    // has ended the session.
                    () if self.transport.is_hung_up() && !delegated.handed_over => {
                        self.end(Outcome::ClientGone, ctx)
                    }
                    () if std::mem::take(&mut delegated.quiet) => Need::NewsUnderWay,
                    () => Need::News,
                }),
                State::Naming(_) => match std::mem::replace(&mut self.state, State::Open) {
                    State::Naming(naming) => self.name_files(naming, ctx),
                    _ => None,
                },
                State::Ending(close) => Some(self.close(close, ctx)),
                State::Lingering => Some(self.linger(ctx)),
                State::Closed => Some(Need::Finished),
            };
            if let Some(need) = need {
                return need;
            }
        }
    }

    /// Ends the session at once; what is under way is logged with this outcome.
    pub(crate) fn end(&mut self, outcome: Outcome, ctx: &mut Context) -> Need {
        self.log_sent(ctx);
        if !self.under_way.is_empty() && self.protocol.close_that_shows_a_cut() == LastClose::Reset {
            // Closed in order, a response whose end is that of the connection would look complete.
            self.transport.reset();
        }
        self.log_all(outcome, ctx);
        self.outlet.clear();
        if !matches!(self.state, State::Closed) {
            self.state = State::Closed;
            ctx.tally.subtract(Metric::ConnectionsOpen, 1);
        }
        Need::Finished
    }

    /// Like [`end`](Self::end), but with a reset: what the client has not taken yet is dropped.
    fn reset(&mut self, outcome: Outcome, ctx: &mut Context) -> Need {
        self.transport.reset();
        self.end(outcome, ctx)
    }

    /// `None`: all is sent.
    fn send(&mut self, ctx: &mut Context) -> Option<Need> {
        let last = matches!(self.state, State::Ending(_));
        let before = self.outlet.sent();
        let unix_seconds = ctx.clock.stamp().unix_seconds;
        let trial = self.trial.take().filter(|_| self.transport.sends_files());
        let started = trial.map(|_| Instant::now());
        let flush = self.transport.flush(&mut self.outlet, &ctx.send, &mut ctx.scratch, last, unix_seconds);
        // Only what leaves at once can be compared: the rest depends on the client.
        if let (Some(trial), Some(started), Flush::Done) = (trial, started, &flush) {
            ctx.ways.handle_cost(trial, started.elapsed());
        }
        ctx.tally.add(Metric::BytesSent, self.outlet.sent() - before);
        self.log_sent(ctx);
        match flush {
            Flush::Done => {
                if let State::Delegated(delegated) = &mut self.state {
                    // The gateway has to hear that there is room, or the application may wait for it forever.
                    delegated.quiet = false;
                }
                self.wait_for_input(ctx);
                None
            }
            Flush::Full => Some(Need::Writable),
            Flush::Quantum => Some(Need::Turn),
            Flush::NeedsPages(slice) => {
                ctx.tally.add(Metric::Jobs, 1);
                Some(Need::Job(Job::BringIn(slice)))
            }
            Flush::Waits(slice) => {
                ctx.tally.add(Metric::Jobs, 1);
                let patience = Duration::from_millis(ctx.plan.limits.send_timeout_ms.max(1));
                Some(Need::Job(Job::Send { socket: Arc::clone(self.transport.socket()), slice, patience }))
            }
            Flush::Over(Stop::FileShrank) => Some(self.end(Outcome::FileChanged, ctx)),
            Flush::Over(Stop::FileFailed) => Some(self.end(Outcome::Failed, ctx)),
            Flush::Over(Stop::PeerGone | Stop::Full) => Some(self.end(Outcome::ClientGone, ctx)),
        }
    }

    /// Everything is sent and the connection is to end.
    fn close(&mut self, close: LastClose, ctx: &mut Context) -> Need {
        // The client may have sent more while the last response was on its way.
        let close = close.lingering(self.has_unread_input());
        if close == LastClose::Reset {
            return self.reset(Outcome::Complete, ctx);
        }
        if close == LastClose::Linger && !self.transport.has_ended_input() && self.transport.end_output() {
            self.inbox = Vec::new();
            self.state = State::Lingering;
            self.wait_for(Waiting::Linger, ctx);
            return self.linger(ctx);
        }
        self.end(Outcome::Complete, ctx)
    }

    /// Throws away what the client still sends: closing a socket with unread data sends a reset, which could
    /// overtake the response (RFC 9112, section 9.6).
    fn linger(&mut self, ctx: &mut Context) -> Need {
        let mut turns = LINGER_READS_MAX;
        while self.transport.is_readable() {
            match self.transport.receive(&mut ctx.scratch) {
                Received::End => return self.end(Outcome::Complete, ctx),
                Received::Bytes(_) if turns == 0 => return Need::Turn,
                Received::Bytes(_) => turns -= 1,
                Received::Nothing => {}
            }
        }
        Need::Readable
    }
}

/// Reads of a lingering client's data before others have their turn.
const LINGER_READS_MAX: usize = 16;

#[cfg(test)]
mod tests;
