//! Passwords that were right lately.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::hmac;

use crate::users::random_key;

/// A name with a password, as a hash with a key that only this process knows.
///
/// What an attacker learns from the time that comparisons take is about hashes with an unknown key, which say nothing of
/// passwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag([u8; 32]);

/// Names and passwords that were verified. What was wrong is not noted: a
/// client that guesses pays for each guess, and cannot drive out the others.
pub struct Verified {
    key: hmac::Key,
    /// Until when each counts, in milliseconds of the caller's clock.
    until: Mutex<HashMap<Tag, u64>>,
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
    /// Whether this was right lately.
    pub fn contains(&self, tag: &Tag, now_ms: u64) -> bool {
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.get(tag).is_some_and(|until| now_ms < *until)
    }

    /// This was right.
    pub fn note(&self, tag: Tag, now_ms: u64) {
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

    /// The tag of a name and a password.
    pub fn tag(&self, name: &str, password: &[u8]) -> Tag {
        let mut context = hmac::Context::with_key(&self.key);
        // The length keeps `a` with `bc` apart from `ab` with `c`.
        context.update(&(name.len() as u64).to_le_bytes());
        context.update(name.as_bytes());
        context.update(password);
        let mut tag = [0; 32];
        tag.copy_from_slice(context.sign().as_ref());
        Tag(tag)
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
        let contains = |name, password, now_ms| verified.contains(&verified.tag(name, password), now_ms);
        verified.note(verified.tag("ada", b"secret"), 1_000);
        assert!(contains("ada", b"secret", 1_000) && contains("ada", b"secret", 60_999));
        assert!(!contains("ada", b"secret", 61_000));
        assert!(!contains("ada", b"secre", 1_000) && !contains("adas", b"ecret", 1_000));
    }

    #[test]
    fn the_oldest_leave_first() {
        let verified = Verified::default();
        for number in 0..ENTRIES_MAX + 10 {
            verified.note(verified.tag(&number.to_string(), b""), number as u64);
        }
        assert_eq!(verified.until.lock().unwrap().len(), ENTRIES_MAX);
        let contains = |name| verified.contains(&verified.tag(name, b""), 0);
        assert!(!contains("9") && contains("10"));
    }
}
