//! A client: a socket, the connection on it, and what is being sent.
//!
//! [`Session::step`] takes the client as far as it goes without waiting and answers what is needed next. It never
//! decides who waits: that is the architecture's part. See `LIFECYCLE.md` beside this file for the states.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use baton_content::Found;
use baton_http::Status;
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};

use crate::connection::{Body, Http1, Request, Stop, Taken};
use crate::context::{Context, SCRATCH_BYTES};
use crate::exchange::{self, Answer, Ready};
use crate::job::{Job, JobDone};
use crate::log::{Ending, Outcome, RequestText};
use crate::metrics::Metric;
use crate::outlet::{Flush, Outlet};
use crate::plan::Plan;
use crate::ways::Trial;

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
    socket: Arc<OwnedFd>,
    /// `None`: a client on a Unix socket.
    peer: Option<SocketAddr>,
    listener: usize,
    connection: Http1,
    outlet: Outlet,
    /// What has arrived and is not consumed: an incomplete head, or requests whose turn has not come. No memory
    /// while there is nothing.
    inbox: Vec<u8>,
    /// Whether the inbox may hold a whole request.
    inbox_untried: bool,
    /// What is in the outlet is measured: nothing else is in it.
    trial: Option<Trial>,
    /// Responses not yet handed to the kernel as a whole, oldest first.
    under_way: VecDeque<UnderWay>,
    state: State,
    /// The socket may have something to read.
    readable: bool,
    /// The client will send nothing more, and all that it sent has been read.
    input_ended: bool,
    /// The end of its input was announced, but data may be in front of it; it will not be announced again.
    end_announced: bool,
    requests: u64,
    waiting: Waiting,
    deadline_ms: u64,
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
    /// What is in the outlet is the last.
    Ending {
        /// The client may still be sending: read that past, lest a reset destroys the response.
        linger: bool,
    },
    /// Our side is closed; what the client still sends is thrown away.
    Lingering,
    /// Over.
    Closed,
}

/// What follows an attempt to answer a request.
#[derive(Debug)]
enum Next {
    /// The request behind it.
    Request,
    /// The end of the connection.
    End,
    /// The same request again, when what is in the outlet has been sent.
    SameAgain,
    /// The same request again, when the job is done.
    Job(Job),
    /// The same request again, when its body has come.
    Body,
}

/// What the deadline is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    FirstRequest,
    NextRequest,
    Head,
    Body,
    Send,
    Linger,
    Job,
}

/// A response on its way.
#[derive(Debug)]
struct UnderWay {
    /// Where it ends in the stream of bytes sent.
    end: u64,
    /// Where its body begins.
    body_start: u64,
    status: u16,
    outcome: Outcome,
    started_ms: u64,
    site: usize,
    text: Option<RequestText>,
}

impl Session {
    /// A client that has just been accepted on the listener with this id.
    pub(crate) fn new(socket: OwnedFd, peer: Option<SocketAddr>, listener: usize, ctx: &mut Context) -> Self {
        ctx.tally.add(Metric::ConnectionsAccepted, 1);
        ctx.tally.add(Metric::ConnectionsOpen, 1);
        let mut session = Self {
            socket: Arc::new(socket),
            peer,
            listener,
            connection: Http1::new(),
            outlet: Outlet::default(),
            inbox: Vec::new(),
            inbox_untried: false,
            trial: None,
            under_way: VecDeque::new(),
            state: State::Open,
            // The first read is tried at once: with TCP_DEFER_ACCEPT the request is there already.
            readable: true,
            input_ended: false,
            end_announced: false,
            requests: 0,
            waiting: Waiting::FirstRequest,
            deadline_ms: u64::MAX,
            sent_at_deadline_start: 0,
        };
        session.wait_for(Waiting::FirstRequest, ctx);
        session
    }

