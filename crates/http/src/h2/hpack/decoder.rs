//! Decodes header blocks, field by field, and keeps the client's table.

use baton_passport::parcel::{Packer, Unpacker};

use super::table::Table;
use super::{CompressionError, huffman, integer, static_table};
use std::ops::Range;

/// The state of one direction of a connection: what the client's blocks refer to.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
}

/// A field of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'f> {
    /// Any bytes: not judged.
    pub name: &'f [u8],
    /// Any bytes: not judged.
    pub value: &'f [u8],
}

impl Field<'_> {
    /// What the field counts for in a list of fields (RFC 9113 section 6.5.2).
    pub const fn size(&self) -> usize {
        self.name.len() + self.value.len() + super::table::OVERHEAD
    }
}

impl Decoder {
    /// A decoder for a connection that begins. Owns no memory until the client fills its table.
    pub const fn new() -> Self {
        Self { table: Table::new(TABLE_BYTES_MAX) }
    }

    /// The fields of a complete block. Every block must be decoded to its end, whatever becomes of its fields, or the
    /// table is not the client's any more. `scratch` is where strings are decompressed; it grows to less than twice the
    /// block.
    pub fn fields<'d>(&'d mut self, block: &'d [u8], scratch: &'d mut Vec<u8>) -> Fields<'d> {
        Fields { decoder: self, input: block, scratch, begun: false }
    }
}

impl Decoder {
    /// Packs the table for another process.
    pub(crate) fn pack(&self, packer: &mut Packer) {
        self.table.pack(packer);
    }

    /// The decoder that another process has packed. `None`: it has packed something else.
    pub(crate) fn unpack(packed: &mut Unpacker<'_>) -> Option<Self> {
        Table::unpack(packed, TABLE_BYTES_MAX).map(|table| Self { table })
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

/// The fields of a block, in order.
#[derive(Debug)]
pub struct Fields<'d> {
    decoder: &'d mut Decoder,
    input: &'d [u8],
    scratch: &'d mut Vec<u8>,
    /// A field was seen: from here on the table keeps its size.
    begun: bool,
}

impl<'d> Fields<'d> {
    /// The next field; `None` at the end of the block. No iterator: the field borrows from it.
    ///
    /// # Errors
    /// The block is not HPACK. Nothing of the connection can be decoded after that.
    pub fn next_field(&mut self) -> Result<Option<Field<'_>>, CompressionError> {
        let first = loop {
            match self.input.first() {
                None => return Ok(None),
                Some(0x20..=0x3f) => self.resize()?,
                Some(&first) => break first,
            }
        };
        self.begun = true;
        if first & INDEXED != 0 {
            let index = integer::take(&mut self.input, 7)?;
            return self.find(index).map(Some);
        }
        let is_added = first & ADDED != 0;
        let name_index = integer::take(&mut self.input, if is_added { 6 } else { 4 })?;
        self.literal(name_index, is_added).map(Some)
    }

    fn resize(&mut self) -> Result<(), CompressionError> {
        let size = integer::take(&mut self.input, 5)?;
        if self.begun {
            return Err(CompressionError::TableSizeLate);
        }
        if size > TABLE_BYTES_MAX {
            return Err(CompressionError::TableSize);
        }
        self.decoder.table.resize(size);
        Ok(())
    }

    /// The field with this index, of either table.
    fn find(&self, index: usize) -> Result<Field<'_>, CompressionError> {
        let dynamic = || self.decoder.table.get(index.checked_sub(static_table::LEN + 1)?);
        let (name, value) = static_table::get(index).or_else(dynamic).ok_or(CompressionError::Index)?;
        Ok(Field { name, value })
    }

    fn literal(&mut self, name_index: usize, is_added: bool) -> Result<Field<'_>, CompressionError> {
        self.scratch.clear();
        let name = match (name_index, static_table::get(name_index)) {
            (0, _) => self.string()?,
            (_, Some((name, _))) => Text::Given(name),
            // Copied, because the new field may push this one out of the table.
            (_, None) => {
                let dynamic = self.decoder.table.get(name_index - static_table::LEN - 1);
                let (name, _) = dynamic.ok_or(CompressionError::Index)?;
                self.scratch.extend_from_slice(name);
                Text::Scratch(0..name.len())
            }
        };
        let value = self.string()?;
        let (name, value) = (name.get(self.scratch), value.get(self.scratch));
        if is_added {
            self.decoder.table.insert(name, value);
        }
        Ok(Field { name, value })
    }

    /// A string of the block (RFC 7541 section 5.2).
    fn string(&mut self) -> Result<Text<'d>, CompressionError> {
        let is_huffman = self.input.first().is_some_and(|first| first & HUFFMAN != 0);
        let len = integer::take(&mut self.input, 7)?;
        let (text, rest) = self.input.split_at_checked(len).ok_or(CompressionError::Truncated)?;
        self.input = rest;
        if !is_huffman {
            return Ok(Text::Given(text));
        }
        let start = self.scratch.len();
        huffman::decode(text, self.scratch)?;
        Ok(Text::Scratch(start..self.scratch.len()))
    }
}

