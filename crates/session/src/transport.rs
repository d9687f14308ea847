//! The connection to a client: a byte stream, and what else it can do.
//!
//! A session asks what its transport can do instead of knowing what it is: whether ranges of files may leave by
//! reference, and whether an application may be given the connection. All reading and writing of a client's socket
//! happens here, without waiting.
//!
//! Bytes run over a [`ByteStream`]: a socket, or in the simulation memory, without a kernel between. On the stream they are as they
//! are, or sealed by TLS ([`Layer`]).

mod byte_stream;
mod handshake;
#[cfg(test)]
#[expect(dead_code, reason = "the simulation uses more of it")]
pub(crate) mod memory;
mod preamble;
mod secured;
#[cfg(test)]
mod tests;
#[cfg(test)]
#[expect(dead_code, reason = "the simulation uses more of it")]
pub(crate) mod tls_client;

use std::cell::OnceCell;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use baton_http::Announced;
use baton_passport::{Part, PartKind, Passport};
use baton_site::address_count::Counted;
use baton_site::address_range::canonical;
use baton_telemetry::clock::Clock;
use baton_tls::{Facts, Handshake, Server};
use baton_upstream::{ClientSocket, SocketPass};
use rustix::io::Errno;

use crate::send_queue::SendfileMode;
use crate::send_queue::{Flush, SendPolicy, SendQueue};
use handshake::Handshaking;
use preamble::{Preamble, Read};
use secured::Secured;

pub use byte_stream::ByteStream;
pub(crate) use handshake::HandshakeNeed;

/// A client's end of a connection.
///
/// Input: `handle_*`, what the loop is told of the socket. Getters say what is known without a system call.
#[derive(Debug)]
pub struct Transport {
    stream: Arc<dyn ByteStream>,
    layer: Layer,
    /// `None`: a client on a Unix socket.
    peer: Option<SocketAddr>,
    /// The server's address of the connection, for applications; it never changes.
    local: OnceCell<Option<SocketAddr>>,
    /// There may be something to read.
    readable: bool,
    /// The client will send nothing more, and all that it sent has been read.
    input_ended: bool,
    /// The kernel keeps the last packet for the end of the output.
    is_corked: bool,
    /// The poller reported the end of the input, which it does once. Unread data may precede the end.
    end_announced: bool,
    /// The connection was reset, or is over in both directions.
    hung_up: bool,
    /// The client spoke in clear where TLS was expected.
    missed_tls: bool,
    /// Bytes that applications claim to have written, without the framing that they added, and those of the process that had
    /// the connection before.
    sent_by_others: u64,
    /// By which the handoff agent knows the connection, if a front-end has handed it over.
    flow: Option<u64>,
    /// Its next request is counted by the handoff agent already: it came with the connection.
    has_request: bool,
    /// Its next request must be relayed: a hand-off has failed.
    is_bound: bool,
    /// It belongs to a load balancer, which says whose requests it passes on.
    is_announced: bool,
    /// It counts as one over TLS.
    rehearses_tls: bool,
    /// The client's connections are counted as long as they are here.
    pub(crate) counted: Counted,
}

/// What is between the stream and the session.
#[derive(Debug)]
enum Layer {
    /// Nothing. Bytes that the handshake has read before it knew that they are not for it come first.
    Clear { early: Vec<u8> },
    /// The header of the PROXY protocol is to come, and TLS behind it, if any.
    Preamble(Box<Preamble>, Option<Arc<Server>>),
    /// TLS that is not established: no bytes may flow.
    Handshake(Box<Handshaking>),
    /// TLS.
    Tls(Box<Secured>),
}

/// What a read came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// So many bytes, at least one.
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    /// Nothing ever again: the client has ended its input, or is gone.
    End,
}

