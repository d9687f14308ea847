//! A request whose response is being sent, or that has become a tunnel, for another process that goes on and writes its line
//! into the log.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use baton_http::Status;
use baton_passport::parcel::{Packer, Unpacker};
use baton_site::mark::Mark;
use baton_telemetry::log::{NotedRequest, Outcome};
use baton_upstream::{Trail, TunnelEnd, UNSENT_BYTES_MAX};

use super::env::Shown;
use super::record::Record;
use super::tunnel::Tunnel;
use super::{Exchange, State};
use crate::context::Context;
use crate::protocol::StreamId;

impl Exchange {
    /// Whether another process can end it: all of the response is in the send queue, and it was made here.
    pub(crate) fn is_movable(&self) -> bool {
        self.is_answered() && self.record.is_movable()
    }

    /// Packs what the log will say of it.
    pub(crate) fn pack(&self, packer: &mut Packer, ctx: &Context) {
        self.record.pack(packer, ctx);
    }

    /// The exchange that another process has packed. `None`: it has packed something else.
    pub(crate) fn unpack(packed: &mut Unpacker<'_>, stream: StreamId, ctx: &Context) -> Option<Self> {
        let mut record = Record::unpack(packed, ctx)?;
        record.close();
        Some(Self { record, ..Self::new(stream, &ctx.clock) })
    }

    /// Whether it is a tunnel that another process can go on with, if the gateway can give its end away.
    pub(crate) fn is_movable_tunnel(&self) -> bool {
        matches!(&self.state, State::Tunnel(tunnel) if tunnel.is_with_gateway())
            && self.record.cache.is_none()
            && self.record.identity.is_none()
    }

    /// Packs a tunnel, with its origin's end.
    pub(crate) fn pack_tunnel(&self, packer: &mut Packer, end: &TunnelEnd, ctx: &Context) {
        let State::Tunnel(tunnel) = &self.state else { return };
        let shown = &tunnel.shown;
        self.record.pack(packer, ctx);
        packer
            .bytes(shown.origin.as_bytes())
            .bytes(shown.request.as_bytes())
            .bytes(end.application.name().as_bytes())
            .bytes(&end.unsent)
            .number(u64::from(end.trail.tries))
            .maybe_number(end.trail.connect_ms)
            .maybe_number(end.trail.head_ms);
    }

    /// The tunnel that another process has packed; `socket` leads to its origin. `None`: it has packed something else, or this
    /// server knows no such origin.
    pub(crate) fn unpack_tunnel(
        packed: &mut Unpacker<'_>,
        socket: OwnedFd,
        stream: StreamId,
        ctx: &Context,
    ) -> Option<Self> {
        let record = Record::unpack(packed, ctx)?;
        let shown = Shown { origin: packed.text()?.into(), request: packed.text()?.into() };
        let application = Arc::clone(ctx.plan.origin(packed.text()?)?);
        let unsent = packed.bytes().filter(|unsent| unsent.len() as u64 <= UNSENT_BYTES_MAX)?.to_vec();
        let trail = Trail {
            tries: packed.number32()?,
            connect_ms: packed.maybe_number()?,
            head_ms: packed.maybe_number()?,
            choice: None,
        };
        let end = TunnelEnd { application, socket, unsent, trail };
        let state = State::Tunnel(Box::new(Tunnel::arrived(end, shown)));
        Some(Self { record, state, ..Self::new(stream, &ctx.clock) })
    }
}

impl Record {
    fn is_movable(&self) -> bool {
        let is_plain = self.cache.is_none() && self.origin.is_none() && self.identity.is_none();
        self.is_closed && !self.is_end_queued && is_plain
    }

    fn pack(&self, packer: &mut Packer, ctx: &Context) {
        let site = ctx.plan.sites().get(self.site).map_or("", |site| &site.name);
        packer.bytes(site.as_bytes()).flag(self.text.is_some());
        if let Some(text) = &self.text {
            text.pack(packer);
        }
        packer.flag(self.mark.is_some());
        if let Some(mark) = &self.mark {
            mark.pack(packer);
        }
        let first_byte_us = self.first_byte_us.map(|at_us| at_us.saturating_sub(self.started_us));
        packer
            .number(ctx.clock.now_us().saturating_sub(self.started_us))
            .maybe_number(first_byte_us.filter(|_| self.has_begun_to_leave))
            .maybe_number(self.upstream_us)
            .number(u64::from(self.status.map_or(0, Status::code)))
            .bytes(self.outcome.word().as_bytes())
            .number(self.queued)
            .number(self.head_queued)
            .number(self.body_sent);
    }

    fn unpack(packed: &mut Unpacker<'_>, ctx: &Context) -> Option<Self> {
        let site = packed.text()?;
        let site = ctx.plan.sites().iter().position(|one| *one.name == *site);
        let log = site.map(|site| &ctx.plan.sites()[site].log);
        let text = if packed.flag()? { Some(NotedRequest::unpack(packed, log)?) } else { None };
        let mark = if packed.flag()? { Some(Mark::unpack(packed)?) } else { None };
        let age_us = packed.number()?;
        let mut record = Self::new(ctx.clock.now_us().saturating_sub(age_us));
        (record.text, record.mark) = (text, mark.map(Arc::new));
        // A site that the new configuration lacks has no name in the log.
        record.site = site.unwrap_or(usize::MAX);
        record.row = site.and_then(|site| ctx.plan.sites()[site].figures);
        record.first_byte_us = packed.maybe_number()?.map(|us| record.started_us.saturating_add(us));
        record.has_begun_to_leave = record.first_byte_us.is_some();
        record.upstream_us = packed.maybe_number()?;
        let code = u16::try_from(packed.number()?).ok()?;
        record.status = (100..1000).contains(&code).then(|| Status::new(code));
        record.outcome = Outcome::of_word(packed.text()?)?;
        record.queued = packed.number()?;
        record.head_queued = packed.number().filter(|of_head| *of_head <= record.queued)?;
        record.body_sent = packed.number()?;
        Some(record)
    }
}
