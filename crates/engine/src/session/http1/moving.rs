//! HTTP/1 on a connection that another process goes on with: between two requests, or while a response is being sent whose
//! rest is ranges of files and a few bytes.

use std::os::fd::OwnedFd;

use baton_parcel::{Packer, Unpacker};
use baton_passport::{Part, PartKind, Passport};

use super::waiting::Waiting;
use super::{Http1Driver, Wire, WireState};
use crate::context::Context;
use crate::exchange::Exchange;
use crate::outlet::Outlet;
use crate::protocol::{Http1, LastClose};

impl Http1Driver {
    /// The version of a passport with which another process can go on; `None`: none can now.
    pub(in crate::session) fn passport_version(&self, wire: &Wire) -> Option<u32> {
        if self.is_http2 || self.has_ended_half || self.protocol.has_body_ahead() {
            return None;
        }
        if self.exchanges.is_empty() && wire.outlet.is_empty() && wire.is_open() {
            return Some(1);
        }
        // A connection of another host moves between requests only: its front-end counts what is under way.
        if wire.transport.flow().is_some() {
            return None;
        }
        let is_sending = self.waiting != Waiting::Job
            && self.exchanges.len() == 1
            && self.exchanges.iter().all(Exchange::is_movable)
            && self.protocol.is_movable()
            && matches!(
                wire.state,
                WireState::Open | WireState::Ending(LastClose::Orderly | LastClose::Linger)
            )
            && !wire.outlet.is_empty()
            && wire.outlet.is_movable();
        is_sending.then_some(2)
    }

    /// Whether the connection is to leave instead of waiting for a job.
    pub(super) fn leaves_before_job(&self, wire: &Wire, ctx: &Context) -> bool {
        let version = || self.passport_version(wire).zip(wire.passport_version());
        ctx.is_of_loop
            && ctx.departures.is_some()
            && ctx.may_depart(version().map(|(own, of_wire)| own.max(of_wire)))
    }

    /// Puts what is known of the connection into its passport.
    pub(in crate::session) fn describe(&self, passport: &mut Passport, wire: &Wire, ctx: &Context) {
        passport.requests = self.protocol.requests();
        passport.unread.clone_from(&self.inbox);
        let Some(exchange) = self.exchanges.front() else {
            passport.left_ms = Some(wire.deadline_ms.saturating_sub(ctx.clock.now_ms()));
            return;
        };
        let mut packer = Packer::default();
        wire.outlet.pack(&mut packer, wire.transport.early_data());
        exchange.pack(&mut packer, ctx);
        self.protocol.pack(&mut packer);
        packer.small(match wire.state {
            WireState::Ending(LastClose::Orderly) => ENDS,
            WireState::Ending(_) => LINGERS,
            _ => GOES_ON,
        });
        passport.parts.push(Part { kind: PartKind::Response, bytes: packer.finish() });
    }

    /// HTTP/1 on a connection that another process has had until now, with the files of which it was sending. `None`: it is
    /// not what the passport says.
    pub(in crate::session) fn resumed(
        passport: Passport,
        files: Vec<OwnedFd>,
        wire: &mut Wire,
        ctx: &Context,
    ) -> Option<Self> {
        let mut protocol = Http1::resumed(passport.requests);
        let response = passport.part(PartKind::Response);
        let mut exchange = None;
        if let Some(packed) = response {
            let mut packed = Unpacker::new(packed);
            wire.outlet = Outlet::unpack(&mut packed, files)?;
            exchange = Some(Exchange::unpack(&mut packed, protocol.stream(), ctx)?);
            protocol.resume_response(&mut packed)?;
            wire.state = match packed.small()? {
                GOES_ON => WireState::Open,
                ENDS => WireState::Ending(LastClose::Orderly),
                LINGERS => WireState::Ending(LastClose::Linger),
                _ => return None,
            };
            if !packed.is_empty() {
                return None;
            }
        }
        if !wire.transport.fits(&wire.outlet) {
            return None;
        }
        let left_ms = passport.left_ms;
        let mut driver = Self {
            protocol,
            inbox_untried: !passport.unread.is_empty(),
            inbox: passport.unread,
            ..Self::new(wire, ctx)
        };
        match exchange {
            Some(exchange) => {
                driver.exchanges.push_back(exchange);
                driver.wait_for(Waiting::Send, wire, ctx);
            }
            None => {
                driver.wait_for_input(wire, ctx);
                let due_ms = left_ms.map_or(u64::MAX, |left_ms| ctx.clock.now_ms().saturating_add(left_ms));
                wire.deadline_ms = wire.deadline_ms.min(due_ms);
            }
        }
        Some(driver)
    }
}

/// What follows the response.
const GOES_ON: u8 = 0;
const ENDS: u8 = 1;
const LINGERS: u8 = 2;
