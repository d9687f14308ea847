//! Why the handshake with an origin came to nothing.

use std::fmt;

use rustls::{AlertDescription, CertificateError, Error};

use crate::Alert;

/// The reason in a closed list: the word for log and metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginTlsError {
    /// The origin's bytes are not TLS.
    NotTls,
    /// No authority that is trusted has issued its certificate.
    UnknownIssuer,
    /// Its certificate is for other names.
    WrongName,
    /// Its certificate has ended, or is not valid yet.
    NotInForce,
    /// Its certificate does not hold for another reason.
    BadCertificate,
    /// There is no version, cipher suite or application protocol in common.
    NothingInCommon,
    /// The origin demands a certificate of ours.
    WantsCertificate,
    /// The origin ended the handshake with this alert.
    PeerAlert(Alert),
    /// The origin ended the connection in the middle.
    Left,
    /// The origin sent what no server should.
    Misbehaved,
    /// The library failed.
    Internal,
}

impl OriginTlsError {
    /// The reason in one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotTls => "not-tls",
            Self::UnknownIssuer => "unknown-issuer",
            Self::WrongName => "wrong-name",
            Self::NotInForce => "certificate-not-in-force",
            Self::BadCertificate => "bad-certificate",
            Self::NothingInCommon => "nothing-in-common",
            Self::WantsCertificate => "wants-certificate",
            Self::PeerAlert(_) => "peer-alert",
            Self::Left => "left",
            Self::Misbehaved => "misbehaved",
            Self::Internal => "internal",
        }
    }

    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::InvalidCertificate(error) => of_certificate(error),
            Error::NoCertificatesPresented => Self::BadCertificate,
            Error::PeerIncompatible(_) | Error::NoApplicationProtocol => Self::NothingInCommon,
            Error::AlertReceived(AlertDescription::CertificateRequired) => Self::WantsCertificate,
            Error::AlertReceived(
                AlertDescription::HandshakeFailure
                | AlertDescription::ProtocolVersion
                | AlertDescription::NoApplicationProtocol,
            ) => Self::NothingInCommon,
            Error::AlertReceived(alert) => Self::PeerAlert(Alert(u8::from(*alert))),
            Error::InvalidMessage(_) => Self::NotTls,
            Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::DecryptError
            | Error::PeerMisbehaved(_)
            | Error::PeerSentOversizedRecord => Self::Misbehaved,
            _ => Self::Internal,
        }
    }
}

fn of_certificate(error: &CertificateError) -> OriginTlsError {
    match error {
        CertificateError::UnknownIssuer => OriginTlsError::UnknownIssuer,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            OriginTlsError::WrongName
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => OriginTlsError::NotInForce,
        _ => OriginTlsError::BadCertificate,
    }
}

impl fmt::Display for OriginTlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotTls => "it does not speak TLS on this port: is its address one for http?",
            Self::UnknownIssuer => {
                "no trusted authority has issued its certificate: name its authority with `ca`"
            }
            Self::WrongName => "its certificate is for other names: name one of them with `name` of `tls`",
            Self::NotInForce => "its certificate has ended or is not valid yet",
            Self::BadCertificate => "its certificate does not hold",
            Self::NothingInCommon => {
                "it has no version, cipher or protocol of TLS in common with this server"
            }
            Self::WantsCertificate => {
                "it demands a client certificate: name one with `certificate` and `key`"
            }
            Self::PeerAlert(alert) => return write!(f, "it ended the TLS handshake with the alert {alert}"),
            Self::Left => "it ended the connection during the TLS handshake",
            Self::Misbehaved => "it sent what no TLS server should",
            Self::Internal => "the TLS library failed",
        })
    }
}

impl std::error::Error for OriginTlsError {}
