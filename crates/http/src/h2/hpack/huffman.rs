//! The Huffman code for strings (RFC 7541 section 5.2 and appendix B).
//!
//! The code is canonical: codes of one length are consecutive numbers, in the order of their symbols, and begin where
//! the codes of the length before end. So the lengths say everything; the compiler makes the tables from them.

use super::CompressionError;

/// Appends the text of a string. It has at most 8 bytes for 5 of `input`.
pub(super) fn decode(mut input: &[u8], out: &mut Vec<u8>) -> Result<(), CompressionError> {
    out.reserve(input.len() * 8 / LEN_MIN as usize);
    // The bits that are not decoded yet, left-aligned, and how many there are.
    let (mut bits, mut count) = (0u64, 0u32);
    while let Some(chunk) = input.first_chunk() {
        bits |= u64::from_be_bytes(*chunk) >> count;
        let bytes = (u64::BITS - 1 - count) / 8;
        count += 8 * bytes;
        input = &input[bytes as usize..];
        while count >= LEN_MAX {
            let (symbol, len) = symbol_at((bits >> 32) as u32);
            out.push(u8::try_from(symbol).map_err(|_| CompressionError::Huffman)?);
            bits <<= len;
            count -= len;
        }
    }
    loop {
        while count <= u64::BITS - 8
            && let Some((&byte, tail)) = input.split_first()
        {
            bits |= u64::from(byte) << (u64::BITS - 8 - count);
            count += 8;
            input = tail;
        }
        // Behind the end there are ones, as if the padding went on.
        let padded = bits | u64::MAX.unbounded_shr(count);
        let (symbol, len) = symbol_at((padded >> 32) as u32);
        if len > count {
            let is_padding = count < 8 && padded == u64::MAX;
            return if is_padding { Ok(()) } else { Err(CompressionError::Huffman) };
        }
        out.push(u8::try_from(symbol).map_err(|_| CompressionError::Huffman)?);
        bits <<= len;
        count -= len;
    }
}

/// The symbol whose code `window` begins with, and the length of the code.
fn symbol_at(window: u32) -> (u16, u32) {
    let short = SHORT[(window >> (u32::BITS - SHORT_BITS)) as usize];
    if short != 0 {
        return (short >> SHORT_LEN_BITS, u32::from(short) & ((1 << SHORT_LEN_BITS) - 1));
    }
    let mut len = SHORT_BITS + 1;
    loop {
        let distance = (window >> (u32::BITS - len)) - FIRST_CODE[len as usize];
        if len == LEN_MAX || distance < u32::from(COUNT[len as usize]) {
            return (SORTED[FIRST_SYMBOL[len as usize] as usize + distance as usize], len);
        }
        len += 1;
    }
}

const LEN_MIN: u32 = 5;
const LEN_MAX: u32 = 30;
const SYMBOLS: usize = 257;

/// Codes up to this length are found with one look into a table of 2 KiB: those of all letters, digits and most signs.
const SHORT_BITS: u32 = 10;
const SHORT_LEN_BITS: u32 = 4;

/// By the first bits of a code: the symbol, and in the low bits the length of its code. 0: the code is longer.
static SHORT: [u16; 1 << SHORT_BITS] = {
    let mut table = [0; 1 << SHORT_BITS];
    let mut symbol = 0;
    while symbol < SYMBOLS {
        let len = LENGTHS[symbol] as u32;
        if len <= SHORT_BITS {
            let first = CODES[symbol] << (SHORT_BITS - len);
            let mut entry = first;
            while entry < first + (1 << (SHORT_BITS - len)) {
                table[entry as usize] = (symbol as u16) << SHORT_LEN_BITS | len as u16;
                entry += 1;
            }
        }
        symbol += 1;
    }
    table
};

/// How many symbols have codes of each length.
static COUNT: [u16; LEN_MAX as usize + 1] = {
    let mut counts = [0; LEN_MAX as usize + 1];
    let mut symbol = 0;
    while symbol < SYMBOLS {
        counts[LENGTHS[symbol] as usize] += 1;
        symbol += 1;
    }
    counts
};

/// The first code of each length.
static FIRST_CODE: [u32; LEN_MAX as usize + 1] = {
    let mut codes = [0; LEN_MAX as usize + 1];
    let mut len = 1;
    while len < codes.len() {
        codes[len] = (codes[len - 1] + COUNT[len - 1] as u32) << 1;
        len += 1;
    }
    codes
};

/// Where the symbols of each length begin in [`SORTED`].
static FIRST_SYMBOL: [u16; LEN_MAX as usize + 1] = {
    let mut firsts = [0; LEN_MAX as usize + 1];
    let mut len = 1;
    while len < firsts.len() {
        firsts[len] = firsts[len - 1] + COUNT[len - 1];
        len += 1;
    }
    firsts
};

