//! What two servers say to each other: a question, and its reply. Both tell a load, and which documents the other one has.

use serde::{Deserialize, Serialize};

use crate::Origin;
use crate::trust::{Key, Purpose};

/// A question, which is also news: how busy the server is, and what it lends to the other one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The server that asks.
    pub from: Origin,
    /// The server that is asked: what is meant for one is of no use against another.
    pub to: Origin,
    /// The time of the server that asks, in microseconds since 1970. Grows with each question.
    pub time_us: u64,
    /// The rest.
    pub news: News,
}

/// The reply to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The server that replies.
    pub from: Origin,
    /// The server that asked.
    pub to: Origin,
    /// [`Question::time_us`].
    pub answers_us: u64,
    /// The rest.
    pub news: News,
}

/// How a server is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct News {
    /// Requests per second.
    pub load: u64,
    /// The version of the list of documents that the other server may serve.
    pub version: u64,
    /// The list itself, unless the other server has it: paths as in URLs, without the slash in front, and the version since
    /// which each is lent. A document that is lent anew may have changed.
    pub lent: Option<Vec<(String, u64)>>,
    /// The version of the other server's list that is obeyed here.
    pub obeys: Option<u64>,
}

/// A signed message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The message, as JSON.
    pub body: Vec<u8>,
    /// Value of the [field](crate::SIGNATURE_FIELD).
    pub signature: String,
}

/// Why a question is not answered, or a reply not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// It was not signed with the key.
    Signature,
    /// It cannot be read.
    Unreadable,
    /// It is from a server that is no peer, or meant for another one.
    Stranger,
    /// It was sent too long ago, or too far in the future: the clocks differ.
    Clock,
    /// It was heard before, or does not answer what was asked.
    Replayed,
}

impl Distrust {
    /// One word for logs and metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Signature => "signature",
            Self::Unreadable => "unreadable",
            Self::Stranger => "stranger",
            Self::Clock => "clock",
            Self::Replayed => "replayed",
        }
    }
}

impl Question {
    /// Signs it.
    pub fn signed(&self, key: &Key) -> Signed {
        Signed::of(self, key, Purpose::Question)
    }

    /// The server that bytes which claim to be a question are meant for.
    pub fn addressee(body: &[u8]) -> Option<Origin> {
        #[derive(Deserialize)]
        struct Envelope {
            to: Origin,
        }
        serde_json::from_slice(body).ok().map(|envelope: Envelope| envelope.to)
    }

    /// Reads one that was signed with the key.
    ///
    /// # Errors
    /// It was not, or cannot be read.
    pub fn verified(body: &[u8], signature: &[u8], key: &Key) -> Result<Self, Distrust> {
        verified(body, signature, key, Purpose::Question)
    }
}

impl Reply {
    /// Signs it.
    pub fn signed(&self, key: &Key) -> Signed {
        Signed::of(self, key, Purpose::Reply)
    }

    /// Reads one that was signed with the key.
    ///
    /// # Errors
    /// It was not, or cannot be read.
    pub fn verified(body: &[u8], signature: &[u8], key: &Key) -> Result<Self, Distrust> {
        verified(body, signature, key, Purpose::Reply)
    }
}

impl Signed {
    fn of(message: &impl Serialize, key: &Key, purpose: Purpose) -> Self {
        // Numbers, strings and lists of them always can be written.
        let body = serde_json::to_vec(message).unwrap_or_default();
        Self { signature: key.sign(purpose, &body), body }
    }
}

/// The signature that a question of these bytes would have: for tests of readers.
pub fn sign_question(key: &Key, body: &[u8]) -> String {
    key.sign(Purpose::Question, body)
}

fn verified<M: for<'a> Deserialize<'a>>(
    body: &[u8],
    signature: &[u8],
    key: &Key,
    purpose: Purpose,
) -> Result<M, Distrust> {
    if body.len() > WORDS_BYTES_MAX {
        return Err(Distrust::Unreadable);
    }
    // Before anything is read of it.
    if !key.verifies(purpose, body, signature) {
        return Err(Distrust::Signature);
    }
    serde_json::from_slice(body).map_err(|_| Distrust::Unreadable)
}

/// Bytes of the longest message: a hundred thousand paths of usual length.
pub const WORDS_BYTES_MAX: usize = 8 << 20;
