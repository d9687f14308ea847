//! A server's handshake: bytes of the client in, bytes for the client out, and at the end the keys of the connection.
//!
//! The library's unbuffered interface is behind it, which the library's next release replaces; nothing of it shows.
//!
//! Input: [`feed`](Handshake::feed) and [`work`](Handshake::work). Output: [`poll`](Handshake::poll) says what is needed
//! next, [`take_output`](Handshake::take_output) has the bytes to send. What is to be sent precedes what `poll` says.

use std::fmt;
use std::sync::Arc;

use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{Error, HandshakeKind};

use crate::client_hello::{ClientHello, HelloFacts, HelloReader};
use crate::key_schedule::KeySchedule;
use crate::library::{self, Progress, handle_state};
use crate::traffic_secrets::{self, TrafficSecrets};
use crate::{Alert, Facts, FailureReason, HandshakeFailure, PolicyId, Records, Server};

/// The most unread input that a handshake keeps. Clients' first messages have 2 KB, chains of client certificates
/// seldom 10; the library takes up to 64 KiB for one message.
pub const HANDSHAKE_INPUT_BYTES_MAX: usize = 80 * 1024;

/// A handshake under way.
pub struct Handshake {
    server: Arc<Server>,
    phase: Phase,
    /// What the client has sent and the library has not consumed.
    input: Vec<u8>,
    /// The front of the input that the library has seen: whole records, with a message that is still incomplete.
    seen: usize,
    output: Vec<u8>,
}

enum Phase {
    /// The client's first message is not complete.
    Hello(HelloReader),
    /// The library has the word.
    Running(Box<Running>),
    Complete(Box<Established>),
    Failed(HandshakeFailure),
    /// The result has been taken.
    Over,
}

struct Running {
    connection: UnbufferedServerConnection,
    server_name: Option<Box<str>>,
    policy: Option<PolicyId>,
    /// What the library has told of them.
    secrets: TrafficSecrets,
}

/// What a handshake needs.
#[derive(Debug)]
pub enum Needs {
    /// More of the client's bytes.
    Input,
    /// A call of [`work`](Handshake::work), which computes for 0.1 to 2 ms.
    Work,
    /// Nothing more: the connection is established.
    Nothing(Box<Established>),
    /// The connection to be ended, after the output has been sent.
    Failed(HandshakeFailure),
}

/// The outcome of a handshake.
#[derive(Debug)]
pub struct Established {
    /// The connection's keys.
    pub records: Records,
    /// What was settled.
    pub facts: Facts,
    /// Records that arrived behind the handshake, still sealed.
    pub unread: Vec<u8>,
}

