//! The body of a request that its application is given while it arrives: what is left of it in the client's socket.
//!
//! ```text
//!   client ──► socket ──── no more than is left of the body ───► one read in memory ──► application
//! ```
//!
//! The session that gave the request away does not read meanwhile. The client is read only when the application has
//! taken what was read before, so that whoever is slower sets the pace. What comes behind the body stays where it is.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use baton_buf::Slice;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use crate::connections::ConnectionId;
use crate::input::Input;
use crate::{Admission, ClientSocket};

/// The rest of a request's body, of which the client has sent the beginning.
#[derive(Debug)]
pub struct Arriving {
    client: Arc<ClientSocket>,
    left: u64,
    timeout_ms: u64,
    /// Nothing of the rest has been read: the request can be repeated as a whole.
    untouched: bool,
    watch: Option<Watch>,
    _admission: Admission,
}

/// What came of a look at the client's socket.
#[derive(Debug)]
pub(crate) enum Arrival {
    Part(Slice),
    NotYet,
    /// The client will send no more, but owes some.
    Gone,
}

/// A client's socket in the loop's interest set, under a number of its own: the session has put it there, too.
#[derive(Debug)]
struct Watch {
    epoll: Arc<OwnedFd>,
    client: OwnedFd,
    /// Which connection is told.
    connection: ConnectionId,
}

impl Arriving {
    /// `left` bytes, at least one, are still to be read from the client, which may be silent for `timeout_ms`.
    pub fn new(client: Arc<ClientSocket>, left: u64, timeout_ms: u64, admission: Admission) -> Self {
        debug_assert!(left > 0, "a body that is complete is not arriving");
        Self { client, left, timeout_ms, untouched: true, watch: None, _admission: admission }
    }

    /// Bytes that have not been read from the client.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Whether nothing of it has been read.
    pub(crate) fn is_untouched(&self) -> bool {
        self.untouched
    }

    /// For how long the client may be silent.
    pub(crate) fn timeout_ms(&self) -> u64 {
        self.timeout_ms
    }

    /// Reads what the client has sent of it.
    pub(crate) fn read(&mut self, input: &mut Input) -> Arrival {
        let received = loop {
            match input.read_at_most(&self.client, self.left) {
                Err(Errno::INTR) => {}
                other => break other,
            }
        };
        match received {
            Ok(received) if received.bytes().is_empty() => Arrival::Gone,
            Ok(received) => {
                let len = received.bytes().len();
                self.left -= len as u64;
                self.untouched = false;
                Arrival::Part(received.slice(0..len))
            }
            Err(Errno::AGAIN) => Arrival::NotYet,
            Err(_) => Arrival::Gone,
        }
    }

    /// Has the loop tell the connection when there is more.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`, `ENOSPC`.
    pub(crate) fn watch(&mut self, epoll: &Arc<OwnedFd>, id: ConnectionId) -> Result<(), Errno> {
        if self.watch.as_ref().is_none_or(|watch| watch.connection != id) {
            // The request may have begun on a connection that turned out to be closed.
            self.watch = None;
            let client = rustix::io::fcntl_dupfd_cloexec(&self.client, 0)?;
            let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
            epoll::add(epoll, &client, EventData::new_u64(id.to_client_data()), flags)?;
            self.watch = Some(Watch { epoll: Arc::clone(epoll), client, connection: id });
        }
        Ok(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Closing a duplicate takes nothing out of the interest set.
        let _ = epoll::delete(&self.epoll, &self.client);
    }
}
