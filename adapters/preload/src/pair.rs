//! The first name-value pair of a request: is it an offer?

use std::ops::Range;

use baton_fcgi::offer::NAME;
use baton_fcgi::params::Params;

/// What a request's parameters begin with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FirstPair {
    /// Something for the program.
    Other,
    /// An offer: the position of its value in the content, and the length of the pair.
    Offer {
        /// The value.
        value: Range<usize>,
        /// Length of the pair, from the beginning of the content.
        bytes: usize,
    },
    /// It could be an incomplete offer.
    Unfinished,
}

impl FirstPair {
    /// Looks at the arrived part of the first `FCGI_PARAMS` record's content, `content_len` bytes in all. An offer is
    /// entirely in it (section 2 of the protocol).
    pub(crate) fn of(arrived: &[u8], content_len: usize) -> Self {
        let content = &arrived[..arrived.len().min(content_len)];
        let may_be_offer = content.first().is_none_or(|length| usize::from(*length) == NAME.len());
        let mut pairs = Params::new(content);
        match pairs.next() {
            _ if !may_be_offer => Self::Other,
            Some(Ok((name, value))) if name == NAME.as_bytes() => {
                let bytes = content.len() - pairs.rest().len();
                Self::Offer { value: bytes - value.len()..bytes, bytes }
            }
            Some(Err(_)) | None if content.len() < content_len => Self::Unfinished,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_fcgi::params;

    fn block(pairs: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in pairs {
            params::push(&mut block, name.as_bytes(), value.as_bytes());
        }
        block
    }

    #[test]
    fn an_offer_is_known_once_it_is_whole() {
        let block = block(&[(NAME, &"x".repeat(300)), ("A", "b")]);
        let pair = 1 + 4 + NAME.len() + 300;
        for arrived in 0..pair {
            assert_eq!(FirstPair::of(&block[..arrived], block.len()), FirstPair::Unfinished, "{arrived}");
        }
        for arrived in pair..=block.len() {
            let offer = FirstPair::Offer { value: pair - 300..pair, bytes: pair };
            assert_eq!(FirstPair::of(&block[..arrived], block.len()), offer);
        }
    }

    #[test]
    fn other_pairs_are_left_to_the_program() {
        let named_as_long = block(&[("SCRIPT_NAME", "/index.php")]);
        assert_eq!(FirstPair::of(&named_as_long, named_as_long.len()), FirstPair::Other);
        let second = block(&[("A", "b"), (NAME, "passfd")]);
        assert_eq!(FirstPair::of(&second[..1], second.len()), FirstPair::Other);
        assert_eq!(FirstPair::of(&second, second.len()), FirstPair::Other);
    }

    #[test]
    fn an_offer_longer_than_its_record_is_none() {
        let block = block(&[(NAME, "passfd fds=1")]);
        let cut = block.len() - 1;
        assert_eq!(FirstPair::of(&block[..cut], cut), FirstPair::Other);
    }
}
