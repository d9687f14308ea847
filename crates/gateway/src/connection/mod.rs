//! One connection to an application.
//!
//! ```text
//!   Connecting ─► Serving ─► Idle ─► Serving ─► …          closed after any of them
//!                        └──► Ending (its process holds the client's socket and is being ended)
//! ```
//!
//! A connection writes one request at a time and reads its answer, over any transport. It knows neither the queue nor the
//! clock: it reports its progress, and the gateway decides.

mod reading;

use std::os::fd::OwnedFd;

use baton_buf::{Slice, Stop};
use baton_fcgi::record::MANAGEMENT_ID;
use baton_fcgi::request;
use baton_fcgi::response::ResponseReader;
use baton_process_table::Release;
use baton_sys::progress;
use rustix::io::Errno;
use rustix::net::RecvFlags;

pub(crate) use self::reading::ReadOutcome;

use crate::outgoing::{Descriptor, Outgoing};
use crate::passfd::HandedOver;
use crate::settings::Protocol;
use crate::shm::SharedRegion;
use crate::{FailureReason, Request, RequestId};

/// A connection to an application.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    /// Index of its pool, and of its lane in the pool.
    pub(crate) pool: usize,
    pub(crate) lane: usize,
    /// How to release its process when it is closed. `None`: the process has been released already.
    pub(crate) release: Option<Release>,
    pub(crate) state: ConnectionState,
    /// When it times out; `u64::MAX`: never.
    pub(crate) deadline_ms: u64,
    /// End of the client's grace period, in which the application waits; `u64::MAX`: there is none.
    pub(crate) grace_until_ms: u64,
    /// Whether the client was asked for more of the request's body.
    awaits_client: bool,
    /// Whether the socket is watched for room to write.
    pub(crate) watches_room: bool,
    /// Whether it is in the queue of connections to read without an event.
    pub(crate) is_requeued: bool,
    /// Whether the application is known to have accepted it.
    pub(crate) is_accepted: bool,
    /// Whether its first request is sent so that it shows when the application has accepted it.
    pub(crate) shows_acceptance: bool,
    /// Whether its pool counts it as one whose process has answered.
    pub(crate) is_counted: bool,
    /// Whether it is a Unix socket.
    pub(crate) is_local: bool,
    /// Whether the application at its other end may be passed clients' sockets.
    pub(crate) is_trusted: bool,

    transport: ActiveTransport,
    outgoing: Outgoing,
    reader: ResponseReader,
    region: Option<SharedRegion>,
    fcgi_id: u16,
    requests: u64,
    /// Whether it will be kept when the request has been answered.
    keeps: bool,
    /// Whether the socket has taken any of the request, and whether the application has sent anything since.
    has_written: bool,
    has_heard: bool,
    /// The application had not read the request when it closed the connection.
    was_left_unread: bool,
    /// The transport offered with the current request, and whether the application took it up.
    pub(crate) offered: OfferedTransport,
    pub(crate) took_offer_up: bool,
    /// The application has used the hand-over protocol on this connection.
    speaks_handover: bool,
    /// Whether there may be input, and whether the application has closed its end.
    readable: bool,
    hung_up: bool,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// It is being connected, for this request.
    Connecting { request_id: RequestId },
    /// The application is answering this request.
    Serving { request_id: RequestId },
    /// It is kept for the next request.
    Idle,
    /// The request has timed out. Its process holds the client's socket and is being ended.
    Ending { request_id: RequestId },
}

/// The transport of the current request's answer.
#[derive(Debug)]
enum ActiveTransport {
    Scgi,
    Plain,
    Shm,
    PassFd(HandedOver),
}

