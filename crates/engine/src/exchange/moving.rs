//! A request whose response is being sent, for another process that sends the rest and writes its line into the log.

use baton_http::Status;
use baton_parcel::{Packer, Unpacker};

use super::record::Record;
use super::{Exchange, State};
use crate::context::Context;
use crate::log::{Outcome, RequestText};
use crate::protocol::StreamId;

impl Exchange {
    /// Whether another process can end it: all of the response is in the outlet, and it was made here.
    pub(crate) fn is_movable(&self) -> bool {
        self.is_answered() && self.record.is_movable()
    }

    /// Packs what the log will say of it.
    pub(crate) fn pack(&self, packer: &mut Packer, ctx: &Context) {
        self.record.pack(packer, ctx);
    }

    /// The exchange that another process has packed. `None`: it has packed something else.
    pub(crate) fn unpack(packed: &mut Unpacker<'_>, stream: StreamId, ctx: &Context) -> Option<Self> {
        let record = Record::unpack(packed, ctx)?;
        Some(Self { stream, record, state: State::Answered, redirects: 0, protocol: None })
    }
}

impl Record {
    fn is_movable(&self) -> bool {
        let is_plain = self.cache.is_none() && self.origin.is_none() && self.visitor.is_none();
        self.is_closed && !self.is_end_queued && is_plain
    }

    fn pack(&self, packer: &mut Packer, ctx: &Context) {
        packer.flag(self.text.is_some());
        if let Some(text) = &self.text {
            text.pack(packer);
        }
        let site = ctx.plan.sites().get(self.site).map_or("", |site| &site.name);
        packer
            .bytes(site.as_bytes())
            .number(ctx.clock.now_ms().saturating_sub(self.started_ms))
            .number(u64::from(self.status.map_or(0, Status::code)))
            .bytes(self.outcome.word().as_bytes())
            .number(self.queued)
            .number(self.head_queued)
            .number(self.body_sent);
    }

    fn unpack(packed: &mut Unpacker<'_>, ctx: &Context) -> Option<Self> {
        let text = if packed.flag()? { Some(RequestText::unpack(packed)?) } else { None };
        let site = packed.text()?;
        let age_ms = packed.number()?;
        let mut record = Self::new(ctx.clock.now_ms().saturating_sub(age_ms));
        record.text = text;
        // A site that the new configuration lacks has no name in the log.
        record.site = ctx.plan.sites().iter().position(|one| *one.name == *site).unwrap_or(usize::MAX);
        let code = u16::try_from(packed.number()?).ok()?;
        record.status = (100..1000).contains(&code).then(|| Status::new(code));
        record.outcome = Outcome::of_word(packed.text()?)?;
        record.queued = packed.number()?;
        record.head_queued = packed.number().filter(|of_head| *of_head <= record.queued)?;
        record.body_sent = packed.number()?;
        record.is_closed = true;
        Some(record)
    }
}
