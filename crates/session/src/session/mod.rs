//! A client: its connection, what it speaks, its exchanges, and what is being sent.
//!
//! [`Session::step`] advances the client until it has to wait, and returns what it needs next. The architecture decides
//! which thread waits. See `LIFECYCLE.md` beside this file for the states.

mod connection;
mod driver;
mod exchanges;
mod handshake;
mod http1;
mod http2;
mod moving;
mod need;
mod wake;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use baton_site::address_count::Counted;
use baton_telemetry::log::Outcome;
use baton_upstream::{ClientSocket, ResponseEvents};

use crate::context::Context;
use crate::job::JobDone;
use crate::protocol::StreamId;
use crate::transport::Transport;
use connection::ClientConnection;
use driver::Driver;
use http1::Http1Driver;
use http2::Http2Driver;

pub use need::{BodyPart, Need, Stage, UpstreamNeed};
pub use wake::Wake;

/// What is lost with a connection that ends now. The order is that in which they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spare {
    /// Nothing.
    Idle,
    /// What the client has sent of a request, and perhaps never completes.
    Unfinished,
}

/// One client.
#[derive(Debug)]
pub struct Session {
    connection: ClientConnection,
    protocol: Protocol,
}

/// What is spoken on the connection.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "for HTTP/1 a box would be an allocation per connection")]
enum Protocol {
    Http1(Http1Driver),
    Http2(Box<Http2Driver>),
}

/// Calls the driver of a protocol, whichever it is.
macro_rules! each_driver {
    ($protocol:expr, $driver:ident => $result:expr) => {
        match $protocol {
            Protocol::Http1($driver) => $result,
            Protocol::Http2($driver) => $result,
        }
    };
}

impl Session {
    /// A client that has just been accepted on the listener with this id.
    pub fn new(socket: OwnedFd, peer: Option<SocketAddr>, listener: usize, ctx: &mut Context) -> Self {
        let balancers = ctx.plan.balancers(listener);
        let is_announced = balancers.is_some_and(|balancers| balancers.contains(peer.map(|peer| peer.ip())));
        let begin = if is_announced { Transport::behind } else { Transport::new };
        let mut transport = begin(socket, peer, ctx.plan.tls(listener));
        if ctx.plan.rehearses_tls() {
            transport.rehearse_tls();
        }
        Self::over(transport, listener, ctx)
    }

    /// Like [`new`](Self::new), over any transport.
    pub fn over(transport: Transport, listener: usize, ctx: &mut Context) -> Self {
        let mut connection = ClientConnection::new(transport, listener, ctx);
        let protocol = Protocol::Http1(Http1Driver::new(&mut connection, ctx));
        Self { connection, protocol }
    }

    /// The handshake is over: the client speaks what was agreed on.
    fn begin_protocol(&mut self, ctx: &mut Context) {
        let agreed = self.connection.transport.tls().map(|facts| facts.protocol);
        self.protocol = match agreed {
            Some(baton_tls::Protocol::Http2) => Protocol::Http2(Box::new(Http2Driver::new(ctx))),
            // The first request has a time of its own.
            _ => Protocol::Http1(Http1Driver::new(&mut self.connection, ctx)),
        };
    }

    /// The client's connection is counted by its address.
    pub fn note_counted(&mut self, counted: Counted) {
        self.connection.transport.counted = counted;
    }

    /// The socket, to wait on.
    pub fn socket(&self) -> &ClientSocket {
        self.connection.transport.socket()
    }

