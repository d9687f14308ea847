//! The variables of a request: one block of memory, in which each `name=value` becomes a C string in place.

use std::ops::Range;

use baton_fcgi::Broken;
use baton_fcgi::params::Params;

/// Most bytes that the variables of one request may take.
pub const ENVIRONMENT_BYTES_MAX: usize = 1 << 20;

/// The variables of a request, in the order in which the server sent them.
///
/// A FastCGI pair is two lengths, the name, the value. As a C string it needs a `=` between them and a final zero.
/// The name moves over the lengths, the zero overwrites the next byte (a length that has been read by then), and the
/// value stays in place: no string is copied elsewhere.
#[derive(Debug, Default)]
pub struct Environment {
    block: Vec<u8>,
    variables: Vec<Variable>,
    offer: Option<Range<usize>>,
}

/// The position of a variable in the block. The zero is at `end`.
#[derive(Debug, Clone, Copy)]
struct Variable {
    start: usize,
    equals: usize,
    end: usize,
}

impl Environment {
    /// Forgets the variables, and keeps the memory for the next.
    pub(crate) fn clear(&mut self) {
        self.block.clear();
        self.variables.clear();
        self.offer = None;
    }

    /// Takes a part of the block, as it came in a record.
    ///
    /// # Errors
    /// [`Broken::Params`] beyond [`ENVIRONMENT_BYTES_MAX`].
    pub(crate) fn collect(&mut self, part: &[u8]) -> Result<(), Broken> {
        if self.block.len() + part.len() > ENVIRONMENT_BYTES_MAX {
            return Err(Broken::Params);
        }
        self.block.extend_from_slice(part);
        Ok(())
    }

    /// The block is complete: finds its variables and makes them C strings.
    ///
    /// # Errors
    /// [`Broken::Params`] if it ends in the middle of a pair.
    pub(crate) fn complete(&mut self) -> Result<(), Broken> {
        let mut pairs = Params::new(&self.block);
        while let Some(pair) = pairs.next() {
            let (name, value) = pair?;
            let end = self.block.len() - pairs.rest().len();
            let (value_at, name_at) = (end - value.len(), end - value.len() - name.len());
            let is_first = self.variables.is_empty() && self.offer.is_none();
            if is_first && name == baton_fcgi::offer::NAME.as_bytes() {
                self.offer = Some(value_at..end);
            } else {
                self.variables.push(Variable { start: name_at - 1, equals: value_at - 1, end });
            }
        }
        self.block.push(0);
        for &Variable { start, equals, end } in &self.variables {
            self.block.copy_within(start + 1..equals + 1, start);
            self.block[equals] = b'=';
            self.block[end] = 0;
        }
        Ok(())
    }

    /// The value of the offer that came with the request, which is no variable of the application's.
    #[must_use]
    pub fn offer(&self) -> Option<&[u8]> {
        self.offer.clone().map(|range| &self.block[range])
    }

    /// The value of a variable: of the first one, should the name come twice.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find_map(|(its_name, value)| (its_name == name.as_bytes()).then_some(value))
    }

    /// Names and values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.variables.iter().map(|&Variable { start, equals, end }| {
            (&self.block[start..equals], &self.block[equals + 1..end])
        })
    }

    /// The variables as `name=value` with a final zero, for C. They are writable: some programs split a query in
    /// place.
    pub fn c_strings(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let mut rest = self.block.as_mut_slice();
        let mut at = 0;
        self.variables.iter().map(move |variable| {
            let (_, behind) = std::mem::take(&mut rest).split_at_mut(variable.start - at);
            let (string, behind) = behind.split_at_mut(variable.end + 1 - variable.start);
            (rest, at) = (behind, variable.end + 1);
            string
        })
    }
}

#[cfg(test)]
mod tests {
    use baton_fcgi::params;
    use proptest::prelude::*;

    use super::*;

    fn environment(pairs: &[(Vec<u8>, Vec<u8>)], piece: usize) -> Environment {
        let mut block = Vec::new();
        for (name, value) in pairs {
            params::push(&mut block, name, value);
        }
        let mut environment = Environment::default();
        for part in block.chunks(piece) {
            environment.collect(part).unwrap();
        }
        environment.complete().unwrap();
        environment
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Lengths of one byte and of four, empty names and values, any bytes, any cut.
        #[test]
        fn variables_are_what_was_sent(
            pairs in proptest::collection::vec((any_bytes(), any_bytes()), 0..12),
            piece in 1..400usize,
        ) {
            let mut environment = environment(&pairs, piece);
            let seen: Vec<_> =
                environment.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
            prop_assert_eq!(&seen, &pairs);
            let strings: Vec<_> = environment.c_strings().map(|string| string.to_vec()).collect();
            let expected: Vec<_> =
                pairs.iter().map(|(name, value)| [name, &b"="[..], value, &b"\0"[..]].concat()).collect();
            prop_assert_eq!(strings, expected);
        }
    }

    fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..6),
            proptest::collection::vec(any::<u8>(), 120..300),
        ]
    }

    #[test]
    fn only_the_first_pair_can_be_an_offer() {
        let offer = (b"BATON_OFFER".to_vec(), b"passfd fds=1\n".to_vec());
        let other = (b"A".to_vec(), b"1".to_vec());
        let first = environment(&[offer.clone(), other.clone()], 7);
        assert_eq!(first.offer(), Some(&offer.1[..]));
        assert_eq!(first.iter().collect::<Vec<_>>(), [(&b"A"[..], &b"1"[..])]);
        let later = environment(&[other, offer.clone()], 7);
        assert_eq!((later.offer(), later.get("BATON_OFFER")), (None, Some(&offer.1[..])));
    }

    #[test]
    fn a_block_that_ends_in_a_pair_or_grows_too_large_is_broken() {
        let mut environment = Environment::default();
        environment.collect(&[3, 3, b'x']).unwrap();
        assert_eq!(environment.complete(), Err(Broken::Params));
        environment.clear();
        environment.collect(&vec![0; ENVIRONMENT_BYTES_MAX]).unwrap();
        assert_eq!(environment.collect(&[0]), Err(Broken::Params));
    }
}
