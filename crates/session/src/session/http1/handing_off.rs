//! Connections that go to another host with a request: from a front-end to a node, and back.
//!
//! The request travels as the bytes in which it came, so the other host begins anew with it, and no state of a parser has to move.

use std::sync::Arc;

use baton_passport::{Address, Passport, UNREAD_BYTES_MAX};
use baton_telemetry::log::Outcome;
use baton_upstream::Chosen;

use super::{ClientConnection, Http1Driver, Need};
use crate::context::Context;

impl Http1Driver {
    /// Hands the connection over to the node that was chosen, with the request, if that is its way. False: it stays, and the
    /// request is to be relayed.
    pub(super) fn hand_off(
        &mut self,
        at: usize,
        chosen: &Chosen,
        connection: &mut ClientConnection,
        ctx: &mut Context,
    ) -> bool {
        let begun_ns = ctx.clock.exact_ns();
        let (Some(node), Some(agent)) = (chosen.node(), ctx.agent_link.clone()) else { return false };
        let is_alone = self.exchanges.len() == 1
            && !self.protocol.is_lent()
            && !self.protocol.has_body_ahead()
            && connection.is_open()
            && !connection.has_output()
            && connection.transport.may_be_handed_off();
        let text = is_alone.then(|| self.exchanges[at].exchange.text(chosen.body())).flatten();
        let Some(text) = text else { return false };
        let unread = [&text[..], &connection.inbox].concat();
        let Some(passport) = passport(self.protocol.requests() - 1, unread, connection) else { return false };
        if !agent.hand_off(node, passport, connection.transport.socket()) {
            return false;
        }
        chosen.note_handed_off(ctx.clock.exact_ns() - begun_ns);
        let record = &mut self.exchanges[at].exchange.record;
        record.note_trail(Arc::clone(chosen.application()), chosen.trail());
        self.leave(Outcome::HandedOff, connection, ctx);
        true
    }

    /// Whether a request on a connection that a front-end has handed over is to go back there: it is not answered from memory. Then
    /// it is as if it had not been read.
    pub(super) fn is_for_front_end(&mut self, connection: &ClientConnection, ctx: &Context) -> bool {
        if !connection.transport.is_further_request()
            || !ctx.plan.returns_connections()
            || ctx.agent_link.is_none()
        {
            return false;
        }
        let is_alone = self.exchanges.len() == 1 && !connection.has_output() && connection.is_open();
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
    pub(super) fn give_back(&mut self, connection: &mut ClientConnection, ctx: &mut Context) -> Option<Need> {
        connection.retry_inbox();
        self.keeps_next = connection.is_inbox_untried;
        let (agent, flow) = (ctx.agent_link.clone()?, connection.transport.flow()?);
        let passport = passport(self.protocol.requests(), connection.inbox.clone(), connection)?;
        let socket = connection.transport.socket();
        if !connection.transport.is_of_front_end()
            || !agent.give_back(flow, passport, socket, ctx.clock.now_ms())
        {
            return None;
        }
        connection.transport.leave_flow();
        // The front-end makes a request of it.
        connection.inbox.clear();
        self.leave(Outcome::HandedOff, connection, ctx);
        Some(Need::Finished)
    }

    /// Another host goes on with the connection.
    fn leave(&mut self, outcome: Outcome, connection: &mut ClientConnection, ctx: &mut Context) {
        connection.transport.socket().note_left();
        connection.inbox = Vec::new();
        self.exchanges.log_all(outcome, connection, ctx);
        connection.finish(ctx);
    }
}

/// What another host has to know of the connection. `None`: there is too much unread, or the address is not known.
fn passport(requests: u64, unread: Vec<u8>, connection: &ClientConnection) -> Option<Passport> {
    (unread.len() <= UNREAD_BYTES_MAX).then_some(())?;
    Some(Passport {
        // The address itself, not what the listener is bound to: the other host has it, too.
        listener: Address::Tcp(connection.transport.local()?),
        peer: connection.transport.peer(),
        requests,
        written: connection.written(),
        was_passed: false,
        flow: None,
        stay: false,
        left_ms: None,
        begins_with_tls: false,
        parts: Vec::new(),
        unread,
    })
}
