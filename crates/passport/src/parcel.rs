//! The state of a machine as bytes: numbers and strings, one behind the other, without names.
//!
//! What a process knows of a client's connection belongs to many machines, each of which packs its own part and reads it
//! again in the process that goes on. Such a part may hold keys: memory that is packed into is cleared when it is dropped.
//! A reader takes any bytes. It returns `None` where they are not what was packed, and never more than there is.

use zeroize::Zeroizing;

/// Packs values.
#[derive(Debug, Default)]
pub struct Packer(Zeroizing<Vec<u8>>);

/// Reads values in the order in which they were packed.
#[derive(Clone, Debug)]
pub struct Unpacker<'a>(&'a [u8]);

impl Packer {
    /// Nothing yet, with room for `bytes` without a copy that would leave a key behind.
    pub fn with_room(bytes: usize) -> Self {
        Self(Zeroizing::new(Vec::with_capacity(bytes)))
    }

    /// Yes or no.
    pub fn flag(&mut self, value: bool) -> &mut Self {
        self.small(u8::from(value))
    }

    /// A number of one byte.
    pub fn small(&mut self, value: u8) -> &mut Self {
        self.push(&[value])
    }

    /// A number.
    pub fn number(&mut self, value: u64) -> &mut Self {
        self.push(&value.to_le_bytes())
    }

    /// A number that may be missing.
    pub fn maybe_number(&mut self, value: Option<u64>) -> &mut Self {
        self.flag(value.is_some()).number(value.unwrap_or(0))
    }

    /// Bytes, at most 4 GiB of them.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        let len = u32::try_from(value.len()).unwrap_or(u32::MAX);
        self.push(&len.to_le_bytes());
        self.push(&value[..len as usize])
    }

    /// Bytes that may be missing.
    pub fn maybe_bytes(&mut self, value: Option<&[u8]>) -> &mut Self {
        self.flag(value.is_some()).bytes(value.unwrap_or_default())
    }

    /// What was packed.
    pub fn finish(self) -> Zeroizing<Vec<u8>> {
        self.0
    }

    fn push(&mut self, bytes: &[u8]) -> &mut Self {
        let missing = bytes.len().saturating_sub(self.0.capacity() - self.0.len());
        if missing > 0 {
            // `Vec` would free what it has outgrown as it is.
            let mut larger = Zeroizing::new(Vec::with_capacity((self.0.len() + bytes.len()) * 2));
            larger.extend_from_slice(&self.0);
            self.0 = larger;
        }
        self.0.extend_from_slice(bytes);
        self
    }
}

impl<'a> Unpacker<'a> {
    /// Begins to read.
    pub fn new(packed: &'a [u8]) -> Self {
        Self(packed)
    }

    /// Yes or no.
    pub fn flag(&mut self) -> Option<bool> {
        match self.small()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// A number of one byte.
    pub fn small(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// A number.
    pub fn number(&mut self) -> Option<u64> {
        self.take(8)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// A number that fits into 32 bits.
    pub fn number32(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// A number that may be missing.
    pub fn maybe_number(&mut self) -> Option<Option<u64>> {
        let is_there = self.flag()?;
        self.number().map(|value| is_there.then_some(value))
    }

    /// Bytes.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = u32::from_le_bytes(*self.take(4)?.first_chunk()?);
        self.take(usize::try_from(len).ok()?)
    }

    /// Bytes that may be missing.
    pub fn maybe_bytes(&mut self) -> Option<Option<&'a [u8]>> {
        let is_there = self.flag()?;
        self.bytes().map(|value| is_there.then_some(value))
    }

    /// Text.
    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// Text that may be missing.
    pub fn maybe_text(&mut self) -> Option<Option<&'a str>> {
        self.maybe_bytes()?.map(std::str::from_utf8).transpose().ok()
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Whether all has been read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_are_read_as_they_were_packed(
            numbers in prop::collection::vec(any::<Option<u64>>(), 0..5),
            strings in prop::collection::vec(any::<Option<Vec<u8>>>(), 0..5),
            room in 0..100_usize,
        ) {
            let mut packer = Packer::with_room(room);
            packer.flag(true).small(7);
            numbers.iter().for_each(|number| _ = packer.maybe_number(*number));
            strings.iter().for_each(|string| _ = packer.maybe_bytes(string.as_deref()));
            let packed = packer.finish();
            let mut reader = Unpacker::new(&packed);
            prop_assert_eq!((reader.flag(), reader.small()), (Some(true), Some(7)));
            for number in numbers {
                prop_assert_eq!(reader.maybe_number(), Some(number));
            }
            for string in strings {
                prop_assert_eq!(reader.maybe_bytes(), Some(string.as_deref()));
            }
            prop_assert!(reader.is_empty());
            prop_assert_eq!(reader.small(), None);
        }

        #[test]
        fn any_bytes_are_read_within_their_bounds(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut reader = Unpacker::new(&bytes);
            let _ = (reader.bytes(), reader.text(), reader.maybe_number(), reader.maybe_text(), reader.number32());
        }
    }
}
