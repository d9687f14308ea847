//! What two servers say to each other: a question, and its reply. Both tell a load, and which documents the other one has.

use baton_dispatch::migration::LoadMetric;
use serde::{Deserialize, Serialize};

use crate::Origin;
use crate::trust::{Key, Purpose, hex};

/// A question, which is also news: how busy the server is, and what it lends to the other one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The server that asks.
    pub from: Origin,
    /// The server that is asked: what is meant for one is of no use against another.
    pub to: Origin,
    /// The time of the server that asks, in microseconds since 1970. Grows with each question.
    pub time_us: u64,
    /// The rest: the body.
    pub news: LoadReport,
}

/// The head of a question: `FROM TO TIME LENGTH DIGEST SIGNATURE`, in the [field](crate::SIGNATURE_FIELD). The signature
/// covers all before it, so that a stranger is refused before a byte of the body is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub(crate) from: Origin,
    pub(crate) to: Origin,
    pub(crate) time_us: u64,
    body_len: usize,
    /// SHA-256, in hexadecimal.
    body_digest: String,
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
    pub news: LoadReport,
}

/// How a server is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Load per second.
    pub load: u64,
    /// What it counts.
    pub metric: LoadMetric,
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
pub struct SignedMessage {
    /// The body, as JSON.
    pub body: Vec<u8>,
    /// Value of the [field](crate::SIGNATURE_FIELD).
    pub signature: String,
}

/// Why a question is not answered, or a reply not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// The message was not signed with the key.
    Signature,
    /// The message cannot be read.
    Unreadable,
    /// The message is from a server that is no peer, or meant for another one.
    Stranger,
    /// The message was sent too long ago, or too far in the future: the clocks differ.
    Clock,
    /// The message was heard before, or does not answer what was asked.
    Replayed,
    /// The server counts its load otherwise. All else that it says is heard.
    Metric,
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
            Self::Metric => "metric",
        }
    }
}

impl Question {
    /// Signs it.
    pub fn signed(&self, key: &Key) -> SignedMessage {
        // Numbers, strings and lists of them always can be written.
        let body = serde_json::to_vec(&self.news).unwrap_or_default();
        let head = format!("{} {} {}", self.from, self.to, self.time_us);
        SignedMessage { signature: sign_question(key, &head, &body), body }
    }
}

impl Envelope {
    /// Reads the signature field of a question. Nothing of it is believed yet.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(field: &str) -> Result<Self, Distrust> {
        let read = || {
            let mut words = field.split(' ');
            let mut word = || words.next();
            let (from, to) = (word()?.parse().ok()?, word()?.parse().ok()?);
            let (time_us, body_len) = (word()?.parse().ok()?, word()?.parse().ok()?);
            let body_digest = word()?.to_owned();
            word()?;
            words.next().is_none().then_some(Self { from, to, time_us, body_len, body_digest })
        };
        read().filter(|envelope| envelope.body_len <= WORDS_BYTES_MAX).ok_or(Distrust::Unreadable)
    }

    /// Whether the field that it was read from was signed with the key.
    pub(crate) fn is_signed(field: &str, key: &Key) -> bool {
        field.rsplit_once(' ').is_some_and(|(signed, signature)| {
            key.verifies(Purpose::Question, signed.as_bytes(), signature.as_bytes())
        })
    }

    /// The server that is asked.
    pub fn to(&self) -> &Origin {
        &self.to
    }

    /// Bytes of the body.
    pub fn body_len(&self) -> usize {
        self.body_len
    }

    /// What the body says.
    ///
    /// # Errors
    /// It is not the one that the head was signed for, or cannot be read.
    pub(crate) fn open(&self, body: &[u8]) -> Result<LoadReport, Distrust> {
        if body.len() != self.body_len || digest(body) != self.body_digest {
            return Err(Distrust::Signature);
        }
        serde_json::from_slice(body).map_err(|_| Distrust::Unreadable)
    }
}

impl Reply {
    /// Signs it.
    pub fn signed(&self, key: &Key) -> SignedMessage {
        let body = serde_json::to_vec(self).unwrap_or_default();
        SignedMessage { signature: key.sign(Purpose::Reply, &body), body }
    }

    /// Reads one that was signed with the key.
    ///
    /// # Errors
    /// It was not, or cannot be read.
    pub fn verified(body: &[u8], signature: &[u8], key: &Key) -> Result<Self, Distrust> {
        if body.len() > WORDS_BYTES_MAX {
            return Err(Distrust::Unreadable);
        }
        // Before anything is read of it.
        if !key.verifies(Purpose::Reply, body, signature) {
            return Err(Distrust::Signature);
        }
        serde_json::from_slice(body).map_err(|_| Distrust::Unreadable)
    }
}

/// The signature field of a question with this head, `FROM TO TIME`, and this body.
pub fn sign_question(key: &Key, head: &str, body: &[u8]) -> String {
    let signed = format!("{head} {} {}", body.len(), digest(body));
    let signature = key.sign(Purpose::Question, signed.as_bytes());
    format!("{signed} {signature}")
}

fn digest(body: &[u8]) -> String {
    hex(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, body).as_ref())
}

/// Bytes of the longest message: a hundred thousand paths of usual length.
pub const WORDS_BYTES_MAX: usize = 8 << 20;
