//! The dynamic table of a decoder (RFC 7541 sections 2.3.2 and 4).

use std::collections::VecDeque;
use std::ops::Range;

use baton_passport::parcel::{Packer, Unpacker};

/// The fields that the client wants to refer to, the newest first.
///
/// Their text is one run of bytes: new fields go to its end, dropped ones are cut off its front once they are as much
/// as the table may hold. So every field stays in one piece, each byte is moved once at most, and there are never more
/// than three times the table's size. Until a client uses it the table owns no memory.
#[derive(Debug)]
pub(super) struct Table {
    text: Vec<u8>,
    /// The newest first.
    fields: VecDeque<Span>,
    /// What the fields count for (RFC 7541 section 4.1).
    size: usize,
    size_max: usize,
}

/// Where a field stands in the text: the name, and behind it the value.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    name_len: usize,
    value_len: usize,
}

impl Span {
    const fn size(self) -> usize {
        self.name_len + self.value_len + OVERHEAD
    }

    const fn name(self) -> Range<usize> {
        self.start..self.start + self.name_len
    }

    const fn value(self) -> Range<usize> {
        self.start + self.name_len..self.start + self.name_len + self.value_len
    }
}

impl Table {
    pub(super) const fn new(size_max: usize) -> Self {
        Self { text: Vec::new(), fields: VecDeque::new(), size: 0, size_max }
    }

    /// The name and the value of a field; 0 is the newest.
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let span = *self.fields.get(index)?;
        Some((&self.text[span.name()], &self.text[span.value()]))
    }

    /// Makes the table smaller or larger, and drops what no longer fits.
    pub(super) fn resize(&mut self, size_max: usize) {
        self.size_max = size_max;
        self.evict(size_max);
    }

    /// Adds a field. One that is larger than the table empties it, which is no error (RFC 7541 section 4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let span = Span { start: self.text.len(), name_len: name.len(), value_len: value.len() };
        let Some(room) = self.size_max.checked_sub(span.size()) else {
            self.evict(0);
            return;
        };
        self.evict(room);
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(value);
        self.fields.push_front(span);
        self.size += span.size();
        self.compact();
    }

    pub(super) fn pack(&self, packer: &mut Packer) {
        packer.number(self.size_max as u64).number(self.fields.len() as u64);
        for span in self.fields.iter().rev() {
            packer.bytes(&self.text[span.name()]).bytes(&self.text[span.value()]);
        }
    }

    /// A table of at most `bytes_max` bytes that another process has packed.
    pub(super) fn unpack(packed: &mut Unpacker<'_>, bytes_max: usize) -> Option<Self> {
        let size_max = usize::try_from(packed.number()?).ok().filter(|size| *size <= bytes_max)?;
        let mut table = Self::new(size_max);
        let count = packed.number().filter(|count| *count <= (size_max / OVERHEAD) as u64)?;
        for _ in 0..count {
            let (name, value) = (packed.bytes()?, packed.bytes()?);
            table.insert(name, value);
        }
        (table.fields.len() as u64 == count).then_some(table)
    }

    /// Drops the oldest fields until the others count for `size` at most.
    fn evict(&mut self, size: usize) {
        while self.size > size
            && let Some(oldest) = self.fields.pop_back()
        {
            self.size -= oldest.size();
        }
    }

    fn compact(&mut self) {
        let dropped = self.fields.back().map_or(self.text.len(), |oldest| oldest.start);
        if dropped >= self.size_max {
            self.text.drain(..dropped);
            self.fields.iter_mut().for_each(|span| span.start -= dropped);
        }
    }
}

/// What a field counts for besides its text (RFC 7541 section 4.1).
pub(super) const OVERHEAD: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_field_larger_than_the_table_empties_it() {
        let mut table = Table::new(70);
        table.insert(b"a", b"1");
        table.insert(b"b", b"2");
        assert_eq!(table.get(1), Some((&b"a"[..], &b"1"[..])));
        table.insert(b"c", b"3");
        assert_eq!(table.get(0), Some((&b"c"[..], &b"3"[..])));
        assert_eq!(table.get(1), Some((&b"b"[..], &b"2"[..])), "68 of 70");
        assert_eq!(table.get(2), None);
        table.insert(&[b'd'; 39], b"");
        assert_eq!((table.get(0), table.size), (None, 0));
    }

    proptest! {
        /// A naive table: a list of fields, the oldest of which go while the sum is too large.
        #[test]
        fn the_table_has_what_a_list_would_have(
            steps in prop::collection::vec((any::<u8>(), 0usize..40, 0usize..60), 1..200),
        ) {
            let mut table = Table::new(256);
            let (mut list, mut size_max) = (VecDeque::<(Vec<u8>, Vec<u8>)>::new(), 256);
            let size = |list: &VecDeque<(Vec<u8>, Vec<u8>)>| {
                list.iter().map(|(name, value)| name.len() + value.len() + OVERHEAD).sum::<usize>()
            };
            for (byte, name_len, value_len) in steps {
                if byte < 16 {
                    size_max = name_len * 8;
                    table.resize(size_max);
                } else {
                    let (name, value) = (vec![byte; name_len], vec![!byte; value_len]);
                    table.insert(&name, &value);
                    list.push_front((name, value));
                }
                while size(&list) > size_max {
                    list.pop_back();
                }
                for (index, (name, value)) in list.iter().enumerate() {
                    prop_assert_eq!(table.get(index), Some((&name[..], &value[..])));
                }
                prop_assert_eq!(table.get(list.len()), None);
                prop_assert_eq!(table.size, size(&list));
                prop_assert!(table.text.len() <= 3 * 320);
            }
        }
    }
}
