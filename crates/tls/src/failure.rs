//! Why a handshake came to nothing.

use std::fmt;

use rustls::{AlertDescription, Error, PeerIncompatible};

use crate::Alert;

/// The reason in a closed list: the word for log and metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// The client's bytes are not TLS.
    NotTls,
    /// There is no certificate for the name that the client asked for.
    UnknownName,
    /// Client and server have no version in common.
    NoCommonVersion,
    /// They have no cipher suite, key exchange or signature in common.
    NoCommonCipher,
    /// They have no application protocol in common.
    NoCommonProtocol,
    /// The client has not sent the certificate that it must have.
    NoCertificate,
    /// The client's certificate does not hold.
    BadCertificate,
    /// The client ended the handshake with an alert: for example, it does not trust the server's certificate.
    PeerAlert,
    /// The client sent something that no client should.
    Misbehaved,
    /// The client sent more than a handshake takes.
    TooLarge,
    /// The client left in the middle.
    Left,
    /// The client took too long.
    TimedOut,
    /// The server has too many handshakes under way.
    Overloaded,
    /// The client has its share of the handshakes under way.
    OverShare,
    /// The server failed.
    Internal,
}

impl FailureReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 15] = [
        Self::NotTls,
        Self::UnknownName,
        Self::NoCommonVersion,
        Self::NoCommonCipher,
        Self::NoCommonProtocol,
        Self::NoCertificate,
        Self::BadCertificate,
        Self::PeerAlert,
        Self::Misbehaved,
        Self::TooLarge,
        Self::Left,
        Self::TimedOut,
        Self::Overloaded,
        Self::OverShare,
        Self::Internal,
    ];

    /// The reason in one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotTls => "not-tls",
            Self::UnknownName => "unknown-name",
            Self::NoCommonVersion => "no-common-version",
            Self::NoCommonCipher => "no-common-cipher",
            Self::NoCommonProtocol => "no-common-protocol",
            Self::NoCertificate => "no-client-certificate",
            Self::BadCertificate => "bad-client-certificate",
            Self::PeerAlert => "peer-alert",
            Self::Misbehaved => "misbehaved",
            Self::TooLarge => "too-large",
            Self::Left => "left",
            Self::TimedOut => "timed-out",
            Self::Overloaded => "overloaded",
            Self::OverShare => "over-share",
            Self::Internal => "internal",
        }
    }
}

/// A handshake's failure: the reason, and what exactly happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandshakeFailure {
    /// The reason in a closed list.
    pub reason: FailureReason,
    /// What happened, for the log.
    pub detail: String,
}

impl HandshakeFailure {
    /// A failure that is not the library's.
    pub fn new(reason: FailureReason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }
}

impl fmt::Display for HandshakeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.word(), self.detail)
    }
}

impl std::error::Error for HandshakeFailure {}

impl From<Error> for HandshakeFailure {
    fn from(error: Error) -> Self {
        let detail = match &error {
            Error::AlertReceived(alert) => format!("the client sent the alert {}", Alert(u8::from(*alert))),
            other => other.to_string(),
        };
        Self { reason: reason_of(&error), detail }
    }
}

fn reason_of(error: &Error) -> FailureReason {
    match error {
        Error::PeerIncompatible(incompatible) => match incompatible {
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled => FailureReason::NoCommonVersion,
            _ => FailureReason::NoCommonCipher,
        },
        Error::NoApplicationProtocol => FailureReason::NoCommonProtocol,
        Error::NoCertificatesPresented => FailureReason::NoCertificate,
        Error::InvalidCertificate(_) => FailureReason::BadCertificate,
        Error::AlertReceived(AlertDescription::CloseNotify | AlertDescription::UserCanceled) => {
            FailureReason::Left
        }
        Error::AlertReceived(_) => FailureReason::PeerAlert,
        Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::InvalidMessage(_)
        | Error::DecryptError
        | Error::PeerMisbehaved(_)
        | Error::PeerSentOversizedRecord => FailureReason::Misbehaved,
        _ => FailureReason::Internal,
    }
}