/// The transport offered with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfferedTransport {
    Nothing,
    Shm,
    PassFd,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd, pool: usize, lane: usize, request_id: RequestId) -> Self {
        Self {
            socket,
            pool,
            lane,
            release: Some(Release::Unsure),
            state: ConnectionState::Connecting { request_id },
            deadline_ms: u64::MAX,
            grace_until_ms: u64::MAX,
            awaits_client: false,
            watches_room: false,
            is_requeued: false,
            is_accepted: false,
            shows_acceptance: false,
            is_counted: false,
            is_local: true,
            is_trusted: false,
            transport: ActiveTransport::Plain,
            outgoing: Outgoing::default(),
            reader: ResponseReader::new(MANAGEMENT_ID),
            region: None,
            fcgi_id: 0,
            requests: 0,
            keeps: false,
            has_written: false,
            has_heard: false,
            was_left_unread: false,
            offered: OfferedTransport::Nothing,
            took_offer_up: false,
            speaks_handover: false,
            readable: false,
            hung_up: false,
        }
    }

    /// Whether it has served a request before the current one.
    pub(crate) fn was_used(&self) -> bool {
        self.requests > 1
    }

    /// Notes an event of epoll.
    pub(crate) fn handle_ready(&mut self, readable: bool, hung_up: bool) {
        self.readable |= readable || hung_up;
        self.hung_up |= hung_up;
    }

    /// Whether the application has closed its end, perhaps because its process has ended.
    pub(crate) fn has_hung_up(&self) -> bool {
        self.hung_up
    }

    /// Whether there may be input.
    pub(crate) fn is_readable(&self) -> bool {
        self.readable
    }

    /// Looks at an idle connection: whether unexpected input has come, or the application has closed it.
    pub(crate) fn has_input(&self) -> bool {
        let looked = rustix::net::recv(&self.socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        !matches!(looked, Err(Errno::AGAIN))
    }

    /// Queues a request without writing it. `patience_ms`: how long an application that writes to a stalled client shall
    /// wait. `block` is scratch memory.
    ///
    /// # Errors
    /// [`FailureReason::BadRequest`].
    pub(crate) fn begin(
        &mut self,
        request_id: RequestId,
        request: &Request,
        offered: OfferedTransport,
        keep: bool,
        patience_ms: u32,
        block: &mut Vec<u8>,
    ) -> Result<(), FailureReason> {
        let settings = request.application.settings();
        self.state = ConnectionState::Serving { request_id };
        self.release = Some(Release::Unsure);
        self.requests += 1;
        (self.has_written, self.has_heard) = (false, false);
        (self.offered, self.took_offer_up) = (offered, false);
        self.awaits_client = false;
        if settings.protocol == Protocol::Scgi {
            self.keeps = false;
            self.transport = ActiveTransport::Scgi;
            return self.outgoing.push_scgi(request).map_err(FailureReason::BadRequest);
        }
        self.keeps = keep && self.requests != settings.requests_max_per_connection;
        // Alternates, so that late records of the previous request are never taken for those of this one.
        self.fcgi_id = if self.fcgi_id == 1 { 2 } else { 1 };
        self.reader.begin(self.fcgi_id);
        block.clear();
        self.transport = ActiveTransport::Plain;
        let mut descriptor = None;
        match (offered, &request.handover) {
            (OfferedTransport::PassFd, Some(handover)) => {
                let handed = HandedOver::offer(handover, patience_ms, block);
                descriptor = Some(Descriptor::Client(handed.client()));
                self.transport = ActiveTransport::PassFd(handed);
            }
            (OfferedTransport::Shm, _) => {
                if self.region.is_none() {
                    // Without a region (no memory, no descriptors) the answer comes through the socket.
                    self.region = SharedRegion::create(settings.region_bytes).ok();
                }
                if let Some(region) = &mut self.region {
                    descriptor = region.offer(patience_ms, block).map(Descriptor::Region);
                    self.transport = ActiveTransport::Shm;
                }
            }
            _ => {}
        }
        let block = if block.is_empty() {
            &request.params
        } else {
            block.extend_from_slice(&request.params);
            &*block
        };
        let splits = self.shows_acceptance && self.requests == 1 && self.keeps;
        self.outgoing.push_fastcgi(self.fcgi_id, self.keeps, block, splits, request);
        if let Some(descriptor) = descriptor {
            self.outgoing.attach(descriptor);
        }
        Ok(())
    }

    /// Whether the application may not have accepted the connection yet. On a Unix socket the gateway sees whether the
    /// request has been read. Over TCP only an answer tells.
    pub(crate) fn is_unaccepted(&mut self) -> bool {
        if !self.is_accepted && self.is_local {
            let unread = progress::unread_by_peer(&self.socket);
            self.is_accepted = unread.is_ok_and(|unread| self.outgoing.is_begun(unread));
        }
        !self.is_accepted
    }

    /// Adds the next piece of a streamed body.
    pub(crate) fn push_body(&mut self, part: Slice, is_last: bool) {
        self.awaits_client = false;
        self.outgoing.push_more_body(part, is_last);
    }

    /// Returns the request if its client is to be asked for more of the body, once per piece.
    pub(crate) fn ask_for_body(&mut self) -> Option<RequestId> {
        let ConnectionState::Serving { request_id } = self.state else { return None };
        let is_wanted = self.awaits_body() && !self.has_to_write();
        (is_wanted && !std::mem::replace(&mut self.awaits_client, true)).then_some(request_id)
    }

    /// Whether it waits for the client, which was asked for more of the body.
    pub(crate) fn awaits_client(&self) -> bool {
        self.awaits_client
    }

    /// Whether the body is still incomplete.
    pub(crate) fn awaits_body(&self) -> bool {
        self.outgoing.is_open()
    }

    /// Writes until the socket is full. Returns whether everything was written.
    ///
    /// # Errors
    /// The connection is gone.
    pub(crate) fn write(&mut self) -> Result<bool, Stop> {
        let result = self.outgoing.flush(&self.socket);
        self.has_written |= self.outgoing.has_sent();
        result
    }

    /// Tells the application to give the client's socket back, if it has it.
    pub(crate) fn release(&mut self) -> bool {
        let handed_over = matches!(self.transport, ActiveTransport::PassFd(_));
        if handed_over {
            let id = self.fcgi_id;
            self.outgoing.push_order(|out| request::push_give_back(out, id));
        }
        handed_over
    }

    /// The client's socket, if the application may be using it.
    pub(crate) fn handed_over(&mut self) -> Option<&mut HandedOver> {
        match &mut self.transport {
            ActiveTransport::PassFd(handed) if !self.outgoing.holds_descriptor() => Some(handed),
            _ => None,
        }
    }

    /// Whether another process may get the client's socket: this one never had it, or speaks plain FastCGI only and has
    /// written nothing to it. A process that uses the hand-over protocol may have left a copy to a child.
    pub(crate) fn client_is_untouched(&mut self) -> bool {
        let speaks_handover = self.speaks_handover;
        self.handed_over().is_none_or(|handed| !speaks_handover && handed.is_untouched())
    }

    /// Whether there is output to write.
    pub(crate) fn has_to_write(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Whether the application cannot have begun with the request: nothing was written, or the request was short enough for
    /// a library to read it with one call, and was left unread.
    pub(crate) fn is_unseen(&self) -> bool {
        !self.has_written || self.was_left_unread
    }

    /// Writing has failed. What the application wrote before is still to be read.
    pub(crate) fn handle_broken_pipe(&mut self) {
        self.outgoing = Outgoing::default();
        self.awaits_client = false;
        self.keeps = false;
        self.handle_ready(true, true);
    }

    /// The region that it shares with the application.
    pub(crate) fn region(&mut self) -> Option<&mut SharedRegion> {
        self.region.as_mut()
    }

    /// Whether the application will soon have to wait for its region, or does already.
    pub(crate) fn waits_for_region(&self) -> bool {
        matches!(self.transport, ActiveTransport::Shm)
            && self.region.as_ref().is_some_and(SharedRegion::is_short)
    }

    /// Queues a message with the bytes that the application may reuse in its region. Returns whether there is one.
    pub(crate) fn tell_free(&mut self) -> bool {
        let id = self.fcgi_id;
        let Some(region) = self.region.as_mut().filter(|_| matches!(self.transport, ActiveTransport::Shm))
        else {
            return false;
        };
        region.end_loans();
        let Some(bytes) = region.tell_free() else { return false };
        self.outgoing.push_order(|out| request::push_freed(out, id, bytes));
        true
    }
}