/// What an application needs to know to answer on the client's connection.
#[derive(Debug)]
pub(crate) struct PassTerms {
    /// The minor version of HTTP/1 that the client speaks: 0 or 1.
    pub(crate) minor: u8,
    /// Whether the server is willing to go on with the connection.
    pub(crate) keep: bool,
    /// Whether the request is a `HEAD`.
    pub(crate) head: bool,
    /// Complete fields of the response head: `Name: value CRLF`.
    pub(crate) fields: Vec<u8>,
}

impl Transport {
    /// A connection that has just been accepted; `tls`: what it has to begin with, if anything.
    pub fn new(socket: OwnedFd, peer: Option<SocketAddr>, tls: Option<&Arc<Server>>) -> Self {
        Self::over(Arc::new(ClientSocket::from(socket)), peer, tls)
    }

    /// An accepted connection of a load balancer, which first says whose connection it is.
    pub(crate) fn behind(balancer: OwnedFd, peer: Option<SocketAddr>, tls: Option<&Arc<Server>>) -> Self {
        let layer = Layer::Preamble(Box::default(), tls.cloned());
        Self { layer, is_announced: true, ..Self::new(balancer, peer, None) }
    }

    /// A connection that another process has had until now; `is_from_agent`: it comes from another host, with a request; `tls`:
    /// what connections to this listener begin with. `None`: it is not what the passport says.
    pub(crate) fn arrived(
        socket: OwnedFd,
        passport: &Passport,
        is_from_agent: bool,
        tls: Option<&Arc<Server>>,
    ) -> Option<Self> {
        let resumed = Self::resumed(arrived(socket, passport), passport, tls)?;
        Some(Self {
            flow: passport.flow,
            has_request: passport.flow.is_some() && is_from_agent,
            is_bound: passport.stay,
            ..resumed
        })
    }

    /// Like [`arrived`](Self::arrived), over any stream.
    fn resumed(stream: Arc<dyn ByteStream>, passport: &Passport, tls: Option<&Arc<Server>>) -> Option<Self> {
        let established = passport.part(PartKind::Tls).map(Secured::unpack);
        let (begins_with, layer) = match (tls, established) {
            (None, None) if !passport.begins_with_tls => (None, None),
            (Some(_), None) if passport.begins_with_tls => (tls, None),
            (Some(_), Some(Some(secured))) => (None, Some(Layer::Tls(Box::new(secured)))),
            // This server's listener is in clear, or the other one's was; or the part is another version's.
            _ => return None,
        };
        let mut transport = Self::over(stream, passport.peer, begins_with);
        transport.layer = layer.unwrap_or(transport.layer);
        Some(Self { sent_by_others: passport.written, ..transport })
    }

    /// The connection as another process would go on with it. A handshake that is to come stays as it is.
    pub(crate) fn moved(self, passport: &Passport) -> Option<Self> {
        let layer = match passport.part(PartKind::Tls) {
            Some(packed) => Layer::Tls(Box::new(Secured::unpack(packed)?)),
            None => self.layer,
        };
        let copy =
            self.stream.socket().map(|socket| socket.as_fd().try_clone_to_owned().expect("a descriptor"));
        let stream = copy.map_or(self.stream, |copy| arrived(copy, passport));
        let moved = Self::over(stream, passport.peer, None);
        // A poller that watches a socket anew says again that the input has ended.
        Some(Self { layer, end_announced: self.end_announced, sent_by_others: passport.written, ..moved })
    }

    /// A connection over any stream.
    pub fn over(stream: Arc<dyn ByteStream>, peer: Option<SocketAddr>, tls: Option<&Arc<Server>>) -> Self {
        Self {
            stream,
            layer: match tls {
                Some(server) => Layer::Handshake(Box::new(Handshaking::new(server, peer))),
                None => Layer::Clear { early: Vec::new() },
            },
            peer: peer.map(canonical),
            local: OnceCell::new(),
            // The first read is tried at once: with TCP_DEFER_ACCEPT the request is there already.
            readable: true,
            input_ended: false,
            is_corked: false,
            end_announced: false,
            hung_up: false,
            missed_tls: false,
            sent_by_others: 0,
            flow: None,
            has_request: false,
            is_bound: false,
            is_announced: false,
            rehearses_tls: false,
            counted: Counted::default(),
        }
    }

