//! A client: its connection, what it speaks, its exchanges, and what is being sent.
//!
//! [`Session::step`] advances the client until it has to wait, and returns what it needs next. The architecture decides
//! which thread waits. See `LIFECYCLE.md` beside this file for the states.

mod handshake;
mod http1;
mod need;
mod wire;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use baton_gateway::{ClientSocket, News};

use crate::context::Context;
use crate::job::JobDone;
use crate::log::Outcome;
use crate::protocol::StreamId;
use crate::transport::Transport;
use http1::Http1Driver;
use wire::Wire;

pub(crate) use need::{Need, Stage};

/// One client.
#[derive(Debug)]
pub(crate) struct Session {
    wire: Wire,
    http1: Http1Driver,
}

impl Session {
    /// A client that has just been accepted on the listener with this id.
    pub(crate) fn new(socket: OwnedFd, peer: Option<SocketAddr>, listener: usize, ctx: &mut Context) -> Self {
        let transport = Transport::new(socket, peer, ctx.plan.tls(listener));
        Self::over(transport, listener, ctx)
    }

    /// Like [`new`](Self::new), over any transport.
    pub(crate) fn over(transport: Transport, listener: usize, ctx: &mut Context) -> Self {
        let mut wire = Wire::new(transport, listener, ctx);
        let http1 = Http1Driver::new(&mut wire, ctx);
        Self { wire, http1 }
    }

    /// The socket, to wait on.
    pub(crate) fn socket(&self) -> &Arc<ClientSocket> {
        self.wire.transport.socket()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due, in milliseconds of the clock; `u64::MAX`: never.
    pub(crate) fn deadline_ms(&self) -> u64 {
        self.wire.deadline_ms
    }

    /// Which half of the work is next.
    pub(crate) fn stage(&self) -> Stage {
        if self.wire.outlet.is_empty() { Stage::Read } else { Stage::Write }
    }

    /// Whether every request that has begun is answered, so that closing the connection loses nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.wire.is_open() && self.wire.outlet.is_empty() && self.http1.is_idle()
    }

    /// The socket has something to read.
    pub(crate) fn handle_readable(&mut self) {
        self.wire.transport.handle_readable();
    }

    /// The client has ended its input, perhaps behind unread data, or is gone. For pollers that report this only once.
    pub(crate) fn handle_input_end(&mut self) {
        self.wire.transport.handle_input_end();
    }

    /// The connection is over in both directions: no answer can arrive.
    pub(crate) fn handle_hangup(&mut self) {
        self.wire.transport.handle_hangup();
    }

    /// Whether a request of this session is with an application.
    pub(crate) fn is_delegated(&self) -> bool {
        self.http1.is_delegated()
    }

    /// The job that [`Need::Job`] asked for is done.
    pub(crate) fn handle_job(&mut self, done: JobDone, ctx: &Context) {
        match done {
            JobDone::Handshake(worked) => self.wire.transport.handle_handshake_work(worked),
            done => self.http1.handle_job(done, &mut self.wire, ctx),
        }
    }

    /// The gateway's event for a delegated request; `None`: nothing more for now.
    pub(crate) fn handle_news(&mut self, stream: StreamId, news: Option<News>, ctx: &mut Context) {
        self.http1.handle_news(stream, news, &mut self.wire, ctx);
    }

    /// The gateway may have an event for a delegated request.
    pub(crate) fn handle_news_ready(&mut self, _stream: StreamId) {}

    /// The application wants more of the request's body.
    pub(crate) fn handle_body_wanted(&mut self, _stream: StreamId) {
        self.http1.handle_body_wanted();
    }

    /// The deadline has passed: the session ends, or goes on if the client turns out to have made progress.
    pub(crate) fn handle_timeout(&mut self, ctx: &mut Context) -> Need {
        match self.time_out_handshake(ctx) {
            Some(need) => need,
            None => self.http1.handle_timeout(&mut self.wire, ctx),
        }
    }

    /// Goes as far as it can without waiting; `stage` says which half of the work the caller does.
    pub(crate) fn step(&mut self, ctx: &mut Context, stage: Stage) -> Need {
        match self.shake_hands(ctx) {
            Some(need) => need,
            None => self.http1.step(&mut self.wire, ctx, stage),
        }
    }

    /// Ends the session at once, and logs unfinished requests with this outcome.
    pub(crate) fn end(&mut self, outcome: Outcome, ctx: &mut Context) -> Need {
        self.http1.end(outcome, &mut self.wire, ctx)
    }
}

#[cfg(test)]
mod tests;
