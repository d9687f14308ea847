//! Passwords that were right lately.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::hmac;

use crate::users::random_key;

/// Names and passwords that were verified, as hashes with a key that only this process knows. What was wrong is not noted: a
/// client that guesses pays for each guess, and cannot drive out the others.
pub struct Verified {
    key: hmac::Key,
    /// Until when each counts, in milliseconds of the caller's clock.
    until: Mutex<HashMap<[u8; 32], u64>>,
}

impl Default for Verified {
    fn default() -> Self {
        Self { key: random_key(), until: Mutex::default() }
    }
}

impl fmt::Debug for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verified")
    }
}

impl Verified {
    /// Whether this was right lately. What an attacker learns from the time that this takes is about hashes with an unknown
    /// key, which say nothing of passwords.
    pub fn contains(&self, name: &str, password: &[u8], now_ms: u64) -> bool {
        let tag = self.tag(name, password);
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.get(&tag).is_some_and(|until| now_ms < *until)
    }

    /// This was right.
    pub fn note(&self, name: &str, password: &[u8], now_ms: u64) {
        let tag = self.tag(name, password);
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if until.len() >= ENTRIES_MAX && !until.contains_key(&tag) {
            until.retain(|_, until| now_ms < *until);
            if until.len() >= ENTRIES_MAX
                && let Some(first) = until.iter().min_by_key(|(_, until)| **until).map(|(tag, _)| *tag)
            {
                until.remove(&first);
            }
        }
        until.insert(tag, now_ms.saturating_add(VALID_MS));
    }

    fn tag(&self, name: &str, password: &[u8]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.key);
        // The length keeps `a` with `bc` apart from `ab` with `c`.
        context.update(&(name.len() as u64).to_le_bytes());
        context.update(name.as_bytes());
        context.update(password);
        let mut tag = [0; 32];
        tag.copy_from_slice(context.sign().as_ref());
        tag
    }
}

/// How long a password counts as verified: for the requests of a page, and those of the next ones.
const VALID_MS: u64 = 60_000;

/// Names and passwords that are remembered: 40 KB.
const ENTRIES_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_right_counts_for_a_minute() {
        let verified = Verified::default();
        verified.note("ada", b"secret", 1_000);
        assert!(verified.contains("ada", b"secret", 1_000) && verified.contains("ada", b"secret", 60_999));
        assert!(!verified.contains("ada", b"secret", 61_000));
        assert!(!verified.contains("ada", b"secre", 1_000) && !verified.contains("adas", b"ecret", 1_000));
    }

    #[test]
    fn the_oldest_leave_first() {
        let verified = Verified::default();
        for number in 0..ENTRIES_MAX + 10 {
            verified.note(&number.to_string(), b"", number as u64);
        }
        assert_eq!(verified.until.lock().unwrap().len(), ENTRIES_MAX);
        assert!(!verified.contains("9", b"", 0) && verified.contains("10", b"", 0));
    }
}