    /// The socket, to wait on. The simulation, whose streams are none, waits without descriptors.
    pub(crate) fn socket(&self) -> &ClientSocket {
        self.stream.socket().expect("a stream of a loop is a socket")
    }

    /// The socket, for another thread.
    pub(crate) fn share_socket(&self) -> Arc<ClientSocket> {
        Arc::clone(&self.stream).share_socket().expect("a stream of a loop is a socket")
    }

    /// The client's address; `None`: a client on a Unix socket.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// The IP address of [`peer`](Self::peer).
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        Some(self.peer?.ip())
    }

    /// Our end of the connection; `None`: a Unix socket.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        *self.local.get_or_init(|| {
            let name = rustix::net::getsockname(self.stream.socket()?).ok()?;
            SocketAddr::try_from(name).ok().map(canonical)
        })
    }

    /// What the handshake has settled; `None`: the connection is in clear, or not established.
    pub(crate) fn tls(&self) -> Option<&Facts> {
        match &self.layer {
            Layer::Tls(secured) => Some(secured.facts()),
            Layer::Clear { .. } | Layer::Preamble(..) | Layer::Handshake(_) => None,
        }
    }

    /// Whether the client has a certificate that was accepted.
    pub(crate) fn has_certificate(&self) -> bool {
        self.tls().is_some_and(|facts| facts.client_certificate.is_some())
    }

    /// Has a connection in clear count as one over TLS.
    pub(crate) fn rehearse_tls(&mut self) {
        self.rehearses_tls = true;
    }

    /// Whether the client has asked for an `https` URL.
    pub(crate) fn is_https(&self) -> bool {
        self.rehearses_tls || self.tls().is_some()
    }

    /// Whether [`shake_hands`](Self::shake_hands) comes before any other input and output.
    pub(crate) fn is_handshaking(&self) -> bool {
        matches!(self.layer, Layer::Preamble(..) | Layer::Handshake(_))
    }

    /// Whether the load balancer has not said whose connection it is.
    pub(crate) fn awaits_announcement(&self) -> bool {
        matches!(self.layer, Layer::Preamble(..))
    }

    /// Whether a client is in the middle of its handshake, and would take the end of the connection for a failure.
    pub(crate) fn has_begun_handshake(&self) -> bool {
        matches!(&self.layer, Layer::Handshake(handshaking) if handshaking.has_begun())
    }

    /// Whether the client spoke in clear where TLS was expected.
    pub(crate) fn has_missed_tls(&self) -> bool {
        self.missed_tls
    }

    /// Whether there may be something to read.
    pub(crate) fn is_readable(&self) -> bool {
        self.readable
            || match &self.layer {
                Layer::Clear { early } => !early.is_empty(),
                Layer::Preamble(..) | Layer::Handshake(_) => false,
                Layer::Tls(secured) => secured.has_input(),
            }
    }

    /// Whether the client will send nothing more, and all that it sent has been read.
    pub(crate) fn has_ended_input(&self) -> bool {
        self.input_ended
    }

    /// Whether the connection is over in both directions: no answer can arrive.
    pub(crate) fn is_hung_up(&self) -> bool {
        self.hung_up
    }

    /// Whether ranges of files leave by reference: under TLS only if the kernel seals them.
    pub(crate) fn sends_files(&self) -> bool {
        let may = match &self.layer {
            Layer::Clear { .. } => true,
            Layer::Preamble(..) | Layer::Handshake(_) => false,
            Layer::Tls(secured) => secured.is_with_kernel(),
        };
        may && self.stream.sends_files()
    }

    /// Whether bytes in a pipe can be sent: in clear, over a socket.
    pub(crate) fn takes_pipes(&self) -> bool {
        matches!(self.layer, Layer::Clear { .. })
            && self.stream.socket().is_some_and(|socket| !socket.was_passed())
    }

    fn is_sealed_by_kernel(&self) -> bool {
        matches!(&self.layer, Layer::Tls(secured) if secured.is_with_kernel())
    }

    /// Whether [`flush`](Self::flush) has to be called, even if there is nothing more to send, before the client can be said
    /// to get all.
    pub(crate) fn is_unsettled(&self) -> bool {
        matches!(&self.layer, Layer::Tls(secured) if secured.is_unsettled())
    }

    /// Bytes that the send queue counts as sent, and that the stream has not taken: they wait in records.
    pub(crate) fn early_data(&self) -> u64 {
        match &self.layer {
            Layer::Tls(secured) => secured.early_data(),
            _ => 0,
        }
    }

    /// Whether an application was given the connection, now or before.
    pub(crate) fn was_passed(&self) -> bool {
        self.stream.socket().is_some_and(ClientSocket::was_passed)
    }

    /// The version of a passport with which another process can go on with the connection; `None`: none can. It can if all that
    /// it needs to know is in the kernel or can be said.
    pub(crate) fn passport_version(&self) -> Option<u32> {
        if self.missed_tls || self.hung_up || self.input_ended {
            return None;
        }
        match &self.layer {
            Layer::Clear { early } => early.is_empty().then_some(1),
            Layer::Preamble(..) => None,
            Layer::Handshake(handshaking) => (!handshaking.has_begun()).then_some(2),
            Layer::Tls(secured) => secured.is_movable().then_some(2),
        }
    }

    /// What a passport says of TLS.
    pub(crate) fn describe(&self, passport: &mut Passport) {
        match &self.layer {
            Layer::Clear { .. } | Layer::Preamble(..) => {}
            Layer::Handshake(_) => passport.begins_with_tls = true,
            Layer::Tls(secured) => {
                passport.parts.push(Part { kind: PartKind::Tls, bytes: secured.pack() });
            }
        }
    }

    /// Whether a send queue, which came with the connection, has the bytes that are in records of this.
    pub(crate) fn fits(&self, send_queue: &SendQueue) -> bool {
        match &self.layer {
            Layer::Tls(secured) => secured.fits(send_queue),
            _ => true,
        }
    }

    /// Another process goes on with the connection: nothing more may be said here.
    pub(crate) fn handle_left(&mut self) {
        if let Layer::Tls(secured) = &mut self.layer {
            secured.forbid_end();
        }
        if let Some(socket) = self.stream.socket() {
            socket.note_left();
        }
    }

    /// Whether the connection, with a request, can be handed over to another host: TCP in clear, and no host has it already.
    pub(crate) fn may_be_handed_off(&self) -> bool {
        self.passport_version() == Some(1)
            && self.peer.is_some()
            && self.flow.is_none()
            && !(self.is_bound || self.is_announced)
            && !self.was_passed()
    }

    /// By which the handoff agent knows the connection, if a front-end has handed it over.
    pub(crate) fn flow(&self) -> Option<u64> {
        self.flow
    }

    /// Whether the front-end that has handed the connection over can take it back: this process alone has it.
    pub(crate) fn is_of_front_end(&self) -> bool {
        self.flow.is_some() && !self.was_passed()
    }

    /// Whether the next request comes behind the one with which a front-end has handed the connection over: the handoff agent
    /// counts that one already.
    pub(crate) fn is_further_request(&self) -> bool {
        self.flow.is_some() && !self.has_request
    }

    /// A request begins. Returns whether the handoff agent has to be told.
    pub(crate) fn begin_request(&mut self) -> Option<u64> {
        let is_told = std::mem::take(&mut self.has_request);
        self.flow.filter(|_| !is_told)
    }

    /// A request has ended: the next one may be handed over.
    pub(crate) fn end_request(&mut self) {
        self.is_bound = false;
    }

    /// Another process or host goes on with the flow.
    pub(crate) fn leave_flow(&mut self) {
        self.flow = None;
    }

    /// Bytes that others have written: applications, as they claim, or the process that had the connection before.
    pub(crate) fn sent_by_others(&self) -> u64 {
        self.sent_by_others
    }

    /// There is something to read.
    pub(crate) fn handle_readable(&mut self) {
        self.readable = true;
    }

    /// The client has ended its input, perhaps behind unread data, or is gone. For pollers that report this only once.
    pub(crate) fn handle_input_end(&mut self) {
        self.readable = true;
        self.end_announced = true;
    }

    /// The connection is over in both directions.
    pub(crate) fn handle_hangup(&mut self) {
        self.hung_up = true;
    }

    /// An application may have read from the connection: the state of the input is unknown again.
    pub(crate) fn handle_read_by_others(&mut self) {
        (self.readable, self.input_ended) = (true, false);
    }

    /// An application claims to have written so many bytes. The claim is not verified.
    pub(crate) fn handle_sent_by_others(&mut self, bytes: u64) {
        self.sent_by_others = self.sent_by_others.saturating_add(bytes);
        if let Layer::Tls(secured) = &mut self.layer {
            secured.handle_sent_by_others(bytes);
        }
    }

    /// Takes the handshake as far as it goes without waiting. It is established when this needs nothing.
    pub(crate) fn shake_hands(&mut self) -> HandshakeNeed {
        if let Layer::Preamble(preamble, tls) = &mut self.layer {
            let (announced, early) =
                match preamble.advance(&*self.stream, &mut self.readable, self.end_announced) {
                    Read::More => return HandshakeNeed::Readable,
                    Read::Bad(bad) => return HandshakeNeed::Unannounced(Some(bad)),
                    Read::Ended => return HandshakeNeed::Unannounced(None),
                    Read::Whole(announced, early) => (announced, early),
                };
            if let Announced::Client { client, server } = announced {
                self.peer = Some(canonical(client));
                self.local = OnceCell::from(Some(server));
            }
            self.layer = match tls {
                Some(server) => Layer::Handshake(Box::new(Handshaking::fed(server, self.peer, early))),
                None => Layer::Clear { early },
            };
        }
        let Layer::Handshake(handshaking) = &mut self.layer else { return HandshakeNeed::Nothing };
        match handshaking.advance(&*self.stream, &mut self.readable, self.end_announced) {
            Ok(need) => need,
            Err(handshake::Over::Established(established, unsent)) => {
                self.layer = Layer::Tls(Box::new(Secured::new(*established, unsent)));
                HandshakeNeed::Nothing
            }
            Err(handshake::Over::NotTls(early)) => {
                self.layer = Layer::Clear { early };
                self.missed_tls = true;
                HandshakeNeed::Clear
            }
            Err(handshake::Over::Failed(failure)) => HandshakeNeed::Failed(failure),
        }
    }

    /// The work that [`HandshakeNeed::Work`] asked for is done.
    pub(crate) fn handle_handshake_work(&mut self, worked: Box<Handshake>) {
        if let Layer::Handshake(handshaking) = &mut self.layer {
            handshaking.handle_work(worked);
        }
    }

    /// Reads what has arrived, as far as there is room.
    pub(crate) fn receive(&mut self, into: &mut [u8]) -> Received {
        let received = match &mut self.layer {
            Layer::Clear { early } if !early.is_empty() => {
                let count = early.len().min(into.len());
                into[..count].copy_from_slice(&early[..count]);
                early.drain(..count);
                return Received::Bytes(count);
            }
            Layer::Clear { .. } => self.stream.receive_and_note(into, &mut self.readable, self.end_announced),
            Layer::Preamble(..) | Layer::Handshake(_) => Err(Errno::AGAIN),
            Layer::Tls(secured) => {
                secured.receive(&*self.stream, into, &mut self.readable, self.end_announced)
            }
        };
        match received {
            Ok(0) => {
                self.input_ended = true;
                Received::End
            }
            Ok(count) => Received::Bytes(count),
            Err(Errno::AGAIN) => Received::Nothing,
            Err(_) => Received::End,
        }
    }

    /// Sends what the send queue holds, as much as the connection takes; ranges of files through `scratch` where they
    /// cannot go by reference. `last`: the connection ends behind it.
    pub(crate) fn flush(
        &mut self,
        send_queue: &mut SendQueue,
        policy: &SendPolicy,
        scratch: &mut [u8],
        last: bool,
        clock: &Clock,
    ) -> Flush {
        let by_reference = self.sends_files() && policy.sendfile != SendfileMode::Never;
        match &mut self.layer {
            Layer::Clear { .. } => {
                let through = (!by_reference).then_some(scratch);
                if last && !self.is_corked && send_queue.needs_cork() {
                    self.is_corked = self.stream.cork();
                }
                send_queue.flush(&*self.stream, policy, through, last, clock.stamp().unix_seconds)
            }
            Layer::Tls(secured) => secured.flush(&*self.stream, send_queue, policy, scratch, last, clock),
            Layer::Preamble(..) | Layer::Handshake(_) => Flush::Full,
        }
    }

    /// Ends the server's half of the connection, after what has been sent. `false`: the client is gone.
    pub(crate) fn end_output(&mut self) -> bool {
        self.say_end();
        self.readable = true;
        // A FIN would overtake records that the kernel still has. The client has been told.
        self.is_sealed_by_kernel() || self.stream.end_output()
    }

    /// What the send queue holds is all that is sent on this connection, and it is complete.
    pub(crate) fn end_behind_output(&mut self) {
        if let Layer::Tls(secured) = &mut self.layer {
            secured.end_behind_output();
        }
    }

    /// Tells the client, where there is a way to, that what was sent is all. The connection has to end behind it.
    pub(crate) fn say_end(&mut self) {
        if let Layer::Tls(secured) = &mut self.layer {
            secured.say_end(&*self.stream);
        }
    }

    /// Offers the connection to an application, after the server has sent `sent` bytes. Under TLS the kernel has to seal what
    /// the application writes. `None`: the connection cannot be passed, or it is over; the poller will not report its end
    /// again.
    pub(crate) fn pass(&mut self, terms: PassTerms, sent: u64, policy: &SendPolicy) -> Option<SocketPass> {
        let PassTerms { minor, keep, head, fields } = terms;
        let client = Arc::clone(&self.stream).share_socket().filter(|_| !self.hung_up)?;
        // Held bytes would leave a record of TLS open.
        let holds = !keep && self.tls().is_none();
        match &mut self.layer {
            // Without encryption the kernel's count of bytes is the same as this one.
            Layer::Clear { .. } => client.note_written(sent.saturating_add(self.sent_by_others)),
            Layer::Tls(secured) => {
                if !policy.kernel_tls || !secured.give_to_kernel(&*self.stream) {
                    return None;
                }
                client.note_written_so_far();
            }
            Layer::Preamble(..) | Layer::Handshake(_) => return None,
        }
        Some(SocketPass { client, minor, keep, head, holds, fields })
    }

    /// Resets the connection, at the latest when it is closed, which has to follow. The kernel drops what the client
    /// has not taken.
    pub(crate) fn reset(&mut self) {
        if let Layer::Tls(secured) = &mut self.layer {
            secured.forbid_end();
        }
        self.stream.reset();
    }
}

/// A socket that another process has had until now.
fn arrived(socket: OwnedFd, passport: &Passport) -> Arc<dyn ByteStream> {
    let socket = ClientSocket::from(socket);
    if passport.was_passed {
        socket.note_passed();
    }
    Arc::new(socket)
}
