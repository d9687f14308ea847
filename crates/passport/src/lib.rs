//! A client's connection between two requests, as a message: what the process that goes on with it cannot ask the socket.
//!
//! ```text
//!   {"version":1,"listener":{"tcp":"0.0.0.0:80"},"peer":"192.0.2.7:40000", … ,"unread":5}\n
//!   GET /
//! ```
//!
//! The head is JSON, as in the other messages between two servers, whose versions may differ: fields that are not known are
//! ignored. What lacks a field, or is of another version, is refused. Behind the head comes the input that was read from the
//! socket and not yet answered, as it was, and behind that the parts that the head names, such as the keys of TLS.
//!
//! A client of HTTP/1 in clear has no parts: its message is of version 1, which older servers read. Any other is of version 2.
//!
//! Sans-IO: the descriptor travels beside the message.

mod address;
pub mod parcel;
mod part;

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use zeroize::Zeroizing;

pub use address::Address;
pub use part::{PARTS_BYTES_MAX, Part, PartKind};

/// A client between two requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passport {
    /// Where the client connected to.
    pub listener: Address,
    /// The client's address; `None`: a client on a Unix socket.
    pub peer: Option<SocketAddr>,
    /// Requests that were answered on the connection.
    pub requests: u64,
    /// Bytes that were written to the client, by the server and by applications.
    pub written: u64,
    /// Whether an application was ever given the socket, and may hold a copy.
    pub was_passed: bool,
    /// By which the cluster's handoff agent knows the connection, if a node of a cluster has it from a front-end.
    pub flow: Option<u64>,
    /// No node may be given the connection for the request in `unread`: one has refused it, or none was reachable.
    pub stay: bool,
    /// Milliseconds that the client may still take for what is awaited of it; `None`: as long as a new one.
    pub left_ms: Option<u64>,
    /// What the client has sent and no request was made of: at most [`UNREAD_BYTES_MAX`].
    pub unread: Vec<u8>,
    /// Whether the handshake of TLS is to come, of which nothing has.
    pub begins_with_tls: bool,
    /// What else is known, at most one part of each kind.
    pub parts: Vec<Part>,
}

/// Most bytes of input that travel with a connection: a head that is about to be complete.
pub const UNREAD_BYTES_MAX: usize = 32 << 10;

/// Most bytes of a message.
pub const MESSAGE_BYTES_MAX: usize = HEAD_BYTES_MAX + UNREAD_BYTES_MAX + PARTS_BYTES_MAX;

/// A path of a Unix socket, two addresses and numbers, with room for what later versions add.
const HEAD_BYTES_MAX: usize = 4 << 10;

/// The highest version that is read here.
pub const VERSION_MAX: u32 = 2;

/// Most parts: more than there are kinds.
const PARTS_MAX: usize = 8;

/// Why a message is no passport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The passport is of another version.
    Version(u32),
    /// The passport has no head, or one that cannot be read.
    Malformed,
    /// What follows the head is not as long as the head says, or longer than allowed.
    Length,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => {
                write!(f, "it is of version {version}, and none above {VERSION_MAX} is known")
            }
            Self::Malformed => f.write_str("its head cannot be read"),
            Self::Length => f.write_str("what its head announces is not there, or too long"),
        }
    }
}

impl std::error::Error for Refused {}

#[derive(Serialize, Deserialize)]
struct Head {
    version: u32,
    listener: Address,
    peer: Option<SocketAddr>,
    requests: u64,
    written: u64,
    was_passed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flow: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    stay: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left_ms: Option<u64>,
    unread: usize,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    begins_with_tls: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<(PartKind, usize)>,
}

/// What a message of any version has.
#[derive(Deserialize)]
struct AnyVersion {
    version: u32,
}

impl Passport {
    /// The lowest version that says all of it.
    pub fn version(&self) -> u32 {
        if self.parts.is_empty() && !self.begins_with_tls { 1 } else { 2 }
    }

    /// Whether it has parts, which stay on their host.
    pub fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// The part of a machine.
    pub fn part(&self, kind: PartKind) -> Option<&[u8]> {
        self.parts.iter().find(|part| part.kind == kind).map(|part| &**part.bytes)
    }

    /// The message. `None`: there is more unread input, or a longer path, or more in parts, than a message may have.
    pub fn to_message(&self) -> Option<Zeroizing<Vec<u8>>> {
        let head = Head {
            version: self.version(),
            listener: self.listener.clone(),
            peer: self.peer,
            requests: self.requests,
            written: self.written,
            was_passed: self.was_passed,
            flow: self.flow,
            stay: self.stay,
            left_ms: self.left_ms,
            unread: self.unread.len(),
            begins_with_tls: self.begins_with_tls,
            parts: self.parts.iter().map(|part| (part.kind, part.bytes.len())).collect(),
        };
        let head = serde_json::to_vec(&head).ok()?;
        let of_parts: usize = self.parts.iter().map(|part| part.bytes.len()).sum();
        if head.len() >= HEAD_BYTES_MAX
            || self.unread.len() > UNREAD_BYTES_MAX
            || of_parts > PARTS_BYTES_MAX
            || self.parts.len() > PARTS_MAX
        {
            return None;
        }
        // All at once: memory that is outgrown would keep keys.
        let mut message = Zeroizing::new(Vec::with_capacity(head.len() + 1 + self.unread.len() + of_parts));
        message.extend_from_slice(&head);
        message.push(b'\n');
        message.extend_from_slice(&self.unread);
        self.parts.iter().for_each(|part| message.extend_from_slice(&part.bytes));
        Some(message)
    }

    /// Reads a message.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn from_message(message: &[u8]) -> Result<Self, Refused> {
        let newline = message.iter().take(HEAD_BYTES_MAX).position(|byte| *byte == b'\n');
        let (head, rest) = message.split_at(newline.ok_or(Refused::Malformed)?);
        let read = serde_json::from_slice::<Head>(head);
        let version = match &read {
            Ok(head) => head.version,
            Err(_) => serde_json::from_slice::<AnyVersion>(head).map_err(|_| Refused::Malformed)?.version,
        };
        if !(1..=VERSION_MAX).contains(&version) {
            return Err(Refused::Version(version));
        }
        let head = read.map_err(|_| Refused::Malformed)?;
        if head.parts.len() > PARTS_MAX || head.unread > UNREAD_BYTES_MAX {
            return Err(Refused::Length);
        }
        let (unread, mut rest) = rest[1..].split_at_checked(head.unread).ok_or(Refused::Length)?;
        let mut parts: Vec<Part> = Vec::with_capacity(head.parts.len());
        for (kind, len) in head.parts {
            let (bytes, behind) = rest.split_at_checked(len).ok_or(Refused::Length)?;
            if parts.iter().any(|part| part.kind == kind) {
                return Err(Refused::Malformed);
            }
            parts.push(Part { kind, bytes: Zeroizing::new(bytes.to_vec()) });
            rest = behind;
        }
        if !rest.is_empty() || parts.iter().map(|part| part.bytes.len()).sum::<usize>() > PARTS_BYTES_MAX {
            return Err(Refused::Length);
        }
        Ok(Self {
            listener: head.listener,
            peer: head.peer,
            requests: head.requests,
            written: head.written,
            was_passed: head.was_passed,
            flow: head.flow,
            stay: head.stay,
            left_ms: head.left_ms,
            unread: unread.to_vec(),
            begins_with_tls: head.begins_with_tls,
            parts,
        })
    }
}
