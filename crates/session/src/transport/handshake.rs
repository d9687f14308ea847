//! TLS that is not established: the handshake on a stream.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use baton_buf::Unsent;
use baton_http::BadProxyHeader;
use baton_shares::{ClientKey, Full, Permit, Shares};
use baton_tls::{Established, FailureReason, Handshake, HandshakeFailure, Needs, Server, looks_like_tls};
use rustix::io::Errno;

use super::byte_stream::ByteStream;
use super::secured::with_batch;

/// A handshake under way.
#[derive(Debug)]
pub(super) struct Handshaking {
    /// `None`: another thread works on it.
    machine: Option<Box<Handshake>>,
    has_begun: bool,
    /// Bytes that were read already.
    early: Vec<u8>,
    /// What the stream has not taken: one flight, a few KB.
    unsent: Unsent,
    /// How it has ended, which counts when everything has been sent.
    ended: Option<Result<Box<Established>, HandshakeFailure>>,
    _place: Option<Permit>,
}

/// What a handshake needs.
#[derive(Debug)]
pub(crate) enum HandshakeNeed {
    /// Nothing: bytes may flow.
    Nothing,
    /// The connection to be ended: the load balancer has not said whose it is.
    Unannounced(Option<BadProxyHeader>),
    /// Nothing: the client does not speak TLS, and is told so in clear.
    Clear,
    /// The stream readable.
    Readable,
    /// The stream writable.
    Writable,
    /// [`Handshake::work`] done, then [`Transport::handle_handshake_work`](super::Transport::handle_handshake_work).
    Work(Box<Handshake>),
    /// The work that was asked for before.
    WorkUnderWay,
    /// The connection to be ended.
    Failed(HandshakeFailure),
}

/// The end of a handshake.
#[derive(Debug)]
pub(super) enum Over {
    /// With records that are to be sent before any other.
    Established(Box<Established>, Unsent),
    /// The client does not speak TLS, but this.
    NotTls(Vec<u8>),
    Failed(HandshakeFailure),
}

impl Handshaking {
    /// A handshake whose first bytes were read with what stood in front of them.
    pub(super) fn fed(server: &Arc<Server>, peer: Option<SocketAddr>, early: Vec<u8>) -> Self {
        Self { early, ..Self::new(server, peer) }
    }

    /// A handshake of which nothing has arrived.
    pub(super) fn new(server: &Arc<Server>, peer: Option<SocketAddr>) -> Self {
        let place = UNDER_WAY.take(peer.map(|peer| ClientKey::of(peer.ip())), HANDSHAKES_MAX);
        Self {
            machine: Some(Box::new(Handshake::new(Arc::clone(server)))),
            has_begun: false,
            early: Vec::new(),
            unsent: Unsent::default(),
            ended: place.as_ref().err().map(|full| Err(refusal(*full))),
            _place: place.ok(),
        }
    }

    /// Whether anything has arrived.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Another thread has done the work.
    pub(super) fn handle_work(&mut self, worked: Box<Handshake>) {
        self.machine = Some(worked);
    }

    /// Goes as far as it can without waiting.
    ///
    /// # Errors
    /// The handshake is over, for better or worse.
    pub(super) fn advance(
        &mut self,
        stream: &dyn ByteStream,
        readable: &mut bool,
        end_announced: bool,
    ) -> Result<HandshakeNeed, Over> {
        loop {
            match self.unsent.flush(stream, false) {
                Ok(true) => {}
                // Only tickets are left: they go with the first answer.
                Ok(false) if matches!(self.ended, Some(Ok(_))) => {}
                Ok(false) => return Ok(HandshakeNeed::Writable),
                Err(_) => return Err(Over::Failed(left())),
            }
            if let Some(ended) = self.ended.take() {
                return Err(match ended {
                    Ok(established) => Over::Established(established, std::mem::take(&mut self.unsent)),
                    Err(failure) => Over::Failed(failure),
                });
            }
            let Some(machine) = &mut self.machine else { return Ok(HandshakeNeed::WorkUnderWay) };
            let needs = machine.poll();
            self.unsent.0 = machine.take_output();
            match needs {
                // The answer first: the client may wait for it.
                Needs::Input if !self.unsent.is_empty() => {}
                Needs::Input if !self.early.is_empty() => {
                    let early = std::mem::take(&mut self.early);
                    if !looks_like_tls(&early) {
                        return Err(Over::NotTls(early));
                    }
                    self.has_begun = true;
                    machine.feed(&early);
                }
                Needs::Input => {
                    let early = with_batch(|batch| {
                        let count =
                            stream.receive_and_note(&mut batch[..READ_BYTES], readable, end_announced)?;
                        let bytes = &batch[..count];
                        if count > 0 && !self.has_begun && !looks_like_tls(bytes) {
                            return Ok(Some(bytes.to_vec()));
                        }
                        self.has_begun = true;
                        machine.feed(bytes);
                        if count == 0 { Err(Errno::PIPE) } else { Ok(None) }
                    });
                    match early {
                        Ok(None) => {}
                        Ok(Some(early)) => return Err(Over::NotTls(early)),
                        Err(Errno::AGAIN) => return Ok(HandshakeNeed::Readable),
                        Err(_) => return Err(Over::Failed(left())),
                    }
                }
                Needs::Work => match self.machine.take() {
                    Some(machine) => return Ok(HandshakeNeed::Work(machine)),
                    None => return Ok(HandshakeNeed::WorkUnderWay),
                },
                Needs::Nothing(established) => self.ended = Some(Ok(established)),
                Needs::Failed(failure) => self.ended = Some(Err(failure)),
            }
        }
    }
}

fn failure(reason: FailureReason, detail: &str) -> HandshakeFailure {
    HandshakeFailure::new(reason, detail)
}

fn refusal(full: Full) -> HandshakeFailure {
    match full {
        Full::Table => failure(FailureReason::Overloaded, "too many handshakes"),
        Full::Share => failure(FailureReason::OverShare, "the client has its share of the handshakes"),
    }
}

fn left() -> HandshakeFailure {
    failure(FailureReason::Left, "the client left during the handshake")
}

/// Read at once: several of a client's flights.
const READ_BYTES: usize = 16 * 1024;

/// Handshakes under way in a process. Each may hold some 20 KB, and [more](baton_tls::HANDSHAKE_INPUT_BYTES_MAX) only if
/// the client sends as much. Beyond it, and beyond a client's share, new clients are refused.
const HANDSHAKES_MAX: usize = 4096;

/// Handshakes under way in this process. Sessions may move between threads, so no loop counts them.
static UNDER_WAY: LazyLock<Shares> = LazyLock::new(Shares::default);
