//! Numbers that other members cannot guess from those that they have seen.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher24;

/// A key and a counter.
pub(super) struct Secret {
    key: [u8; 16],
    count: u64,
}

impl Secret {
    pub(super) fn new(key: [u8; 16]) -> Self {
        Self { key, count: 0 }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.count += 1;
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u64(self.count);
        hasher.finish()
    }
}

impl std::fmt::Debug for Secret {
    /// Never shows the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret").field("count", &self.count).finish_non_exhaustive()
    }
}
