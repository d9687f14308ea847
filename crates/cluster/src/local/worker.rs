//! Messages of the workers.

use std::fmt;

use baton_passport::{Passport, Refused};
use serde::{Deserialize, Serialize};

use super::{MESSAGE_BYTES_MAX, NAME_BYTES_MAX, REPORT_FLOWS_MAX, VERSION};

/// A message of a worker to its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromWorker {
    /// Gives a client to a node, with the request in the passport's `unread`. The client's socket comes with it, and the
    /// worker keeps no copy. If the node cannot take it, the connection comes back over `arrivals`, with `stay`.
    Handoff {
        /// The node's [`name`](super::Node::name).
        node: String,
        /// The client.
        passport: Box<Passport>,
    },
    /// Gives a client back to the front-end from which it came, with its next request in `unread`; `stay` as the worker says.
    /// The client's socket comes with it, and the worker keeps no copy. All its requests have ended.
    Return {
        /// Of the passport with which the connection came.
        flow: u64,
        /// The client.
        passport: Box<Passport>,
    },
    /// What has become of requests.
    Report(Report),
}

/// What has become of requests on connections that front-ends have handed over. The request with which a connection came has
/// begun with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The worker's process.
    #[serde(default)]
    pub worker: u32,
    /// The worker has taken these flows: they end with it, if it ends before its time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<u64>,
    /// A further request has begun on each of these flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub begun: Vec<u64>,
    /// A request has ended, with or without a whole answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<u64>,
    /// The connection is closed; its requests have ended, reported or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<u64>,
}

impl Report {
    /// Flows that it names, with repetitions: at most [`REPORT_FLOWS_MAX`].
    pub fn len(&self) -> usize {
        self.taken.len() + self.begun.len() + self.ended.len() + self.gone.len()
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Why a message is none of a worker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRefused {
    /// The message is of another version.
    Version(u32),
    /// Its first line cannot be read, or names more, or something longer, than allowed.
    Malformed,
    /// Its passport is none.
    Passport(Refused),
}

impl fmt::Display for MessageRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "it is of version {version}, not {VERSION}"),
            Self::Malformed => f.write_str("its first line cannot be read"),
            Self::Passport(refused) => write!(f, "its passport is refused: {refused}"),
        }
    }
}

impl std::error::Error for MessageRefused {}

#[derive(Serialize, Deserialize)]
struct Head {
    version: u32,
    #[serde(flatten)]
    message: Message,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
enum Message {
    #[serde(rename = "hand-off")]
    Handoff {
        node: String,
    },
    Return {
        flow: u64,
    },
    Report(Report),
}

/// What a message of any version has.
#[derive(Deserialize)]
struct AnyVersion {
    version: u32,
}

impl FromWorker {
    /// The message, for a socket that keeps boundaries; the client's socket goes with it. `None`: the passport does not fit
    /// into a message, or a name or a report is too long.
    pub fn to_message(&self) -> Option<Vec<u8>> {
        let (message, passport) = match self {
            Self::Handoff { node, .. } if node.len() > NAME_BYTES_MAX => return None,
            Self::Handoff { node, passport } => (Message::Handoff { node: node.clone() }, Some(passport)),
            Self::Return { flow, passport } => (Message::Return { flow: *flow }, Some(passport)),
            Self::Report(report) if report.len() > REPORT_FLOWS_MAX => return None,
            Self::Report(report) => (Message::Report(report.clone()), None),
        };
        let mut bytes = serde_json::to_vec(&Head { version: VERSION, message }).ok()?;
        bytes.push(b'\n');
        if let Some(passport) = passport {
            // No part goes to another host: it may have keys.
            let message = passport.to_message().filter(|_| !passport.has_parts())?;
            bytes.extend_from_slice(&message);
        }
        (bytes.len() <= MESSAGE_BYTES_MAX).then_some(bytes)
    }

    /// Reads a message.
    ///
    /// # Errors
    /// [`MessageRefused`].
    pub fn from_message(bytes: &[u8]) -> Result<Self, MessageRefused> {
        let newline = bytes.iter().take(MESSAGE_BYTES_MAX).position(|byte| *byte == b'\n');
        let (head, rest) = bytes.split_at(newline.ok_or(MessageRefused::Malformed)?);
        let read = serde_json::from_slice::<Head>(head);
        let version = match &read {
            Ok(head) => head.version,
            Err(_) => {
                serde_json::from_slice::<AnyVersion>(head).map_err(|_| MessageRefused::Malformed)?.version
            }
        };
        if version != VERSION {
            return Err(MessageRefused::Version(version));
        }
        let head = read.map_err(|_| MessageRefused::Malformed)?;
        let passport = || Passport::from_message(&rest[1..]).map(Box::new).map_err(MessageRefused::Passport);
        match head.message {
            Message::Handoff { node } if node.len() <= NAME_BYTES_MAX => {
                Ok(Self::Handoff { node, passport: passport()? })
            }
            Message::Return { flow } => Ok(Self::Return { flow, passport: passport()? }),
            Message::Report(report) if report.len() <= REPORT_FLOWS_MAX && rest.len() == 1 => {
                Ok(Self::Report(report))
            }
            Message::Handoff { .. } | Message::Report(_) => Err(MessageRefused::Malformed),
        }
    }
}
