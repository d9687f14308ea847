//! The transport `passfd`: the application answers on the client's own socket.
//!
//! The socket goes with the request's first byte. From then on the server does not touch it until the application reports
//! its answer, gives the rest back, or answers through its connection, which means that it never used the socket. If the
//! application is silent for too long, the server looks at the client: while the client acknowledges bytes, it is being
//! answered. If the application is gone, the kernel tells whether it has written anything. If not, the server can still
//! answer, but closes the connection afterwards, because a child of the process may still hold the socket.

use std::sync::Arc;

use crate::{ClientSocket, SocketPass};
use baton_fcgi::offer::{Bodies, Client, Offer, Transport};

/// A client's socket that an application may use.
#[derive(Debug)]
pub(crate) struct PassedSocket {
    client: Arc<ClientSocket>,
    /// Bytes that the client had acknowledged at the last look.
    acknowledged: Option<u64>,
    /// Consecutive looks without progress.
    looks_without_progress: u32,
}

impl PassedSocket {
    /// Appends an offer of the socket to a block of parameters.
    pub(crate) fn offer(pass: &SocketPass, patience_ms: u32, bodies: Bodies, block: &mut Vec<u8>) -> Self {
        let SocketPass { minor, keep, head, holds, .. } = *pass;
        let transport = Transport::PassFd(Client { minor, keep, head });
        let fds = 1 + bodies.fds();
        Offer { transport, fds, bodies, patience_ms, holds, fields: &pass.fields }.push(block);
        let client = Arc::clone(&pass.client);
        client.note_passed();
        Self { client, acknowledged: None, looks_without_progress: 0 }
    }

    /// The socket whose descriptor goes with the offer.
    pub(crate) fn client(&self) -> Arc<ClientSocket> {
        Arc::clone(&self.client)
    }

    /// Looks at the client, [`LOOKS`] times within the timeout. Returns whether there was no progress for the whole timeout.
    pub(crate) fn is_stuck(&mut self) -> bool {
        let acknowledged = self.client.bytes_acknowledged();
        let progress = self.acknowledged.is_some() && acknowledged != self.acknowledged;
        self.acknowledged = acknowledged;
        self.looks_without_progress = if progress { 0 } else { self.looks_without_progress + 1 };
        self.looks_without_progress >= LOOKS
    }

    /// Whether the application is known to have written nothing to the client.
    pub(crate) fn is_untouched(&self) -> bool {
        self.client.is_untouched()
    }

    /// Resets the client's connection for all holders of the socket. An orderly end could make a partial response look
    /// complete.
    pub(crate) fn cut(&self) {
        self.client.reset();
    }
}

/// How often to look at a client within the timeout.
pub(crate) const LOOKS: u32 = 4;
