//! How objects and blocks are named.

/// The name of an object: 128 bits of a hash that clients cannot predict, so that it also spreads objects evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; Self::BYTES]);

impl Key {
    pub(crate) const BYTES: usize = 16;

    pub(crate) fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl From<u128> for Key {
    fn from(hash: u128) -> Self {
        Self(hash.to_le_bytes())
    }
}

impl From<Key> for u128 {
    fn from(key: Key) -> Self {
        Self::from_le_bytes(key.0)
    }
}

/// The name of a block. Blocks of one generation belong to one version of the object's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockId {
    /// The object.
    pub key: Key,
    /// Which of the object's contents.
    pub generation: u32,
    /// Which block of the content, from 0 on.
    pub number: u32,
}