/// Where a string stands.
enum Text<'d> {
    /// In the block, or in the static table.
    Given(&'d [u8]),
    /// In the scratch space.
    Scratch(Range<usize>),
}

impl<'d> Text<'d> {
    fn get<'t>(self, scratch: &'t [u8]) -> &'t [u8]
    where
        'd: 't,
    {
        match self {
            Self::Given(text) => text,
            Self::Scratch(range) => &scratch[range],
        }
    }
}

/// The bits that tell representations apart (RFC 7541 section 6); a size has the third, what is left is not added.
const INDEXED: u8 = 0x80;
const ADDED: u8 = 0x40;
/// Of a string's length: it is compressed.
const HUFFMAN: u8 = 0x80;

/// The largest table, in bytes: the default of SETTINGS_HEADER_TABLE_SIZE (RFC 9113 section 6.5.2). It is not announced,
/// so there is no moment at which the two sides disagree.
const TABLE_BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = Vec<(String, String)>;

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Pairs, CompressionError> {
        let (mut scratch, mut pairs) = (Vec::new(), Vec::new());
        let mut fields = decoder.fields(block, &mut scratch);
        while let Some(Field { name, value }) = fields.next_field()? {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            pairs.push((text(name), text(value)));
        }
        Ok(pairs)
    }

    fn one(name: &str, value: &str) -> Pairs {
        vec![(name.into(), value.into())]
    }

    #[test]
    fn the_representations_of_rfc_7541_appendix_c2() {
        let mut decoder = Decoder::new();
        let added = decode(&mut decoder, b"\x40\x0acustom-key\x0dcustom-header");
        assert_eq!(added, Ok(one("custom-key", "custom-header")));
        assert_eq!(decode(&mut decoder, b"\xbe"), Ok(one("custom-key", "custom-header")));
        assert_eq!(decode(&mut decoder, b"\x04\x0c/sample/path"), Ok(one(":path", "/sample/path")));
        assert_eq!(decode(&mut decoder, b"\x10\x08password\x06secret"), Ok(one("password", "secret")));
        assert_eq!(decode(&mut decoder, b"\x82"), Ok(one(":method", "GET")));
        assert_eq!(decode(&mut decoder, b"\xbf"), Err(CompressionError::Index), "only one was added");
    }

    #[test]
    fn a_field_may_replace_the_one_that_named_it() {
        let mut decoder = Decoder::new();
        let (name, value) = ("n".repeat(2000), "v".repeat(2000));
        let mut block = b"\x40\x7f\xd1\x0e".to_vec();
        block.extend_from_slice(name.as_bytes());
        block.extend_from_slice(b"\x7f\xd1\x0e");
        block.extend_from_slice(value.as_bytes());
        assert_eq!(decode(&mut decoder, &block), Ok(one(&name, &value)));
        // The new field has the name of the first of the dynamic table, which has no room for both.
        let mut block = b"\x7e\x7f\xd1\x0e".to_vec();
        block.extend_from_slice(&[b'w'; 2000]);
        assert_eq!(decode(&mut decoder, &block), Ok(one(&name, &"w".repeat(2000))));
        assert_eq!(decode(&mut decoder, b"\xbe"), Ok(one(&name, &"w".repeat(2000))));
        assert_eq!(decode(&mut decoder, b"\xbf"), Err(CompressionError::Index));
    }

    #[test]
    fn sizes_come_first_and_within_the_bound() {
        let mut decoder = Decoder::new();
        let added = b"\x20\x3f\xe1\x1f\x40\x01a\x01b";
        assert_eq!(decode(&mut decoder, added), Ok(one("a", "b")), "to 0, then to 4096");
        assert_eq!(decode(&mut decoder, b"\xbe"), Ok(one("a", "b")));
        assert_eq!(decode(&mut decoder, b"\x20"), Ok(vec![]), "a block without fields");
        assert_eq!(decode(&mut decoder, b"\xbe"), Err(CompressionError::Index), "the table was emptied");
        assert_eq!(decode(&mut Decoder::new(), b"\x3f\xe2\x1f"), Err(CompressionError::TableSize), "4097");
        assert_eq!(decode(&mut Decoder::new(), b"\x82\x20"), Err(CompressionError::TableSizeLate));
    }

    #[test]
    fn what_is_no_block_is_refused() {
        use CompressionError::{Huffman, Index, Integer, Truncated};
        for (block, error) in [
            (&b"\x80"[..], Index),
            (b"\xbe", Index),
            (b"\x7e\x00", Index),
            (b"\x0f\xff\x00\x00", Index),
            (b"\xff", Truncated),
            (b"\xff\xff\xff\xff\xff\xff\xff", Integer),
            (b"\x40", Truncated),
            (b"\x40\x05abc", Truncated),
            (b"\x40\x01a", Truncated),
            (b"\x40\x01a\x7f\xff\xff\xff\xff\x0f", Integer),
            (b"\x40\x01a\x7f\x80\xff\xff\xff\x0f", Truncated),
            (b"\x00\x81\xff\x00", Huffman),
        ] {
            assert_eq!(decode(&mut Decoder::new(), block), Err(error), "{block:x?}");
        }
    }
}
