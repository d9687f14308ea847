//! A session that leaves for another process, or comes from one. See [`baton_passport`].

use std::os::fd::{AsFd, OwnedFd};

use baton_passport::{Address, PartKind, Passport};
use baton_telemetry::metrics::Metric;
use baton_tls::Protocol as Spoken;
use baton_upstream::TunnelEnd;

use super::connection::ClientConnection;
use super::http1::Http1Driver;
use super::http2::Http2Driver;
use super::{Need, Protocol, Session};
use crate::context::Context;
use crate::departures::Departure;
use crate::send_queue::SendQueue;
use crate::transport::Transport;

impl Session {
    /// The version of a passport with which another process can go on with the client; `None`: none can now. Every request of
    /// which all has come is answered, but for a tunnel, whose end the gateway has to give away.
    pub fn passport_version(&self) -> Option<u32> {
        let version = self.connection.passport_version()?;
        match &self.protocol {
            Protocol::Http1(http1) => http1.passport_version(&self.connection).map(|own| own.max(version)),
            Protocol::Http2(http2) => {
                (self.connection.is_open() && self.connection.send_queue.is_empty() && http2.is_movable())
                    .then_some(2)
            }
        }
    }

    /// Gives the connection to another process, with the origin's end of its tunnel if it is one. It stays if that takes none
    /// now: its next step shows what it needs.
    pub fn depart(&mut self, tunnel: Option<TunnelEnd>, ctx: &mut Context) -> Need {
        let listener =
            ctx.departures.as_ref().and_then(|one| one.address_of(self.connection.listener)).cloned();
        let Some(listener) = listener else {
            self.connection.has_to_stay = true;
            return Need::Turn;
        };
        let passport = self.passport(listener, tunnel.as_ref(), ctx);
        let socket = self.connection.transport.socket();
        let mut descriptors = vec![socket.as_fd()];
        descriptors.extend(self.connection.send_queue.descriptors());
        descriptors.extend(tunnel.as_ref().map(|end| end.socket.as_fd()));
        let now_ms = ctx.clock.now_ms();
        if let (Some(_), Some(agent)) = (passport.flow, &ctx.agent_link) {
            // What this process says of the flow comes before what the other one will.
            agent.flush(now_ms);
        }
        let Some(departures) = &mut ctx.departures else { return Need::Turn };
        match departures.send(&passport, &descriptors, now_ms) {
            Departure::Done => {
                if let Protocol::Http1(http1) = &self.protocol {
                    http1.note_left(ctx);
                }
                self.connection.transport.handle_left();
                self.connection.transport.leave_flow();
                self.connection.finish(ctx)
            }
            Departure::Later => Need::Turn,
            Departure::Never => {
                self.connection.has_to_stay = true;
                Need::Turn
            }
        }
    }

    /// Gives a connection that [may go back](Self::may_go_back) to its front-end, with its next step. It stays if the handoff
    /// agent takes none now.
    pub fn go_back(&mut self) {
        if let Protocol::Http1(http1) = &mut self.protocol {
            http1.go_back();
        }
    }

    /// All that another process needs to know.
    pub(super) fn passport(&self, listener: Address, tunnel: Option<&TunnelEnd>, ctx: &Context) -> Passport {
        let mut passport = Passport {
            listener,
            peer: self.connection.transport.peer(),
            requests: 0,
            written: self.connection.written(),
            was_passed: self.connection.transport.was_passed(),
            flow: self.connection.transport.flow(),
            stay: false,
            left_ms: None,
            unread: self.connection.inbox.clone(),
            begins_with_tls: false,
            parts: Vec::new(),
        };
        self.connection.transport.describe(&mut passport);
        match &self.protocol {
            Protocol::Http1(http1) => http1.describe(&mut passport, tunnel, &self.connection, ctx),
            Protocol::Http2(http2) => http2.describe(&mut passport, ctx),
        }
        passport
    }

    /// A client that another process has served until now; it connected to the listener with this id. `is_from_agent`: it comes
    /// from another host, with a request. `None`: it is not what its passport says, or not what this listener serves any more.
    pub fn arrive(
        socket: OwnedFd,
        files: Vec<OwnedFd>,
        passport: Passport,
        listener: usize,
        is_from_agent: bool,
        ctx: &mut Context,
    ) -> Option<Self> {
        let transport = Transport::arrived(socket, &passport, is_from_agent, ctx.plan.tls(listener))?;
        Self::resume(transport, files, passport, listener, ctx)
    }

    pub(super) fn resume(
        transport: Transport,
        files: Vec<OwnedFd>,
        mut passport: Passport,
        listener: usize,
        ctx: &mut Context,
    ) -> Option<Self> {
        let http2 = match passport.part(PartKind::Http2) {
            Some(_) => Some(Box::new(Http2Driver::resumed(&passport, ctx)?)),
            None => None,
        };
        // In clear the client decides.
        let agreed = transport.tls().map(|facts| facts.protocol == Spoken::Http2);
        if agreed.is_some_and(|is_http2| is_http2 != http2.is_some()) {
            return None;
        }
        if http2.is_some() && !transport.fits(&SendQueue::default()) {
            return None;
        }
        let mut connection = ClientConnection::arrived(transport, listener, ctx);
        connection.inbox = std::mem::take(&mut passport.unread);
        connection.retry_inbox();
        let protocol = match http2 {
            Some(http2) => Protocol::Http2(http2),
            None => match Http1Driver::resumed(passport, files, &mut connection, ctx) {
                Some(http1) => Protocol::Http1(http1),
                None => {
                    connection.transport.handle_left();
                    connection.transport.leave_flow();
                    connection.finish(ctx);
                    return None;
                }
            },
        };
        Some(Self { connection, protocol })
    }

    /// The session as another process would go on with it.
    pub fn moved(self, ctx: &mut Context) -> Self {
        let passport = self.passport(Address::Unix("/run/listener".into()), None, ctx);
        let Some(message) = passport.to_message() else { return self };
        let files = self.connection.send_queue.descriptors();
        let files = files.into_iter().map(|file| file.try_clone_to_owned().expect("a descriptor")).collect();
        let passport = Passport::from_message(&message).expect("a passport");
        let ClientConnection { mut transport, listener, .. } = self.connection;
        transport.handle_left();
        ctx.tally.subtract(Metric::ConnectionsOpen, 1);
        let transport = transport.moved(&passport).expect("a transport");
        Self::resume(transport, files, passport, listener, ctx).expect("what was packed")
    }
}
