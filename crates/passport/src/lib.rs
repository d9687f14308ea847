//! A client's connection between two requests, as a message: what the process that goes on with it cannot ask the socket.
//!
//! ```text
//!   {"version":1,"listener":{"tcp":"0.0.0.0:80"},"peer":"192.0.2.7:40000", … ,"unread":5}\n
//!   GET /
//! ```
//!
//! The head is JSON, as in the other messages between two servers, whose versions may differ: fields that are not known are
//! ignored. What lacks a field, or is of another version, is refused. Behind the head comes the input that was read from the
//! socket and not yet answered, as it was.
//!
//! Sans-IO: the descriptor travels beside the message.

mod address;

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

pub use address::Address;

/// A client between two requests, who speaks HTTP/1 in clear.
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
    /// By which the cluster's mover knows the connection, if a node of a cluster has it from a front-end.
    pub flow: Option<u64>,
    /// No node may be given the connection for the request in `unread`: one has refused it, or none was reachable.
    pub stay: bool,
    /// What the client has sent and no request was made of: at most [`UNREAD_BYTES_MAX`].
    pub unread: Vec<u8>,
}

/// Most bytes of input that travel with a connection: a head that is about to be complete.
pub const UNREAD_BYTES_MAX: usize = 32 << 10;

/// Most bytes of a message.
pub const MESSAGE_BYTES_MAX: usize = UNREAD_BYTES_MAX + HEAD_BYTES_MAX;

/// A path of a Unix socket, two addresses and numbers, with room for what later versions add.
const HEAD_BYTES_MAX: usize = 4 << 10;

const VERSION: u32 = 1;

/// Why a message is no passport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is of another version.
    Version(u32),
    /// It has no head, or one that cannot be read.
    Malformed,
    /// What follows the head is not as long as the head says, or longer than allowed.
    Length,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "it is of version {version}, not {VERSION}"),
            Self::Malformed => f.write_str("its head cannot be read"),
            Self::Length => f.write_str("the input that it announces is not there, or too long"),
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
    unread: usize,
}

/// What a message of any version has.
#[derive(Deserialize)]
struct AnyVersion {
    version: u32,
}

impl Passport {
    /// The message. `None`: there is more unread input, or a longer path, than a message may have.
    pub fn to_message(&self) -> Option<Vec<u8>> {
        let head = Head {
            version: VERSION,
            listener: self.listener.clone(),
            peer: self.peer,
            requests: self.requests,
            written: self.written,
            was_passed: self.was_passed,
            flow: self.flow,
            stay: self.stay,
            unread: self.unread.len(),
        };
        let mut message = serde_json::to_vec(&head).ok()?;
        message.push(b'\n');
        if message.len() > HEAD_BYTES_MAX || self.unread.len() > UNREAD_BYTES_MAX {
            return None;
        }
        message.extend_from_slice(&self.unread);
        Some(message)
    }

    /// Reads a message.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn from_message(message: &[u8]) -> Result<Self, Refused> {
        let newline = message.iter().take(HEAD_BYTES_MAX).position(|byte| *byte == b'\n');
        let (head, unread) = message.split_at(newline.ok_or(Refused::Malformed)?);
        let AnyVersion { version } = serde_json::from_slice(head).map_err(|_| Refused::Malformed)?;
        if version != VERSION {
            return Err(Refused::Version(version));
        }
        let head: Head = serde_json::from_slice(head).map_err(|_| Refused::Malformed)?;
        let unread = &unread[1..];
        if unread.len() != head.unread || unread.len() > UNREAD_BYTES_MAX {
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
            unread: unread.to_vec(),
        })
    }
}
