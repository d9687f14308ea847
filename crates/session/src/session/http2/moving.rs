//! HTTP/2 on a connection that another process goes on with.

use baton_http::h2;
use baton_passport::parcel::{Packer, Unpacker};
use baton_passport::{Part, PartKind, Passport};

use super::Http2Driver;
use crate::context::Context;

impl Http2Driver {
    /// Whether another process can go on: the client waits for nothing, and nothing works for it.
    pub(in crate::session) fn is_movable(&self) -> bool {
        self.exchanges.is_empty()
            && self.ledger.is_empty()
            && self.abandoned.is_empty()
            && self.to_abandon.is_empty()
            && self.cold.is_empty()
            && !self.is_send_queue_blocked
            && self.connection.is_movable()
    }

    /// Puts what is known of the connection into its passport.
    pub(in crate::session) fn describe(&self, passport: &mut Passport, ctx: &Context) {
        let mut packer = Packer::default();
        let now_ms = ctx.clock.now_ms();
        self.connection.pack(&mut packer, now_ms);
        packer.number(now_ms.saturating_sub(self.idle_since_ms));
        packer.maybe_number(self.head_since_ms.map(|since_ms| now_ms.saturating_sub(since_ms)));
        passport.parts.push(Part { kind: PartKind::Http2, bytes: packer.finish() });
        passport.requests = self.requests;
    }

    /// HTTP/2 on a connection that another process has had until now. `None`: it is not what the passport says.
    pub(in crate::session) fn resumed(passport: &Passport, ctx: &Context) -> Option<Self> {
        let mut packed = Unpacker::new(passport.part(PartKind::Http2)?);
        let now_ms = ctx.clock.now_ms();
        let connection = h2::Connection::unpack(&mut packed, now_ms)?;
        let idle_since_ms = now_ms.saturating_sub(packed.number()?);
        let head_since_ms = packed.maybe_number()?.map(|age_ms| now_ms.saturating_sub(age_ms));
        if !packed.is_empty() {
            return None;
        }
        let requests = passport.requests;
        Some(Self {
            connection,
            requests,
            idle_since_ms,
            head_since_ms,
            // It has no memory that it could give back.
            is_resting: true,
            ..Self::new(ctx)
        })
    }
}