/// The symbols in the order of their codes.
static SORTED: [u16; SYMBOLS] = {
    let mut sorted = [0; SYMBOLS];
    let mut nexts = FIRST_SYMBOL;
    let mut symbol = 0;
    while symbol < SYMBOLS {
        let next = &mut nexts[LENGTHS[symbol] as usize];
        sorted[*next as usize] = symbol as u16;
        *next += 1;
        symbol += 1;
    }
    sorted
};

/// The code of each symbol.
static CODES: [u32; SYMBOLS] = {
    let mut codes = [0; SYMBOLS];
    let mut nexts = FIRST_CODE;
    let mut symbol = 0;
    while symbol < SYMBOLS {
        let next = &mut nexts[LENGTHS[symbol] as usize];
        codes[symbol] = *next;
        *next += 1;
        symbol += 1;
    }
    codes
};

/// The length of each symbol's code, in bits; the last symbol is EOS, which no string has.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
     6, 10, 10, 12, 13,  6,  8, 11, 10, 10,  8, 11,  8,  6,  6,  6,
     5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8, 15,  6, 12, 10,
    13,  6,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,
     7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8, 13, 19, 13, 14,  6,
    15,  5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,
     6,  7,  6,  5,  5,  6,  7,  7,  7,  7,  7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The code of `text`, padded with ones.
    fn encoded(text: &[u8]) -> Vec<u8> {
        let (mut out, mut bits, mut count) = (Vec::new(), 0u64, 0u32);
        for byte in text {
            let len = u32::from(LENGTHS[usize::from(*byte)]);
            bits = bits << len | u64::from(CODES[usize::from(*byte)]);
            count += len;
            while count >= 8 {
                count -= 8;
                out.push((bits >> count) as u8);
            }
        }
        if count > 0 {
            out.push((bits << (8 - count)) as u8 | 0xff >> count);
        }
        out
    }

    fn decoded(input: &[u8]) -> Result<Vec<u8>, CompressionError> {
        let mut out = Vec::new();
        decode(input, &mut out).map(|()| out)
    }

    /// The lengths are those of a complete code, and some codes those of the table in the RFC.
    #[test]
    fn the_code_is_that_of_appendix_b() {
        let space: u64 = LENGTHS.iter().map(|len| 1u64 << (LEN_MAX - u32::from(*len))).sum();
        assert_eq!(space, 1 << LEN_MAX, "every sequence of bits is a sequence of codes");
        for (symbol, code) in [
            (b'0'.into(), 0x0),
            (b't'.into(), 0x9),
            (b' '.into(), 0x14),
            (b'z'.into(), 0x7b),
            (b'&'.into(), 0xf8),
            (b'Z'.into(), 0xfd),
            (b'?'.into(), 0x3fc),
            (b'\\'.into(), 0x7_fff0),
            (195, 0x7_fff1),
            (161, 0x1f_ffdd),
            (9, 0xff_ffea),
            (207, 0x1ff_ffed),
            (255, 0x3ff_ffee),
            (254, 0x7ff_fff0),
            (249, 0xfff_fffe),
            (22, 0x3fff_fffe),
            (256, 0x3fff_ffff),
        ] {
            assert_eq!(CODES[symbol], code, "{symbol}");
        }
    }

    #[test]
    fn the_examples_of_rfc_7541_appendix_c() {
        for (text, code) in [
            ("www.example.com", &b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..]),
            ("no-cache", b"\xa8\xeb\x10\x64\x9c\xbf"),
            ("302", b"\x64\x02"),
            (
                "https://www.example.com",
                b"\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3",
            ),
        ] {
            assert_eq!(encoded(text.as_bytes()), code, "{text}");
            assert_eq!(decoded(code), Ok(text.as_bytes().to_vec()));
        }
    }

    #[test]
    fn wrong_padding_and_the_end_symbol_are_refused() {
        assert_eq!(decoded(b""), Ok(vec![]));
        assert_eq!(decoded(b"\x07"), Ok(b"0".to_vec()), "three ones");
        for code in [
            &b"\x06"[..],
            b"\xff",
            b"\x07\xff",
            b"\xff\xff\xff",
            b"\xff\xff\xff\xff",
            b"\xff\xff\xff\xfc",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            // The end symbol behind a letter, and a letter behind it.
            b"\x1f\xff\xff\xff\xff",
            b"\x1f\xff\xff\xff\xe3",
        ] {
            assert_eq!(decoded(code), Err(CompressionError::Huffman), "{code:x?}");
        }
    }

    proptest! {
        #[test]
        fn every_text_survives(text in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(decoded(&encoded(&text)), Ok(text));
        }

        /// Decoding is injective: what decodes at all is what its text encodes to.
        #[test]
        fn every_code_is_the_code_of_its_text(code in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(text) = decoded(&code) {
                prop_assert_eq!(encoded(&text), code);
            }
        }
    }
}
