//! The transport `passfd`: the application answers on the client's own socket.
//!
//! The socket goes with the request's first byte. From then on the server does not touch it, until the application says
//! that it has answered, hands the rest back, or begins to answer in the ordinary way, which means that it never used
//! the socket. If it says nothing for too long, the client decides: as long as it acknowledges bytes, it is being
//! answered. If it is gone, the kernel tells whether it has written anything: if not, there is still an answer to be given,
//! the last one of the connection, since a process that is not gone as a whole may have the socket still.

use std::sync::Arc;

use crate::{ClientSocket, HandOver};
use baton_fcgi::offer::{Client, Offer, Transport};

/// A client's socket that an application may use.
#[derive(Debug)]
pub(crate) struct HandedOver {
    client: Arc<ClientSocket>,
    /// Bytes that the client had acknowledged at the last look.
    acknowledged: Option<u64>,
    /// Looks in a row at which that was the same.
    looks_without_progress: u32,
}

impl HandedOver {
    /// Offers the socket: appends the offer to a block of parameters.
    pub(crate) fn offer(handover: &HandOver, patience_ms: u32, block: &mut Vec<u8>) -> Self {
        let HandOver { minor, keep, head, .. } = *handover;
        let transport = Transport::PassFd(Client { minor, keep, head });
        Offer { transport, fds: 1, patience_ms, fields: &handover.fields }.push(block);
        let client = Arc::clone(&handover.client);
        client.note_passed();
        Self { client, acknowledged: None, looks_without_progress: 0 }
    }

    /// The socket whose descriptor goes with the offer.
    pub(crate) fn client(&self) -> Arc<ClientSocket> {
        Arc::clone(&self.client)
    }

    /// Looks at the client, [`LOOKS`] times in the time allowed. Whether nothing has happened for all of that time.
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

    /// Ends the client's connection for everyone who has the socket. Nothing that looks complete must come out of it,
    /// and an orderly end could be all that was missing.
    pub(crate) fn cut(&self) {
        self.client.reset();
    }
}

/// How often a client is looked at in the time in which something has to happen.
pub(crate) const LOOKS: u32 = 4;