    /// The socket, for a thread that waits on it while another one has the session.
    pub fn share_socket(&self) -> Arc<ClientSocket> {
        self.connection.transport.share_socket()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due, in milliseconds of the clock; `u64::MAX`: never.
    pub fn deadline_ms(&self) -> u64 {
        self.connection.deadline_ms
    }

    /// Which half of the work is next.
    pub fn stage(&self) -> Stage {
        let can_send = each_driver!(&self.protocol, driver => driver.can_send(&self.connection));
        if can_send { Stage::Write } else { Stage::Read }
    }

    /// Whether every request that has begun is answered, so that closing the connection loses nothing.
    pub fn is_idle(&self) -> bool {
        each_driver!(&self.protocol, driver => driver.is_idle())
            && self.connection.is_open()
            && self.connection.send_queue.is_empty()
            && self.connection.inbox.is_empty()
            && !self.connection.transport.has_begun_handshake()
    }

    /// How little is lost if the connection ends now; `None`: a request is being answered.
    pub fn spare(&self) -> Option<Spare> {
        if self.is_idle() {
            return Some(Spare::Idle);
        }
        let waits_for_client = self.connection.transport.is_handshaking()
            || each_driver!(&self.protocol, driver => driver.waits_for_client(&self.connection));
        waits_for_client.then_some(Spare::Unfinished)
    }

    /// Whether the front-end that has handed the connection over can take it back now, between two requests.
    pub fn may_go_back(&self) -> bool {
        self.connection.transport.is_of_front_end() && self.is_idle()
    }

    /// The socket may be readable, or take more.
    pub fn handle_ready(&mut self, is_readable: bool) {
        if is_readable {
            self.connection.transport.handle_readable();
        }
        each_driver!(&mut self.protocol, driver => driver.handle_ready());
    }

    /// The client has ended its input, perhaps behind unread data, or is gone. For pollers that report this only once.
    pub fn handle_input_end(&mut self) {
        self.connection.transport.handle_input_end();
    }

    /// The connection is over in both directions: no answer can arrive.
    pub fn handle_hangup(&mut self) {
        self.connection.transport.handle_hangup();
    }

    /// Whether a request of this session is with an application.
    pub fn is_delegated(&self) -> bool {
        each_driver!(&self.protocol, driver => driver.is_delegated())
    }

    /// The job that [`Need::Job`] asked for is done.
    pub fn handle_job(&mut self, done: JobDone, ctx: &Context) {
        each_driver!(&mut self.protocol, driver => driver.handle_job(done, &mut self.connection, ctx));
    }

    /// The gateway may have an event for a delegated request. Returns whether the session needs that event, and nothing
    /// before.
    pub fn handle_response_ready(&mut self, stream: StreamId) -> bool {
        let connection = &self.connection;
        each_driver!(&mut self.protocol, driver => driver.handle_response_ready(stream, connection))
    }

    /// The gateway's next events for a delegated request; none: nothing more for now. Returns whether the session needs
    /// those behind them, and nothing before.
    pub fn handle_response_events(
        &mut self,
        stream: StreamId,
        events: ResponseEvents,
        ctx: &mut Context,
    ) -> bool {
        let connection = &mut self.connection;
        each_driver!(&mut self.protocol, driver => driver.handle_response_events(stream, events, connection, ctx))
    }

    /// The application wants more of the request's body.
    pub fn handle_body_wanted(&mut self, stream: StreamId) {
        each_driver!(&mut self.protocol, driver => driver.handle_body_wanted(stream));
    }

    /// The deadline has passed: the session ends, or goes on if the client turns out to have made progress.
    pub fn handle_timeout(&mut self, ctx: &mut Context) -> Need {
        if let Some(need) = self.time_out_handshake(ctx) {
            return need;
        }
        each_driver!(&mut self.protocol, driver => driver.handle_timeout(&mut self.connection, ctx))
    }

    /// Goes as far as it can without waiting; `stage` says which half of the work the caller does.
    pub fn step(&mut self, ctx: &mut Context, stage: Stage) -> Need {
        if let Some(need) = self.shake_hands(ctx) {
            return need;
        }
        let need = each_driver!(&mut self.protocol, driver => driver.step(&mut self.connection, ctx, stage));
        let Protocol::Http1(http1) = &self.protocol else { return need };
        if !http1.is_http2() {
            return need;
        }
        self.protocol = Protocol::Http2(Box::new(Http2Driver::new(ctx)));
        self.connection.retry_inbox();
        self.step(ctx, stage)
    }

    /// Ends the session at once, and logs unfinished requests with this outcome.
    pub fn end(&mut self, outcome: Outcome, ctx: &mut Context) -> Need {
        each_driver!(&mut self.protocol, driver => driver.end(outcome, &mut self.connection, ctx))
    }

    /// What holds between any two events.
    pub fn check_invariants(&self) {
        self.connection.check_invariants();
        each_driver!(&self.protocol, driver => driver.check_invariants(&self.connection));
    }
}

#[cfg(test)]
mod tests;
