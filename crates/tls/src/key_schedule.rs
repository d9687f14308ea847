//! What follows a handshake under TLS 1.3: new keys, and tickets from a server.
//!
//! New keys are derived here (RFC 8446, section 7.2), from secrets that the library has told at the end of the handshake
//! ([`TrafficSecrets`]): the library keeps its own for itself, and a connection that moves has to take them along.

use aws_lc_rs::hkdf::{HKDF_SHA256, HKDF_SHA384, KeyType, Prk};
use baton_passport::parcel::{Packer, Unpacker};
use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use zeroize::Zeroizing;

use crate::record_key::Keys;
use crate::traffic_secrets::{Secret, TrafficSecrets};
use crate::{Cipher, RecordError};

/// The secrets of an established connection.
pub(crate) struct KeySchedule {
    transmit: Secret,
    receive: Secret,
    tickets: Tickets,
}

/// Whether the peer may send tickets, and what becomes of them.
enum Tickets {
    /// The other end is a client.
    None,
    /// The library keeps them for the next handshake.
    Kept(Box<KernelConnection<ClientConnectionData>>),
    /// The process that made the handshake would have kept them.
    Dropped,
}

impl KeySchedule {
    /// Of a connection that a client has made.
    pub(crate) fn of_server(secrets: TrafficSecrets) -> Self {
        Self { transmit: secrets.of_server, receive: secrets.of_client, tickets: Tickets::None }
    }

    /// Of a connection to an origin.
    pub(crate) fn of_client(secrets: TrafficSecrets, keys: KernelConnection<ClientConnectionData>) -> Self {
        let tickets = Tickets::Kept(Box::new(keys));
        Self { transmit: secrets.of_client, receive: secrets.of_server, tickets }
    }

    /// Whether the library has told both secrets.
    pub(crate) fn is_complete(&self, cipher: Cipher) -> bool {
        [&self.transmit, &self.receive].iter().all(|secret| secret.len() == secret_bytes(cipher))
    }

    /// The peer has changed its key: the next one.
    pub(crate) fn next_receive(&mut self, cipher: Cipher) -> Result<Keys, RecordError> {
        next(&mut self.receive, cipher)
    }

    /// Our next key.
    pub(crate) fn next_transmit(&mut self, cipher: Cipher) -> Result<Keys, RecordError> {
        next(&mut self.transmit, cipher)
    }

    /// Whether the peer may send tickets: it is a server.
    pub(crate) fn may_get_tickets(&self) -> bool {
        !matches!(self.tickets, Tickets::None)
    }

    /// Keeps a ticket for the next handshake. Returns whether it is well-formed, and from a server.
    pub(crate) fn handle_ticket(&mut self, payload: &[u8]) -> bool {
        match &mut self.tickets {
            Tickets::None => false,
            Tickets::Kept(keys) => keys.handle_new_session_ticket(payload).is_ok(),
            Tickets::Dropped => true,
        }
    }

    pub(crate) fn pack(&self, packer: &mut Packer) {
        packer.bytes(&self.transmit).bytes(&self.receive).flag(self.may_get_tickets());
    }

    pub(crate) fn unpack(packed: &mut Unpacker<'_>, cipher: Cipher) -> Option<Self> {
        let mut secret = || {
            packed
                .bytes()
                .filter(|bytes| bytes.len() == secret_bytes(cipher))
                .map(|bytes| Secret::new(bytes.to_vec()))
        };
        let (transmit, receive) = (secret()?, secret()?);
        let tickets = if packed.flag()? { Tickets::Dropped } else { Tickets::None };
        Some(Self { transmit, receive, tickets })
    }
}

/// Bytes of a traffic secret: those of the hash of the suite.
fn secret_bytes(cipher: Cipher) -> usize {
    match cipher {
        Cipher::Aes128Gcm | Cipher::ChaCha20Poly1305 => 32,
        Cipher::Aes256Gcm => 48,
    }
}

/// Replaces a secret by the next one, and derives its keys (RFC 8446, sections 7.2 and 7.3).
fn next(secret: &mut Secret, cipher: Cipher) -> Result<Keys, RecordError> {
    let mut next = Secret::new(vec![0; secret.len()]);
    expand(secret, cipher, b"traffic upd", &mut next)?;
    *secret = next;
    let mut key = Zeroizing::new([0; 32]);
    let mut iv = [0; 12];
    expand(secret, cipher, b"key", &mut key[..cipher.key_bytes()])?;
    expand(secret, cipher, b"iv", &mut iv)?;
    Ok(Keys::new(cipher, &key[..cipher.key_bytes()], iv))
}

/// HKDF-Expand-Label without a context (RFC 8446, section 7.1).
fn expand(secret: &[u8], cipher: Cipher, label: &[u8], out: &mut [u8]) -> Result<(), RecordError> {
    const PREFIX: &[u8] = b"tls13 ";
    let hash = match cipher {
        Cipher::Aes128Gcm | Cipher::ChaCha20Poly1305 => HKDF_SHA256,
        Cipher::Aes256Gcm => HKDF_SHA384,
    };
    let len = (out.len() as u16).to_be_bytes();
    let label_len = [(PREFIX.len() + label.len()) as u8];
    let info: [&[u8]; 5] = [&len, &label_len, PREFIX, label, &[0]];
    let secret = Prk::new_less_safe(hash, secret);
    let expanded = secret.expand(&info, Length(out.len())).and_then(|okm| okm.fill(out));
    expanded.map_err(|_| RecordError::Internal)
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}
