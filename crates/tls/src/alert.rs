//! Alerts: what one end tells the other of an end (RFC 8446, section 6).

use std::fmt;

use rustls::AlertDescription;

/// The description of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert(pub u8);

impl Alert {
    /// Nothing more will follow.
    pub const CLOSE_NOTIFY: Self = Self(0);
    /// A message came in the wrong place.
    pub const UNEXPECTED_MESSAGE: Self = Self(10);
    /// A record does not decrypt.
    pub const BAD_RECORD_MAC: Self = Self(20);
    /// A record is too long.
    pub const RECORD_OVERFLOW: Self = Self(22);
    /// There is no common version.
    pub const PROTOCOL_VERSION: Self = Self(70);
    /// Something failed that is not the peer's business.
    pub const INTERNAL_ERROR: Self = Self(80);
    /// The user has ended the handshake; a `close_notify` follows.
    pub const USER_CANCELED: Self = Self(90);
    /// The connection will not be negotiated anew (TLS 1.2 only).
    pub const NO_RENEGOTIATION: Self = Self(100);
    /// There is no certificate for the name.
    pub const UNRECOGNIZED_NAME: Self = Self(112);

    /// What a record says that carries an alert.
    pub const CONTENT_TYPE: u8 = 21;

    /// The two bytes of the alert. All but these three end the connection at once.
    pub fn message(self) -> [u8; 2] {
        let is_warning = matches!(self, Self::CLOSE_NOTIFY | Self::USER_CANCELED | Self::NO_RENEGOTIATION);
        [if is_warning { 1 } else { 2 }, self.0]
    }

    /// The record that carries the alert before there are keys.
    pub(crate) fn in_clear(self) -> [u8; 7] {
        let [level, description] = self.message();
        [Self::CONTENT_TYPE, 3, 3, 0, 2, level, description]
    }
}

/// The name in the words of RFC 8446, such as `UnknownCA`, or a number.
impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", AlertDescription::from(self.0))
    }
}
