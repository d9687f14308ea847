//! Connections that go to another host with a request: from a front-end to a node, and back.
//!
//! The request travels as the bytes in which it came, so the other host begins anew with it, and no state of a parser has to move.

use std::sync::Arc;

use baton_passport::{Address, Passport, UNREAD_BYTES_MAX};
use baton_telemetry::log::Outcome;
use baton_upstream::Chosen;

use super::{Http1Driver, Need, Wire};
use crate::context::Context;

impl Http1Driver {
    /// Hands the connection over to the node that was chosen, with the request, if that is its way. False: it stays, and the
    /// request is to be relayed.
    pub(super) fn hand_off(
        &mut self,
        at: usize,
        chosen: &Chosen,
        wire: &mut Wire,
        ctx: &mut Context,
    ) -> bool {
        let (Some(node), Some(mover)) = (chosen.node(), ctx.mover.clone()) else { return false };
        let is_alone = self.exchanges.len() == 1
            && !self.protocol.is_lent()
            && !self.protocol.has_body_ahead()
            && wire.is_open()
            && !wire.has_output()
            && wire.transport.may_be_handed_off();
        let text = is_alone.then(|| self.exchanges[at].exchange.text(chosen.body())).flatten();
        let Some(text) = text else { return false };
        let unread = [&text[..], &wire.inbox].concat();
        let Some(passport) = passport(self.protocol.requests() - 1, unread, wire) else { return false };
        if !mover.hand_off(node, passport, wire.transport.socket()) {
            return false;
        }
        chosen.note_handed_over();
        let record = &mut self.exchanges[at].exchange.record;
        record.note_trail(Arc::clone(chosen.application()), chosen.trail());
        self.leave(Outcome::HandedOver, wire, ctx);
        true
    }

    /// Whether a request on a connection that a front-end has handed over is to go back there: it is not answered from memory. Then
    /// it is as if it had not been read.
    pub(super) fn is_for_front_end(&mut self, wire: &Wire, ctx: &Context) -> bool {
        let is_later = wire.transport.flow().is_some() && !wire.transport.has_counted_request();
        if !is_later || !ctx.plan.returns_connections() || ctx.mover.is_none() {
            return false;
        }
        let is_alone = self.exchanges.len() == 1 && !wire.has_output() && wire.is_open();
        if std::mem::take(&mut self.keeps_next) || !is_alone || self.waiting_request().is_none() {
            return false;
        }
        self.exchanges.forget();
        self.protocol.take_back();
        self.gives_back = true;
        true
    }

    /// The connection, on which nothing is under way, goes back to the front-end, too.
    pub(in crate::session) fn go_back(&mut self) {
        self.gives_back = true;
    }

    /// Gives the connection back to the front-end, with the request in the inbox if there is one. `None`: it stays, and answers
    /// that itself.
    pub(super) fn give_back(&mut self, wire: &mut Wire, ctx: &mut Context) -> Option<Need> {
        wire.retry_inbox();
        self.keeps_next = wire.is_inbox_untried;
        let (mover, flow) = (ctx.mover.clone()?, wire.transport.flow()?);
        let passport = passport(self.protocol.requests(), wire.inbox.clone(), wire)?;
        let socket = wire.transport.socket();
        if !wire.transport.is_of_front_end() || !mover.give_back(flow, passport, socket, ctx.clock.now_ms()) {
            return None;
        }
        wire.transport.leave_flow();
        // The front-end makes a request of it.
        wire.inbox.clear();
        self.leave(Outcome::HandedOver, wire, ctx);
        Some(Need::Finished)
    }

    /// Another host goes on with the connection.
    fn leave(&mut self, outcome: Outcome, wire: &mut Wire, ctx: &mut Context) {
        wire.transport.socket().note_left();
        wire.inbox = Vec::new();
        self.exchanges.log_all(outcome, wire, ctx);
        wire.finish(ctx);
    }
}

/// What another host has to know of the connection. `None`: there is too much unread, or the address is not known.
fn passport(requests: u64, unread: Vec<u8>, wire: &Wire) -> Option<Passport> {
    (unread.len() <= UNREAD_BYTES_MAX).then_some(())?;
    Some(Passport {
        // The address itself, not what the listener is bound to: the other host has it, too.
        listener: Address::Tcp(wire.transport.local()?),
        peer: wire.transport.peer(),
        requests,
        written: wire.written(),
        was_passed: false,
        flow: None,
        stay: false,
        left_ms: None,
        begins_with_tls: false,
        parts: Vec::new(),
        unread,
    })
}