    /// The socket, to wait on.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The socket, for whoever waits on it while the session is out of reach.
    pub(crate) fn share_socket(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.socket)
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
            && !self.connection.is_in_body()
    }

    fn waits_for_job(&self) -> bool {
        self.waiting == Waiting::Job
    }

    /// The socket has something to read.
    pub(crate) fn handle_readable(&mut self) {
        self.readable = true;
    }

    /// The client has ended its input, perhaps behind something to read, or is gone. Only for who is told that once.
    pub(crate) fn handle_input_end(&mut self) {
        self.readable = true;
        self.end_announced = true;
    }

    /// The job that [`Need::Job`] asked for is done.
    pub(crate) fn handle_job(&mut self, done: JobDone, ctx: &Context) {
        match done {
            JobDone::Found(found) => self.state = State::Found(Box::new(found)),
            JobDone::BroughtIn { until } => self.outlet.handle_pages(until),
        }
        self.wait_for(Waiting::Send, ctx);
    }

    /// Goes as far as it can without waiting; `stage` says which half of the work the caller does.
    pub(crate) fn step(&mut self, ctx: &mut Context, stage: Stage) -> Need {
        if self.waits_for_job() {
            return Need::JobUnderWay;
        }
        loop {
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
                    let has_input =
                        self.readable || self.inbox_untried || matches!(self.state, State::Found(_));
                    Some(if has_input { Need::Turn } else { Need::Readable })
                }
                State::Open | State::Found(_) => self.receive(ctx),
                State::Finding => Some(Need::JobUnderWay),
                State::Ending { linger } => Some(self.close(linger, ctx)),
                State::Lingering => Some(self.linger(ctx)),
                State::Closed => Some(Need::Finished),
            };
            if let Some(need) = need {
                return need;
            }
        }
    }

    /// The deadline has passed: the session ends, or goes on if the client turns out to have made progress.
    pub(crate) fn handle_timeout(&mut self, ctx: &mut Context) -> Need {
        match self.waiting {
            Waiting::Job => Need::JobUnderWay,
            Waiting::Send if self.client_takes_enough(ctx) => {
                self.wait_for(Waiting::Send, ctx);
                Need::Writable
            }
            Waiting::Head | Waiting::Body if self.outlet.is_empty() => {
                let inbox = std::mem::take(&mut self.inbox);
                self.refuse(
                    &inbox,
                    Status::REQUEST_TIMEOUT,
                    "The request took too long to arrive.",
                    Outcome::TimedOut,
                    ctx,
                );
                self.step(ctx, Stage::Any)
            }
            Waiting::FirstRequest | Waiting::NextRequest | Waiting::Linger => {
                self.end(Outcome::ClientGone, ctx)
            }
            Waiting::Send | Waiting::Head | Waiting::Body => self.end(Outcome::TimedOut, ctx),
        }
    }

    /// Ends the session at once; what is under way is logged with this outcome.
    pub(crate) fn end(&mut self, outcome: Outcome, ctx: &mut Context) -> Need {
        self.log_sent(ctx);
        while let Some(response) = self.under_way.pop_front() {
            self.log(response, outcome, ctx);
        }
        self.log_unanswered(outcome, ctx);
        self.outlet.clear();
        if !matches!(self.state, State::Closed) {
            self.state = State::Closed;
            ctx.tally.subtract(Metric::ConnectionsOpen, 1);
        }
        Need::Finished
    }

    /// `None`: all is sent.
    fn send(&mut self, ctx: &mut Context) -> Option<Need> {
        let last = matches!(self.state, State::Ending { .. });
        let before = self.outlet.sent();
        let unix_seconds = ctx.clock.stamp().unix_seconds;
        let started = self.trial.map(|_| Instant::now());
        let flush = self.outlet.flush(self.socket.as_fd(), &ctx.send, last, unix_seconds);
        // Only what leaves at once can be compared: the rest depends on the client.
        if let (Some(trial), Some(started), Flush::Done) = (self.trial.take(), started, &flush) {
            ctx.ways.handle_cost(trial, started.elapsed());
        }
        ctx.tally.add(Metric::BytesSent, self.outlet.sent() - before);
        self.log_sent(ctx);
        match flush {
            Flush::Done => {
                self.wait_for_input(ctx);
                None
            }
            Flush::Full => {
                if self.waiting != Waiting::Send {
                    self.wait_for(Waiting::Send, ctx);
                }
                Some(Need::Writable)
            }
            Flush::Quantum => Some(Need::Turn),
            Flush::NeedsPages(slice) => {
                self.wait_for(Waiting::Job, ctx);
                ctx.tally.add(Metric::Jobs, 1);
                Some(Need::Job(Job::BringIn(slice)))
            }
            Flush::FileShrank => Some(self.end(Outcome::FileChanged, ctx)),
            Flush::FileFailed => Some(self.end(Outcome::Failed, ctx)),
            Flush::ClientGone => Some(self.end(Outcome::ClientGone, ctx)),
        }
    }

    /// `None`: something was done, the outlet or the state tells what.
    fn receive(&mut self, ctx: &mut Context) -> Option<Need> {
        // The scratch memory is the context's; it is taken out while the context is in use otherwise.
        let mut scratch = std::mem::take(&mut ctx.scratch);
        let need = self.receive_into(&mut scratch, ctx);
        ctx.scratch = scratch;
        need
    }

    fn receive_into(&mut self, scratch: &mut Vec<u8>, ctx: &mut Context) -> Option<Need> {
        let mut filled = self.inbox.len();
        let tried_before = !self.inbox_untried && matches!(self.state, State::Open);
        if filled == 0 || tried_before {
            if self.input_ended {
                return Some(self.end(Outcome::ClientGone, ctx));
            }
            if !self.readable {
                return Some(Need::Readable);
            }
        }
        if scratch.len() < filled + SCRATCH_BYTES / 2 {
            scratch.resize(filled + SCRATCH_BYTES, 0); // Limits on heads were raised beyond the usual.
        }
        scratch[..filled].copy_from_slice(&self.inbox);
        if filled == 0 || tried_before {
            match rustix::net::recv(&self.socket, &mut scratch[filled..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => {
                    self.input_ended = true;
                    return Some(self.end(Outcome::ClientGone, ctx));
                }
                Ok((_, count)) => {
                    // Less than there was room for: all there was. New data will be announced, but not the end that
                    // came with this.
                    self.readable = filled + count == scratch.len() || self.end_announced;
                    filled += count;
                }
                Err(Errno::AGAIN) => {
                    self.readable = false;
                    return Some(Need::Readable);
                }
                Err(Errno::INTR) => return None,
                Err(_) => return Some(self.end(Outcome::ClientGone, ctx)),
            }
        }
        self.take_requests(&scratch[..filled], ctx)
    }

    /// Answers as many requests as `input` holds, within bounds; what is left over stays in the inbox.
    fn take_requests(&mut self, input: &[u8], ctx: &mut Context) -> Option<Need> {
        let plan = Arc::clone(&ctx.plan);
        // A head whose body has not arrived stays in front of what follows.
        let (mut head, mut rest): (&[u8], _) = (&[], input);
        let mut need = None;
        self.inbox_untried = false;
        for answered in 1.. {
            let request = match self.connection.next(rest, &plan.limits) {
                Ok(Taken::Request(request)) => request,
                Ok(Taken::Part { head_len, passed }) => {
                    head = &rest[..head_len];
                    rest = &rest[head_len + passed..];
                    self.wait_for_more(!rest.is_empty(), ctx);
                    break;
                }
                Err(stop) => {
                    self.refuse_input(rest, stop, ctx);
                    rest = &[];
                    break;
                }
            };
            match self.answer(&request, &plan, ctx) {
                Next::Request => rest = &rest[request.len..],
                Next::End => {
                    let unread = rest.len() > request.len || request.body != Body::Passed || self.readable;
                    self.state = State::Ending { linger: unread };
                    rest = &[];
                }
                Next::Body => self.connection.read_body(request.len, request.head.framing),
                Next::SameAgain => self.inbox_untried = true,
                Next::Job(job) => need = Some(Need::Job(job)),
            }
            let enough = answered == plan.limits.pipelined_max || self.outlet.queued() >= BATCH_BYTES;
            if rest.is_empty() || need.is_some() || self.inbox_untried {
                break;
            }
            if enough {
                self.inbox_untried = true;
                break;
            }
        }
        self.keep(head, rest);
        need
    }

    /// Answers one request into the outlet.
    fn answer(&mut self, request: &Request<'_>, plan: &Plan, ctx: &mut Context) -> Next {
        let found = match std::mem::replace(&mut self.state, State::Open) {
            State::Found(found) => Some(*found),
            _ => None,
        };
        let may_go_on = !ctx.draining && self.requests + 1 < plan.limits.requests_per_connection_max;
        let start = self.outlet.end();
        let outlet = &mut self.outlet;
        let ready = match exchange::answer(ctx, plan, request, self.listener, may_go_on, found, outlet) {
            Answer::Ready(ready) => ready,
            Answer::Continue => return Next::Body,
            // The answers before it need not wait for the disk: they are sent first.
            Answer::Needs(_) if !self.outlet.is_empty() => return Next::SameAgain,
            Answer::Needs(job) => {
                self.state = State::Finding;
                self.wait_for(Waiting::Job, ctx);
                ctx.tally.add(Metric::Jobs, 1);
                return Next::Job(job);
            }
        };
        self.requests += 1;
        self.trial = ready.trial.filter(|_| start == self.outlet.sent());
        let logged = plan.sites().get(ready.site).is_none_or(|site| site.log);
        let text = ctx.log.as_mut().filter(|_| logged).map(|log| log.note(&request.head));
        self.begin_response(&ready, start, text, ctx);
        if !ready.keep_alive {
            return Next::End;
        }
        self.connection.handle_answered();
        Next::Request
    }

    /// Keeps what is left of the input; a connection with nothing left keeps no memory for it.
    fn keep(&mut self, head: &[u8], rest: &[u8]) {
        if head.is_empty() && rest.is_empty() {
            if self.inbox.capacity() > 0 {
                self.inbox = Vec::new();
            }
        } else {
            self.inbox.clear();
            self.inbox.extend_from_slice(head);
            self.inbox.extend_from_slice(rest);
        }
    }

    /// The input ends in the midst of something, or between two requests.
    fn wait_for_more(&mut self, partial: bool, ctx: &Context) {
        if self.connection.is_in_body() {
            self.wait_for(Waiting::Body, ctx);
        } else if partial && self.waiting != Waiting::Head {
            self.wait_for(Waiting::Head, ctx); // From the first byte: more bytes buy no more time.
        }
    }

    /// All is sent: it is the client's turn, who may have begun already.
    fn wait_for_input(&mut self, ctx: &Context) {
        let waiting = match () {
            () if self.connection.is_in_body() => Waiting::Body,
            () if !self.inbox.is_empty() => Waiting::Head,
            () if self.requests == 0 => Waiting::FirstRequest,
            () => Waiting::NextRequest,
        };
        self.wait_for(waiting, ctx);
    }

    /// Refuses what cannot be understood.
    fn refuse_input(&mut self, input: &[u8], stop: Stop, ctx: &mut Context) {
        let (status, why) = match stop {
            Stop::Refused(refusal) => (refusal.status(), refusal.to_string()),
            Stop::BodyTooLarge => (Status::CONTENT_TOO_LARGE, String::new()),
        };
        self.refuse(input, status, &why, Outcome::Refused, ctx);
    }

    /// Refuses what the client sends; `input` is all there is of it.
    fn refuse(&mut self, input: &[u8], status: Status, why: &str, outcome: Outcome, ctx: &mut Context) {
        self.inbox_untried = false;
        self.state = State::Ending { linger: true };
        let body_start = self.outlet.end();
        let plan = Arc::clone(&ctx.plan);
        let mut ready = exchange::refuse(ctx, &plan, status, why, &mut self.outlet);
        ready.outcome = outcome;
        let text = ctx.log.as_mut().map(|log| log.note_unreadable(input));
        self.begin_response(&ready, body_start, text, ctx);
    }

    /// Takes note of a response that has been put into the outlet, where it began.
    fn begin_response(&mut self, ready: &Ready, start: u64, text: Option<RequestText>, ctx: &Context) {
        self.under_way.push_back(UnderWay {
            end: self.outlet.end(),
            body_start: start + ready.head_bytes,
            status: ready.status,
            outcome: ready.outcome,
            started_ms: ctx.clock.now_ms(),
            site: ready.site,
            text,
        });
    }

    /// Everything is sent and the connection is to end.
    fn close(&mut self, linger: bool, ctx: &mut Context) -> Need {
        if linger && !self.input_ended && rustix::net::shutdown(&self.socket, Shutdown::Write).is_ok() {
            self.inbox = Vec::new();
            self.state = State::Lingering;
            self.readable = true;
            self.wait_for(Waiting::Linger, ctx);
            return self.linger(ctx);
        }
        self.end(Outcome::Complete, ctx)
    }

    /// Throws away what the client still sends: closing a socket with unread data sends a reset, which could
    /// overtake the response (RFC 9112, section 9.6).
    fn linger(&mut self, ctx: &mut Context) -> Need {
        let mut turns = LINGER_READS_MAX;
        while self.readable {
            match rustix::net::recv(&self.socket, &mut ctx.scratch[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return self.end(Outcome::Complete, ctx),
                Ok(_) if turns == 0 => return Need::Turn,
                Ok(_) => turns -= 1,
                Err(Errno::AGAIN) => self.readable = false,
                Err(Errno::INTR) => {}
                Err(_) => return self.end(Outcome::Complete, ctx),
            }
        }
        Need::Readable
    }

    fn wait_for(&mut self, waiting: Waiting, ctx: &Context) {
        let limits = &ctx.plan.limits;
        let timeout_ms = match waiting {
            Waiting::FirstRequest | Waiting::Head => limits.head_timeout_ms,
            Waiting::NextRequest => limits.idle_timeout_ms,
            Waiting::Body => limits.body_timeout_ms,
            Waiting::Send => limits.send_timeout_ms,
            Waiting::Linger => limits.linger_timeout_ms,
            Waiting::Job => u64::MAX,
        };
        self.waiting = waiting;
        self.deadline_ms = ctx.clock.now_ms().saturating_add(timeout_ms);
        self.sent_at_deadline_start = self.outlet.sent();
    }

    fn client_takes_enough(&self, ctx: &Context) -> bool {
        let limits = &ctx.plan.limits;
        let taken = self.outlet.sent() - self.sent_at_deadline_start;
        taken >= (limits.send_rate_min_bytes_per_s * limits.send_timeout_ms / 1000).max(1)
    }

    /// Logs the responses that have been handed over completely.
    fn log_sent(&mut self, ctx: &mut Context) {
        while self.under_way.front().is_some_and(|response| response.end <= self.outlet.sent()) {
            let Some(response) = self.under_way.pop_front() else { return };
            let outcome = response.outcome;
            self.log(response, outcome, ctx);
        }
    }

    /// Logs the request that was begun and got no answer: cut off in its head or body, or overtaken by the end of the
    /// server while it waited for a disk.
    fn log_unanswered(&self, outcome: Outcome, ctx: &mut Context) {
        let begun = self.inbox.trim_ascii_start();
        if begun.is_empty() || !matches!(self.state, State::Open | State::Finding | State::Found(_)) {
            return;
        }
        let status = match outcome {
            Outcome::ClientGone => Status::BAD_REQUEST,
            Outcome::TimedOut => Status::REQUEST_TIMEOUT,
            _ => Status::SERVICE_UNAVAILABLE,
        };
        let end = self.outlet.end();
        let nothing = UnderWay {
            end,
            body_start: end,
            status: status.code(),
            outcome,
            started_ms: ctx.clock.now_ms(),
            site: usize::MAX,
            text: ctx.log.as_mut().map(|log| log.note_unreadable(begun)),
        };
        self.log(nothing, outcome, ctx);
    }

    fn log(&self, response: UnderWay, outcome: Outcome, ctx: &mut Context) {
        ctx.tally.add(outcome.metric(), 1);
        ctx.tally.add(Metric::of_status(response.status), 1);
        let (Some(log), Some(text)) = (&mut ctx.log, response.text) else { return };
        let ending = Ending {
            peer: self.peer,
            site: ctx.plan.sites().get(response.site).map_or("", |site| &site.name),
            status: response.status,
            body_bytes: self.outlet.sent().min(response.end).saturating_sub(response.body_start),
            duration_ms: ctx.clock.now_ms() - response.started_ms,
            outcome,
        };
        log.end(text, &ending, ctx.clock.now_ms(), ctx.clock.stamp());
    }
}

/// Bytes of responses that are collected before they are sent, when requests are pipelined.
const BATCH_BYTES: u64 = 256 * 1024;

/// Reads of a lingering client's data before others have their turn.
const LINGER_READS_MAX: usize = 16;
