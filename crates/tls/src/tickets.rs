//! Session tickets: encrypted by keys that all workers share, so that any of them resumes a session of any other.
//!
//! ```text
//! master: draw ── every half: rotate ──► workers: Tickets::replace
//!           previous │ current │ next
//!            opens   │ seals,  │ opens: a worker that has
//!                    │ opens   │ rotated already seals by it
//! ```
//!
//! A ticket thus opens for half of its life to all of it; erasing the keys then ends what a stolen one could decrypt
//! (RFC 8446, C.4).

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk};
use rustls::server::ProducesTickets;
use zeroize::Zeroizing;

use crate::clients::PolicyId;

/// The life of a ticket in seconds, unless the configuration says otherwise: half a day.
pub const TICKETS_OPEN_S: u64 = 12 * 60 * 60;

/// Secrets from which the keys are derived: previous, current, next. Zeroed on drop.
pub struct TicketSecrets(Zeroizing<[u8; 3 * SECRET_BYTES]>);

const SECRET_BYTES: usize = 32;

impl TicketSecrets {
    /// Bytes of all of them.
    pub const BYTES: usize = 3 * SECRET_BYTES;

    /// Draws new ones.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn draw() -> Result<Self, NoRandomness> {
        let mut secrets = Zeroizing::new([0; Self::BYTES]);
        aws_lc_rs::rand::fill(&mut *secrets).map_err(|_| NoRandomness)?;
        Ok(Self(secrets))
    }

    /// The secrets of another process, as [`bytes`](Self::bytes) gave them. `None` if it is another number of bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut secrets = Zeroizing::new([0; Self::BYTES]);
        (bytes.len() == Self::BYTES).then(|| secrets.copy_from_slice(bytes))?;
        Some(Self(secrets))
    }

    /// For another process.
    pub fn bytes(&self) -> &[u8] {
        &*self.0
    }

    /// Lets the current one become the previous one, the next the current one, and draws another.
    ///
    /// # Errors
    /// The system has no random numbers; nothing has changed.
    pub fn rotate(&mut self) -> Result<(), NoRandomness> {
        let mut next = Zeroizing::new([0; SECRET_BYTES]);
        aws_lc_rs::rand::fill(&mut *next).map_err(|_| NoRandomness)?;
        self.0.copy_within(SECRET_BYTES.., 0);
        self.0[2 * SECRET_BYTES..].copy_from_slice(&*next);
        Ok(())
    }
}

impl fmt::Debug for TicketSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketSecrets")
    }
}

/// The system gave no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRandomness;

impl fmt::Display for NoRandomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the system gave no random numbers")
    }
}

impl std::error::Error for NoRandomness {}

/// The secrets that a process uses, shared by all servers in it: a reload makes new servers, and sessions go on.
#[derive(Debug)]
pub struct Tickets {
    secrets: RwLock<Arc<TicketSecrets>>,
    life_s: AtomicU32,
}

impl Tickets {
    /// Begins with these.
    pub fn new(secrets: TicketSecrets) -> Self {
        let tickets = Self { secrets: RwLock::new(Arc::new(secrets)), life_s: AtomicU32::new(0) };
        tickets.open_for(Duration::from_secs(TICKETS_OPEN_S));
        tickets
    }