impl Handshake {
    /// A handshake of which nothing has arrived.
    pub fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            phase: Phase::Hello(HelloReader::default()),
            input: Vec::new(),
            seen: 0,
            output: Vec::new(),
        }
    }

    /// The client has sent these bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.input.len() + bytes.len() > HANDSHAKE_INPUT_BYTES_MAX {
            self.fail(FailureReason::TooLarge, "the client sent more than a handshake takes");
        } else {
            self.input.extend_from_slice(bytes);
        }
    }

    /// What is to be sent. Empty: nothing.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// What is needed next. The result is given once.
    pub fn poll(&mut self) -> Needs {
        loop {
            match &self.phase {
                Phase::Hello(_) => match self.read_hello() {
                    Ok(true) => {}
                    Ok(false) => return Needs::Input,
                    Err(failure) => self.phase = Phase::Failed(failure),
                },
                Phase::Running(running) => {
                    let Some(record_end) = self.next_record_end() else { return Needs::Input };
                    if running.is_expensive() {
                        return Needs::Work;
                    }
                    self.advance(record_end);
                }
                Phase::Complete(_) | Phase::Failed(_) | Phase::Over => break,
            }
        }
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Complete(established) => Needs::Nothing(established),
            Phase::Failed(failure) => Needs::Failed(failure),
            _ => Needs::Failed(HandshakeFailure::new(FailureReason::Internal, "the handshake is over")),
        }
    }

    /// Does the work that [`Needs::Work`] asks for: key exchange and signature. It uses the processor and nothing else,
    /// on any thread.
    pub fn work(&mut self) {
        while let Phase::Running(running) = &self.phase
            && running.is_expensive()
            && let Some(record_end) = self.next_record_end()
        {
            self.advance(record_end);
        }
    }

    /// Looks for the client's first message; `true`: it is complete, and the library has the word.
    fn read_hello(&mut self) -> Result<bool, HandshakeFailure> {
        let Phase::Hello(reader) = &mut self.phase else { return Ok(true) };
        let asked = match reader.read(&self.input) {
            ClientHello::Part => return Ok(false),
            ClientHello::Whole(asked) => asked,
            ClientHello::Broken => HelloFacts::default(),
        };
        if asked.is_too_old {
            // The library would complain about an extension that the version does not have.
            self.output.extend_from_slice(&Alert::PROTOCOL_VERSION.in_clear());
            let detail = "the client speaks no version from TLS 1.2 on";
            return Err(HandshakeFailure::new(FailureReason::NoCommonVersion, detail));
        }
        let server_name = asked.name;
        let proof = asked.wants_proof.then(|| self.server.proof(server_name.as_deref())).flatten();
        let Some(terms) = proof.as_ref().or_else(|| self.server.terms(server_name.as_deref())) else {
            self.output.extend_from_slice(&Alert::UNRECOGNIZED_NAME.in_clear());
            let name = server_name.as_deref().unwrap_or("no name");
            let detail = format!("no certificate is for {name}");
            return Err(HandshakeFailure::new(FailureReason::UnknownName, detail));
        };
        let policy = terms.policy;
        let connection = UnbufferedServerConnection::new(Arc::clone(&terms.config))?;
        self.phase = Phase::Running(Box::new(Running {
            connection,
            server_name,
            policy,
            secrets: TrafficSecrets::default(),
        }));
        Ok(true)
    }

    /// The end of the next record that the library has not seen, if all of it is there.
    fn next_record_end(&self) -> Option<usize> {
        library::next_record_end(&self.input, self.seen)
    }

    /// Gives the library the input up to the end of one more record. It gets no more than that: it would open records
    /// of the established connection, too, which is the business of [`Records`].
    fn advance(&mut self, record_end: usize) {
        self.seen = record_end;
        let Phase::Running(running) = &mut self.phase else { return };
        loop {
            // None of another connection, whose handshake failed on this thread.
            traffic_secrets::take();
            let UnbufferedStatus { discard, state } =
                running.connection.process_tls_records(&mut self.input[..self.seen]);
            running.secrets.add(traffic_secrets::take());
            let progress = state.map(|state| handle_state(state, &mut self.output));
            self.input.drain(..discard);
            self.seen -= discard;
            let failure = match progress {
                Ok(Progress::Goes) => continue,
                Ok(Progress::Waits) if running.connection.is_handshaking() => return,
                Ok(Progress::Waits) => break,
                Ok(Progress::Ended) => {
                    HandshakeFailure::new(FailureReason::Left, "the client ended the handshake")
                }
                Ok(Progress::Failed(detail)) => HandshakeFailure::new(FailureReason::Internal, detail),
                Err(error) => error.into(),
            };
            push_alert(&mut running.connection, &mut self.output);
            self.phase = Phase::Failed(failure);
            return;
        }
        if let Phase::Running(running) = std::mem::replace(&mut self.phase, Phase::Over) {
            self.phase = match running.establish(std::mem::take(&mut self.input)) {
                Ok(established) => Phase::Complete(Box::new(established)),
                Err(failure) => Phase::Failed(failure),
            };
        }
    }

    fn fail(&mut self, reason: FailureReason, detail: &str) {
        if matches!(self.phase, Phase::Hello(_) | Phase::Running(_)) {
            self.phase = Phase::Failed(HandshakeFailure::new(reason, detail));
        }
    }
}

impl Running {
    /// Whether the next message from the client makes the library exchange keys or sign.
    fn is_expensive(&self) -> bool {
        self.connection.negotiated_key_exchange_group().is_none()
            && self.connection.handshake_kind() != Some(HandshakeKind::Resumed)
    }

    fn establish(self, unread: Vec<u8>) -> Result<Established, HandshakeFailure> {
        let facts = Facts::of(&self.connection, self.server_name, self.policy);
        let facts = facts.ok_or(Error::HandshakeNotComplete)?;
        let (secrets, keys) = self.connection.dangerous_into_kernel_connection()?;
        drop(keys);
        let keys = KeySchedule::of_server(self.secrets);
        let records = Records::new(facts.version, secrets, keys)
            .map_err(|error| HandshakeFailure::new(FailureReason::Internal, error.to_string()))?;
        Ok(Established { records, facts, unread })
    }
}

/// After an error the library has an alert for the client, perhaps behind other messages. It is asked for no more than
/// that: it would look at its input once more, and panic.
fn push_alert(connection: &mut UnbufferedServerConnection, output: &mut Vec<u8>) {
    while connection.wants_write()
        && let Ok(ConnectionState::EncodeTlsData(mut data)) = connection.process_tls_records(&mut []).state
        && library::push(output, |room| data.encode(room)).is_ok()
    {}
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match &self.phase {
            Phase::Hello(_) => "hello",
            Phase::Running(_) => "running",
            Phase::Complete(_) => "complete",
            Phase::Failed(_) => "failed",
            Phase::Over => "over",
        };
        f.debug_struct("Handshake").field("phase", &phase).field("input", &self.input.len()).finish()
    }
}
