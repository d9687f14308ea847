//! A session that leaves for another process, or comes from one. See [`baton_passport`].

use std::os::fd::OwnedFd;

use baton_passport::Passport;

use super::http1::Http1Driver;
use super::wire::Wire;
use super::{Need, Protocol, Session};
use crate::context::Context;
use crate::transport::Transport;

impl Session {
    /// Whether another process can go on with the client: it speaks HTTP/1 in clear, and every request of which all has come
    /// is answered.
    pub(crate) fn is_movable(&self) -> bool {
        let Protocol::Http1(http1) = &self.protocol else { return false };
        http1.is_between_requests()
            && self.wire.is_open()
            && self.wire.outlet.is_empty()
            && self.wire.transport.is_movable()
    }

    /// Gives the connection to another process. It stays if that takes none now.
    pub(crate) fn depart(&mut self, ctx: &mut Context) -> Need {
        let Protocol::Http1(http1) = &mut self.protocol else { return Need::Readable };
        let now_ms = ctx.clock.now_ms();
        let Some(departures) = &mut ctx.departures else { return Need::Readable };
        let Some(listener) = departures.address_of(self.wire.listener).cloned() else {
            return Need::Readable;
        };
        let socket = self.wire.transport.socket();
        let passport = Passport {
            listener,
            peer: self.wire.transport.peer(),
            requests: http1.requests(),
            written: self.wire.written(),
            was_passed: socket.was_passed(),
            flow: self.wire.transport.flow(),
            stay: false,
            unread: http1.unread().to_vec(),
        };
        if !departures.send(&passport, &**socket, now_ms) {
            return Need::Readable;
        }
        socket.note_left();
        self.wire.transport.leave_flow();
        self.wire.finish(ctx)
    }

    /// A client that another process has served until now; it connected to the listener with this id. `is_from_mover`: it comes
    /// from another host, with a request.
    pub(crate) fn arrive(
        socket: OwnedFd,
        passport: Passport,
        listener: usize,
        is_from_mover: bool,
        ctx: &mut Context,
    ) -> Self {
        let transport = Transport::arrived(socket, &passport, is_from_mover);
        let mut wire = Wire::arrived(transport, listener, ctx);
        let protocol = Protocol::Http1(Http1Driver::resumed(passport, &mut wire, ctx));
        Self { wire, protocol }
    }
}
