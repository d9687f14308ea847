//! The handshake with an origin: its bytes in, bytes for it out, and at the end the keys of the connection.
//!
//! Input: [`feed`](OriginHandshake::feed). Output: [`poll`](OriginHandshake::poll) says what is needed next,
//! [`take_output`](OriginHandshake::take_output) has the bytes to send, which precede what `poll` says.
//!
//! It computes where it is called: key exchange and verification take some 0.3 ms. Connections to origins are kept, and
//! sessions resumed, so it is rare.

use std::fmt;
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{Error, HandshakeKind};

use crate::facts::Version;
use crate::key_schedule::KeySchedule;
use crate::library::{self, Progress, handle_state};
use crate::traffic_secrets::{self, TrafficSecrets};
use crate::{HANDSHAKE_INPUT_BYTES_MAX, OriginPolicy, OriginTlsError, RECORD_BYTES_MAX, Records};

/// A handshake under way.
pub struct OriginHandshake {
    phase: Phase,
    /// What the origin has sent and the library has not consumed.
    input: Vec<u8>,
    /// The front of the input that the library has seen: whole records, with a message that is still incomplete.
    seen: usize,
    output: Vec<u8>,
    /// What the library has told of them.
    secrets: TrafficSecrets,
}

enum Phase {
    /// Nothing has been said.
    New(Box<UnbufferedClientConnection>),
    Running(Box<UnbufferedClientConnection>),
    Complete(Box<OriginEstablished>),
    Failed(OriginTlsError),
    /// The result has been taken.
    Over,
}

/// What a handshake needs.
#[derive(Debug)]
pub enum OriginNeeds {
    /// More of the origin's bytes.
    Input,
    /// Nothing more: the connection is established.
    Nothing(Box<OriginEstablished>),
    /// The connection to be ended, after the output has been sent.
    Failed(OriginTlsError),
}

/// The outcome of a handshake.
#[derive(Debug)]
pub struct OriginEstablished {
    /// The connection's keys.
    pub records: Records,
    /// Whether it continues a session of before.
    pub resumed: bool,
    /// Records that arrived behind the handshake, still sealed.
    pub unread: Vec<u8>,
}

impl OriginHandshake {
    /// A handshake of which nothing has been sent.
    pub fn new(policy: &OriginPolicy) -> Self {
        let connection = UnbufferedClientConnection::new(Arc::clone(&policy.config), policy.name.clone());
        let phase = match connection {
            Ok(connection) => Phase::New(Box::new(connection)),
            Err(error) => Phase::Failed(OriginTlsError::of(&error)),
        };
        Self { phase, input: Vec::new(), seen: 0, output: Vec::new(), secrets: TrafficSecrets::default() }
    }

    /// The origin has sent these bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.input.len() + bytes.len() > HANDSHAKE_INPUT_BYTES_MAX {
            self.phase = Phase::Failed(OriginTlsError::Misbehaved);
        } else {
            self.input.extend_from_slice(bytes);
        }
    }

    /// What is to be sent. Empty: nothing.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// What is needed next. The result is given once.
    pub fn poll(&mut self) -> OriginNeeds {
        loop {
            match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::New(connection) => self.advance(connection),
                Phase::Running(connection) => {
                    if let Some(trouble) = self.judge_header() {
                        return OriginNeeds::Failed(trouble);
                    }
                    let Some(end) = library::next_record_end(&self.input, self.seen) else {
                        self.phase = Phase::Running(connection);
                        return OriginNeeds::Input;
                    };
                    self.seen = end;
                    self.advance(connection);
                }
                Phase::Complete(established) => return OriginNeeds::Nothing(established),
                Phase::Failed(trouble) => return OriginNeeds::Failed(trouble),
                Phase::Over => return OriginNeeds::Failed(OriginTlsError::Internal),
            }
        }
    }

    /// What is wrong with the header of the next record. The library would judge it, too, but not all of them at once.
    fn judge_header(&self) -> Option<OriginTlsError> {
        let [kind, version, _, high, low] = *self.input[self.seen..].first_chunk()?;
        if !(20..=23).contains(&kind) || version != 3 {
            return Some(OriginTlsError::NotTls);
        }
        (usize::from(u16::from_be_bytes([high, low])) > RECORD_BYTES_MAX)
            .then_some(OriginTlsError::Misbehaved)
    }

    /// Gives the library the input that it may see. It gets no record of the established connection: those are the
    /// business of [`Records`].
    fn advance(&mut self, mut connection: Box<UnbufferedClientConnection>) {
        self.phase = loop {
            // None of another connection, whose handshake failed on this thread.
            traffic_secrets::take();
            let UnbufferedStatus { discard, state } =
                connection.process_tls_records(&mut self.input[..self.seen]);
            self.secrets.add(traffic_secrets::take());
            let progress = state.map(|state| handle_state(state, &mut self.output));
            self.input.drain(..discard);
            self.seen -= discard;
            let trouble = match progress {
                Ok(Progress::Goes) => continue,
                Ok(Progress::Waits) if connection.is_handshaking() => break Phase::Running(connection),
                Ok(Progress::Waits) => {
                    break match establish(
                        *connection,
                        std::mem::take(&mut self.secrets),
                        std::mem::take(&mut self.input),
                    ) {
                        Ok(established) => Phase::Complete(Box::new(established)),
                        Err(error) => Phase::Failed(OriginTlsError::of(&error)),
                    };
                }
                Ok(Progress::Ended) => OriginTlsError::Left,
                Ok(Progress::Failed(_)) => OriginTlsError::Internal,
                Err(error) => OriginTlsError::of(&error),
            };
            push_alert(&mut connection, &mut self.output);
            break Phase::Failed(trouble);
        };
    }
}

fn establish(
    connection: UnbufferedClientConnection,
    told: TrafficSecrets,
    unread: Vec<u8>,
) -> Result<OriginEstablished, Error> {
    let version = connection.protocol_version().and_then(Version::of).ok_or(Error::HandshakeNotComplete)?;
    let resumed = connection.handshake_kind() == Some(HandshakeKind::Resumed);
    let (secrets, keys) = connection.dangerous_into_kernel_connection()?;
    let records = Records::new(version, secrets, KeySchedule::of_client(told, keys))
        .map_err(|error| Error::General(error.to_string()))?;
    Ok(OriginEstablished { records, resumed, unread })
}

/// After an error the library has an alert for the origin, perhaps behind other messages. It is asked for no more than
/// that: it would look at its input once more, and panic.
fn push_alert(connection: &mut UnbufferedClientConnection, output: &mut Vec<u8>) {
    while connection.wants_write()
        && let Ok(ConnectionState::EncodeTlsData(mut data)) = connection.process_tls_records(&mut []).state
        && library::push(output, |room| data.encode(room)).is_ok()
    {}
}

impl fmt::Debug for OriginHandshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OriginHandshake").field("input", &self.input.len()).finish_non_exhaustive()
    }
}
