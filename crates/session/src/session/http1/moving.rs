//! HTTP/1 on a connection that another process goes on with: between two requests, while a response is being sent whose rest
//! is ranges of files and a few bytes, or as a tunnel.

use std::os::fd::OwnedFd;

use baton_passport::parcel::{Packer, Unpacker};
use baton_passport::{Part, PartKind, Passport};
use baton_upstream::TunnelEnd;

use super::waiting::Waiting;
use super::{ClientConnection, ConnectionState, Http1Driver};
use crate::context::Context;
use crate::exchange::Exchange;
use crate::protocol::{Http1, LastClose};
use crate::send_queue::SendQueue;
use crate::session::exchanges::Underway;

impl Http1Driver {
    /// The version of a passport with which another process can go on; `None`: none can now.
    pub(in crate::session) fn passport_version(&self, connection: &ClientConnection) -> Option<u32> {
        if self.is_http2 || self.has_ended_half || self.protocol.has_body_ahead() {
            return None;
        }
        if self.exchanges.is_empty() && connection.send_queue.is_empty() && connection.is_open() {
            return Some(1);
        }
        // A connection of another host moves between requests only: its front-end counts what is under way.
        if connection.transport.flow().is_some() {
            return None;
        }
        let is_sending = self.waiting != Waiting::Job
            && self.exchanges.len() == 1
            && self.exchanges.iter().all(|entry| entry.exchange.is_movable())
            && self.protocol.is_movable()
            && matches!(
                connection.state,
                ConnectionState::Open | ConnectionState::Ending(LastClose::Orderly | LastClose::Linger)
            )
            && !connection.send_queue.is_empty()
            && connection.send_queue.is_movable();
        (is_sending || self.is_movable_tunnel(connection)).then_some(2)
    }

    /// Whether another process can go on with a tunnel, if the gateway can give its end away: both halves are open.
    fn is_movable_tunnel(&self, connection: &ClientConnection) -> bool {
        self.exchanges.len() == 1
            && self.exchanges.iter().all(|entry| entry.exchange.is_movable_tunnel())
            && self.protocol.is_tunnel()
            && self.protocol.is_movable()
            && connection.is_open()
            && connection.send_queue.is_movable()
            && connection.send_queue.descriptors().is_empty()
    }

    /// Whether the connection is to leave instead of waiting for a job.
    pub(super) fn leaves_before_job(&self, connection: &ClientConnection, ctx: &Context) -> bool {
        let version = || self.passport_version(connection).zip(connection.passport_version());
        ctx.is_of_loop
            && ctx.departures.is_some()
            && ctx.may_depart(version().map(|(own, of_wire)| own.max(of_wire)))
    }

    /// Puts what is known of the connection into its passport.
    pub(in crate::session) fn describe(
        &self,
        passport: &mut Passport,
        tunnel: Option<&TunnelEnd>,
        connection: &ClientConnection,
        ctx: &Context,
    ) {
        passport.requests = self.protocol.requests();
        let Some(Underway { exchange, .. }) = self.exchanges.iter().next() else {
            passport.left_ms = Some(connection.deadline_ms.saturating_sub(ctx.clock.now_ms()));
            return;
        };
        let mut packer = Packer::default();
        connection.send_queue.pack(&mut packer, connection.transport.early_data());
        self.protocol.pack(&mut packer);
        if let Some(end) = tunnel {
            exchange.pack_tunnel(&mut packer, end, ctx);
            passport.parts.push(Part { kind: PartKind::Tunnel, bytes: packer.finish() });
            return;
        }
        exchange.pack(&mut packer, ctx);
        packer.small(match connection.state {
            ConnectionState::Ending(LastClose::Orderly) => ENDS,
            ConnectionState::Ending(_) => LINGERS,
            _ => GOES_ON,
        });
        passport.parts.push(Part { kind: PartKind::Response, bytes: packer.finish() });
    }

    /// Another process goes on with the connection.
    pub(in crate::session) fn note_left(&self, ctx: &mut Context) {
        for entry in self.exchanges.iter() {
            entry.exchange.record.leave(&mut ctx.tally);
        }
    }

    /// HTTP/1 on a connection that another process has had until now, with the files of which it was sending, or with the
    /// connection to the origin of a tunnel. `None`: it is not what the passport says.
    pub(in crate::session) fn resumed(
        passport: Passport,
        mut files: Vec<OwnedFd>,
        connection: &mut ClientConnection,
        ctx: &Context,
    ) -> Option<Self> {
        let mut protocol = Http1::resumed(passport.requests);
        let mut exchange = None;
        let is_tunnel = passport.part(PartKind::Tunnel).is_some();
        let part = passport.part(PartKind::Tunnel).or_else(|| passport.part(PartKind::Response));
        if let Some(packed) = part {
            let mut packed = Unpacker::new(packed);
            let socket = if is_tunnel { Some(files.pop()?) } else { None };
            connection.send_queue = SendQueue::unpack(&mut packed, files)?;
            protocol.resume_response(&mut packed)?;
            exchange = Some(match socket {
                Some(socket) => {
                    protocol.open_tunnel();
                    Exchange::unpack_tunnel(&mut packed, socket, protocol.stream(), ctx)?
                }
                None => {
                    let exchange = Exchange::unpack(&mut packed, protocol.stream(), ctx)?;
                    connection.state = match packed.small()? {
                        GOES_ON => ConnectionState::Open,
                        ENDS => ConnectionState::Ending(LastClose::Orderly),
                        LINGERS => ConnectionState::Ending(LastClose::Linger),
                        _ => return None,
                    };
                    exchange
                }
            });
            if !packed.is_empty() {
                return None;
            }
        }
        if !connection.transport.fits(&connection.send_queue) {
            return None;
        }
        let left_ms = passport.left_ms;
        let mut driver = Self { protocol, ..Self::new(connection, ctx) };
        match exchange {
            Some(exchange) => {
                driver.exchanges.push(exchange, ());
                driver.wait_for(Waiting::Send, connection, ctx);
            }
            None => {
                driver.wait_for_input(connection, ctx);
                let due_ms = left_ms.map_or(u64::MAX, |left_ms| ctx.clock.now_ms().saturating_add(left_ms));
                connection.deadline_ms = connection.deadline_ms.min(due_ms);
            }
        }
        Some(driver)
    }
}

/// What follows the response.
const GOES_ON: u8 = 0;
const ENDS: u8 = 1;
const LINGERS: u8 = 2;