    /// Tells clients that tickets open for so long: twice as long as each secret seals.
    pub fn open_for(&self, life: Duration) {
        self.life_s.store(u32::try_from(life.as_secs()).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// Goes on with these.
    pub fn replace(&self, secrets: TicketSecrets) {
        *self.secrets.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(secrets);
    }

    fn current(&self) -> Arc<TicketSecrets> {
        Arc::clone(&self.secrets.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Seals and opens the tickets of the sites with one policy on certificates of clients. Each policy has keys of its own:
/// a session that began without a certificate must not be resumed where one is required (CVE-2025-23419).
#[derive(Debug)]
pub(crate) struct Ticketer {
    tickets: Arc<Tickets>,
    policy: Option<PolicyId>,
    derived: RwLock<Option<Derived>>,
}

/// Keys, and the secrets that they were derived from.
#[derive(Clone, Debug)]
struct Derived {
    secrets: Arc<TicketSecrets>,
    keys: Arc<[Key; 3]>,
}

#[derive(Debug)]
struct Key {
    /// Tells which key has sealed a ticket; drawn like a key, so it says nothing to others.
    name: [u8; NAME_BYTES],
    key: RandomizedNonceKey,
}

const NAME_BYTES: usize = 16;
const CURRENT: usize = 1;

/// Longest ticket that is opened: with a client's chain of certificates it can have some kilobytes. TLS bounds it to
/// 64 KiB.
const TICKET_BYTES_MAX: usize = 1 << 16;

impl Ticketer {
    pub(crate) fn new(tickets: Arc<Tickets>, policy: Option<PolicyId>) -> Self {
        Self { tickets, policy, derived: RwLock::new(None) }
    }

    fn keys(&self) -> Option<Arc<[Key; 3]>> {
        let secrets = self.tickets.current();
        let known = self.derived.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known.filter(|known| Arc::ptr_eq(&known.secrets, &secrets)) {
            return Some(known.keys);
        }
        let mut each = secrets.0.chunks_exact(SECRET_BYTES).map(|secret| Key::derive(secret, self.policy));
        let keys = Arc::new([each.next()??, each.next()??, each.next()??]);
        let derived = Derived { secrets, keys: Arc::clone(&keys) };
        *self.derived.write().unwrap_or_else(PoisonError::into_inner) = Some(derived);
        Some(keys)
    }
}

impl Key {
    fn derive(secret: &[u8], policy: Option<PolicyId>) -> Option<Self> {
        let policy = policy.as_ref().map_or(&b"no certificates of clients"[..], PolicyId::bytes);
        let mut bytes = Zeroizing::new([0; NAME_BYTES + 32]);
        let info = [b"baton session tickets", policy];
        let derived = Prk::new_less_safe(HKDF_SHA256, secret);
        derived.expand(&info, Length(bytes.len())).and_then(|okm| okm.fill(&mut *bytes)).ok()?;
        let (name, key) = bytes.split_at(NAME_BYTES);
        Some(Self { name: name.try_into().ok()?, key: RandomizedNonceKey::new(&AES_256_GCM, key).ok()? })
    }
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl ProducesTickets for Ticketer {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.tickets.life_s.load(Ordering::Relaxed)
    }

    /// Name, nonce, ciphertext, tag.
    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let keys = self.keys()?;
        let Key { name, key } = &keys[CURRENT];
        let mut sealed = plain.to_vec();
        let nonce = key.seal_in_place_append_tag(Aad::from(name), &mut sealed).ok()?;
        Some([&name[..], nonce.as_ref(), &sealed].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_at_checked(NAME_BYTES)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
        let keys = self.keys()?;
        let key = keys.iter().find(|key| key.name == name).filter(|_| ticket.len() <= TICKET_BYTES_MAX)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut plain = sealed.to_vec();
        let len = key.key.open_in_place(nonce, Aad::from(&key.name), &mut plain).ok()?.len();
        plain.truncate(len);
        Some(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(first: u8) -> TicketSecrets {
        TicketSecrets::from_bytes(&[first; TicketSecrets::BYTES].map({
            let mut at = 0;
            move |byte| {
                at += 1;
                byte + (at - 1) / 32
            }
        }))
        .unwrap()
    }

    fn ticketer(tickets: &Arc<Tickets>) -> Ticketer {
        Ticketer::new(Arc::clone(tickets), None)
    }

    #[test]
    fn a_ticket_opens_in_another_process_until_its_key_has_been_replaced_twice() {
        let ours = Arc::new(Tickets::new(TicketSecrets::draw().unwrap()));
        let theirs = Arc::new(Tickets::new(TicketSecrets::from_bytes(ours.current().bytes()).unwrap()));
        let ticket = ticketer(&ours).encrypt(b"session").unwrap();
        let other = ticketer(&theirs);
        assert_eq!(other.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        for opens in [true, false] {
            let mut secrets = TicketSecrets::from_bytes(theirs.current().bytes()).unwrap();
            secrets.rotate().unwrap();
            theirs.replace(secrets);
            assert_eq!(other.decrypt(&ticket).is_some(), opens);
        }
    }

    /// Workers rotate one after the other: a ticket of the first opens at the last.
    #[test]
    fn the_next_key_opens_already() {
        let (early, late) = (Tickets::new(secrets(2)), Tickets::new(secrets(1)));
        let ticket = ticketer(&Arc::new(early)).encrypt(b"session").unwrap();
        assert_eq!(ticketer(&Arc::new(late)).decrypt(&ticket).as_deref(), Some(&b"session"[..]));
    }

    #[test]
    fn each_policy_has_keys_of_its_own() {
        let tickets = Arc::new(Tickets::new(secrets(1)));
        let policies = [None, Some(PolicyId::for_tests(1)), Some(PolicyId::for_tests(2))];
        let ticketers = policies.map(|policy| Ticketer::new(Arc::clone(&tickets), policy));
        for (index, one) in ticketers.iter().enumerate() {
            let ticket = one.encrypt(b"session").unwrap();
            for (other_index, other) in ticketers.iter().enumerate() {
                assert_eq!(other.decrypt(&ticket).is_some(), index == other_index);
            }
        }
    }

    #[test]
    fn a_changed_or_cut_ticket_does_not_open() {
        let ticketer = ticketer(&Arc::new(Tickets::new(secrets(1))));
        let ticket = ticketer.encrypt(b"session").unwrap();
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(ticketer.decrypt(&changed), None, "{at}");
            assert_eq!(ticketer.decrypt(&ticket[..at]), None, "{at}");
        }
        assert_eq!(ticketer.encrypt(b"x").map(|other| other == ticketer.encrypt(b"x").unwrap()), Some(false));
    }

    #[test]
    fn nothing_shows_a_secret() {
        assert_eq!(format!("{:?}", secrets(7)), "TicketSecrets");
    }
}
