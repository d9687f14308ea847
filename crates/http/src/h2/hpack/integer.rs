//! Numbers with a prefix of a few bits (RFC 7541 section 5.1).

use super::CompressionError;

/// Takes a number, whose first octet has `prefix_bits` bits of it, from the front of `input`.
pub(super) fn take(input: &mut &[u8], prefix_bits: u32) -> Result<usize, CompressionError> {
    let (&first, mut rest) = input.split_first().ok_or(CompressionError::Truncated)?;
    let mask = (1u8 << prefix_bits) - 1;
    let mut number = u64::from(first & mask);
    if first & mask == mask {
        let mut shift = 0;
        loop {
            let (&octet, tail) = rest.split_first().ok_or(CompressionError::Truncated)?;
            rest = tail;
            number += u64::from(octet & 0x7f) << shift;
            shift += 7;
            if octet & 0x80 == 0 {
                break;
            }
            // Leading zeros would let a number be as long as the block.
            if shift == 7 * OCTETS_MAX {
                return Err(CompressionError::Integer);
            }
        }
    }
    *input = rest;
    u32::try_from(number).map(|number| number as usize).map_err(|_| CompressionError::Integer)
}

/// Appends a number. `pattern` is what the first octet has above the prefix.
pub(super) fn push(out: &mut Vec<u8>, pattern: u8, prefix_bits: u32, number: usize) {
    let mask = (1usize << prefix_bits) - 1;
    if number < mask {
        out.push(pattern | number as u8);
        return;
    }
    out.push(pattern | mask as u8);
    let mut rest = number - mask;
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Octets behind the prefix: 35 bits, enough for any length or index in 32.
const OCTETS_MAX: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_rfc_7541_appendix_c1() {
        for (bits, number, octets) in
            [(5, 10, &[0x0a][..]), (5, 1337, &[0x1f, 0x9a, 0x0a]), (8 - 1, 42, &[42])]
        {
            let mut out = Vec::new();
            push(&mut out, 0, bits, number);
            assert_eq!(out, octets);
            assert_eq!(take(&mut &out[..], bits), Ok(number));
        }
    }

    #[test]
    fn what_is_too_long_or_too_short_is_refused() {
        use CompressionError::{Integer, Truncated};
        for (octets, error) in [
            (&[][..], Truncated),
            (&[0x1f], Truncated),
            (&[0x1f, 0x80], Truncated),
            (&[0x1f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], Integer),
            (&[0x1f, 0xff, 0xff, 0xff, 0xff, 0x0f], Integer),
            (&[0x1f, 0xff, 0xff, 0xff, 0xff, 0x7f], Integer),
        ] {
            assert_eq!(take(&mut &octets[..], 5), Err(error), "{octets:x?}");
        }
        assert_eq!(take(&mut &[0x1f, 0xe0, 0xff, 0xff, 0xff, 0x0f][..], 5), Ok(u32::MAX as usize));
    }

    proptest! {
        #[test]
        fn every_number_survives_with_every_prefix(number in any::<u32>(), small in 0usize..300, bits in 1u32..8) {
            for number in [number as usize, small] {
                let mut out = Vec::new();
                push(&mut out, 0, bits, number);
                out.push(0xaa);
                let mut input = &out[..];
                prop_assert_eq!(take(&mut input, bits), Ok(number));
                prop_assert_eq!(input, &[0xaa][..]);
            }
        }
    }
}
