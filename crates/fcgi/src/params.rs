//! Name-value pairs (FastCGI 1.0 section 3.4): two lengths, a name and a value.

use crate::Broken;

/// Appends a pair.
///
/// Inlined, so that constant names cost neither a count nor a call: every request has two dozen.
///
/// # Panics
/// If the name or the value has 2 GiB or more, which no length can express.
#[inline]
pub fn push(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    push_lengths(out, name.len(), value.len());
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}

/// Appends a pair whose value is `parts` joined, without anything between them.
///
/// # Panics
/// As [`push`].
pub fn push_joined<'a, P>(out: &mut Vec<u8>, name: &[u8], parts: P)
where
    P: IntoIterator<Item = &'a [u8]> + Clone,
{
    push_lengths(out, name.len(), parts.clone().into_iter().map(<[u8]>::len).sum());
    out.extend_from_slice(name);
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// Removes the pairs of a complete block whose names are unwanted. The others keep their order.
pub fn remove(block: &mut Vec<u8>, is_unwanted: impl Fn(&[u8]) -> bool) {
    let (mut kept, mut at) = (0, 0);
    while let Some(((name, _), rest)) = split_pair(&block[at..]) {
        let (wanted, next) = (!is_unwanted(name), block.len() - rest.len());
        if wanted {
            if kept < at {
                block.copy_within(at..next, kept);
            }
            kept += next - at;
        }
        at = next;
    }
    block.truncate(kept);
}

/// Appends the lengths of a pair, and makes room for it.
///
/// # Panics
/// As [`push`].
#[inline]
pub(crate) fn push_lengths(out: &mut Vec<u8>, name: usize, value: usize) {
    out.reserve(2 * LENGTH_BYTES_MAX + name + value);
    push_length(out, name);
    push_length(out, value);
}

/// The pairs of a complete block, in order, borrowed from it. After an error there is nothing more.
#[derive(Clone, Debug)]
pub struct Params<'a> {
    rest: &'a [u8],
}

impl<'a> Params<'a> {
    /// `block`: the contents of all records of the stream, joined.
    pub const fn new(block: &'a [u8]) -> Self {
        Self { rest: block }
    }

    /// The unread rest.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Params<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let Some((pair, rest)) = split_pair(self.rest) else {
            self.rest = &[];
            return Some(Err(Broken::Params));
        };
        self.rest = rest;
        Some(Ok(pair))
    }
}

type Pair<'a> = (&'a [u8], &'a [u8]);

fn split_pair(block: &[u8]) -> Option<(Pair<'_>, &[u8])> {
    let (name_len, rest) = split_length(block)?;
    let (value_len, rest) = split_length(rest)?;
    let (name, rest) = rest.split_at_checked(name_len)?;
    let (value, rest) = rest.split_at_checked(value_len)?;
    Some(((name, value), rest))
}

fn split_length(block: &[u8]) -> Option<(usize, &[u8])> {
    match *block {
        [length @ 0..=SHORT_MAX, ref rest @ ..] => Some((usize::from(length), rest)),
        [a, b, c, d, ref rest @ ..] => {
            let length = u32::from_be_bytes([a, b, c, d]) & !LONG_MARK;
            Some((usize::try_from(length).ok()?, rest))
        }
        _ => None,
    }
}

#[inline]
fn push_length(out: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short @ 0..=SHORT_MAX) => out.push(short),
        _ => out.extend_from_slice(&long_length(length)),
    }
}

/// A length in four bytes, which any length may have.
pub(crate) const fn long_length(length: usize) -> [u8; 4] {
    assert!(length < LONG_MARK as usize, "a name or value has less than 2 GiB");
    (length as u32 | LONG_MARK).to_be_bytes()
}

/// A length takes one byte or so many.
const LENGTH_BYTES_MAX: usize = 4;

/// The largest length in one byte.
const SHORT_MAX: u8 = 127;

/// The bit that marks a length of four bytes.
const LONG_MARK: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn encoded(name: &[u8], value: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        push(&mut out, name, value);
        out
    }

    #[test]
    fn lengths_take_one_byte_or_four() {
        assert_eq!(encoded(b"AB", b"c"), b"\x02\x01ABc");
        assert_eq!(encoded(b"", b""), b"\0\0");
        assert_eq!(encoded(b"", &[7; 127])[..2], [0, 127]);
        assert_eq!(encoded(b"", &[7; 128])[..5], [0, 0x80, 0, 0, 128]);
        assert_eq!(encoded(&[7; 0x0001_0203], b"")[..5], [0x80, 1, 2, 3, 0]);
    }

    #[test]
    fn parts_are_joined_without_anything_between_them() {
        let mut out = Vec::new();
        push_joined(&mut out, b"A", [&b"b"[..], b"", b"cd"]);
        assert_eq!(out, b"\x01\x03Abcd");
    }

    #[test]
    fn pairs_are_removed_wherever_they_are() {
        let block = |pairs: &[(&str, &str)]| -> Vec<u8> {
            pairs.iter().flat_map(|(name, value)| encoded(name.as_bytes(), value.as_bytes())).collect()
        };
        let long = "x".repeat(300);
        let all = block(&[("A", "1"), ("B", &long), ("A", ""), ("C", "3"), ("A", "5")]);
        for (unwanted, expected) in [
            (&b""[..], all.clone()),
            (b"A", block(&[("B", &long), ("C", "3")])),
            (b"B", block(&[("A", "1"), ("A", ""), ("C", "3"), ("A", "5")])),
            (b"C", block(&[("A", "1"), ("B", &long), ("A", ""), ("A", "5")])),
        ] {
            let mut block = all.clone();
            remove(&mut block, |name| name == unwanted);
            assert_eq!(block, expected);
        }
    }

    #[test]
    fn a_block_that_ends_in_a_pair_is_an_error_and_then_at_its_end() {
        let whole = [encoded(b"A", b"b"), encoded(b"LONG", &[7; 300])].concat();
        for end in 0..=whole.len() {
            let mut params = Params::new(&whole[..end]);
            let before = if end < 4 { 0 } else { 1 };
            let pairs = params.by_ref().take_while(Result::is_ok).count();
            let complete = [0, 4, whole.len()].contains(&end);
            assert_eq!(pairs, before + usize::from(end == whole.len()), "{end}");
            assert_eq!(params.next(), None);
            let last = Params::new(&whole[..end]).last();
            assert_eq!(last.is_some_and(|last| last == Err(Broken::Params)), !complete, "{end}");
        }
    }

    proptest! {
        #[test]
        fn pairs_survive_the_way_out_and_back(
            pairs in vec((vec(any::<u8>(), 0..300), vec(any::<u8>(), 0..300)), 0..5),
        ) {
            let block: Vec<u8> = pairs.iter().flat_map(|(name, value)| encoded(name, value)).collect();
            let read: Vec<_> = Params::new(&block).collect::<Result<_, _>>().unwrap();
            let expected: Vec<_> = pairs.iter().map(|(name, value)| (&name[..], &value[..])).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
