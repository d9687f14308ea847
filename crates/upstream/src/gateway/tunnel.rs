//! Tunnels with which another process goes on: the connection to the origin changes hands, with the bytes that it has not
//! taken.
//!
//! A tunnel moves while little of it is here: nothing waits for the client, and both halves are open. Bytes on it mean
//! nothing to the gateway, so that their place in it is all that there is to know.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use baton_http::origin::RequestKind;

use super::Gateway;
use crate::channel::Channel;
use crate::codec::Codec;
use crate::connection::{Connection, OtherEnd};
use crate::connections::ConnectionId;
use crate::exchange::{Exchange, ExchangeState};
use crate::origins::AtOrigin;
use crate::trail::TrailSoFar;
use crate::{Application, BodyRest, FailureReason, Request, RequestId, Trail};

/// The origin's end of a tunnel, on its way from one process to another.
#[derive(Debug)]
pub struct TunnelEnd {
    /// The origin.
    pub application: Arc<Application>,
    /// The connection to it.
    pub socket: OwnedFd,
    /// What the client has sent and that connection has not taken: at most [`UNSENT_BYTES_MAX`].
    pub unsent: Vec<u8>,
    /// For the log.
    pub trail: Trail,
}

/// Most bytes for an origin that a tunnel takes along.
pub const UNSENT_BYTES_MAX: u64 = 16 << 10;

impl Gateway {
    /// The origin's end of a tunnel that can leave now: with a descriptor of its own, so that the tunnel goes on here until
    /// it is [abandoned](Self::abandon). `None`: it has to stay, for now or for good.
    pub fn tunnel_end(&mut self, request_id: RequestId) -> Option<TunnelEnd> {
        let exchange = self.exchanges.get(request_id)?;
        let ExchangeState::Assigned(id) = exchange.state else { return None };
        let request = exchange.request.as_ref().filter(|request| request.rest.is_some())?;
        // The session has taken all: nothing is in memory, in a file, or about to be said.
        if exchange.response.has_event() {
            return None;
        }
        let connection = self.connections.get_mut(id)?;
        Some(TunnelEnd {
            unsent: connection.unsent_of_tunnel(UNSENT_BYTES_MAX)?,
            socket: connection.channel.as_fd().try_clone_to_owned().ok()?,
            application: Arc::clone(&request.application),
            trail: exchange.trail.told(),
        })
    }

    /// Whether a request asks for a tunnel, and the pool has as many as it may have. Requests that the origin has already may
    /// exceed the bound: by `connections_max` at most.
    pub(super) fn lacks_tunnels(&self, index: usize, request_id: RequestId) -> bool {
        let request = self.exchanges.get(request_id).and_then(|exchange| exchange.request.as_ref());
        let asks = request
            .is_some_and(|request| matches!(request.asked, RequestKind::Upgrade | RequestKind::Tunnel));
        let client = request.and_then(|request| request.client);
        asks && self.pools.get(index).is_some_and(|pool| !pool.may_tunnel(client))
    }

    /// A connection has become a tunnel: one that waits for a connection may have another.
    pub(super) fn count_as_tunnel(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(request_id) = connection.serving().map(|serving| serving.request_id) else { return };
        let Some(exchange) = self.exchanges.get_mut(request_id) else { return };
        let Some(pool) = self.pools.get_mut(connection.pool) else { return };
        if !std::mem::replace(&mut connection.counts_as_tunnel, true) {
            let client = exchange.request.as_ref().and_then(|request| request.client);
            exchange.place = Some(pool.note_tunnel(client));
            if pool.waiting() > 0 {
                self.pools.note_released(connection.pool);
            }
        }
    }

    /// Goes on with a tunnel of another process. It is one more than the origin may have, if need be: it is open already.
    pub fn resume_tunnel(&mut self, request_id: RequestId, end: TunnelEnd, now_ms: u64) {
        let TunnelEnd { application, socket, unsent, trail } = end;
        let at_origin = AtOrigin::resume(&application.settings().record);
        let index = self.pool_of(&application);
        let memory = self.exchanges.spare_memory();
        let mut exchange = Exchange {
            at_origin: Some(at_origin),
            is_partly_gone: true,
            trail: TrailSoFar::resume(trail, now_ms),
            ..Exchange::new(
                Request::of_tunnel(Arc::clone(&application), BodyRest::of_origin(None)),
                index,
                memory,
                now_ms,
            )
        };
        exchange.response.resume_tunnel();
        let channel = Channel::new(socket, Vec::new(), None);
        let begun = (request_id, u64::MAX);
        let (codec, end) = (Codec::tunnel(), OtherEnd::REMOTE);
        let mut connection = Connection::new(application, channel, codec, (index, 0), end, begun);
        connection.resume_tunnel(request_id, unsent);
        let id = match self.connections.add(Box::new(connection), false) {
            Ok(id) => id,
            Err(error) => {
                self.exchanges.insert(request_id, exchange);
                return self.fail(request_id, FailureReason::NoConnection(error), false);
            }
        };
        if let Some(pool) = self.pools.get_mut(index) {
            pool.opened(id, false, now_ms);
        }
        exchange.state = ExchangeState::Assigned(id);
        self.exchanges.insert(request_id, exchange);
        self.count_as_tunnel(id);
        self.connections.extend_deadline(id, now_ms);
        if !self.connections.write(id) {
            return self.read(id, now_ms);
        }
        self.ask_for_body(id);
    }
}
