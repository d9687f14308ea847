//! Header blocks of a client (RFC 7541): literals, and references to a table that the server has to keep in step.

use std::collections::VecDeque;

use crate::choices::Choices;

/// The client's side of the table.
#[derive(Debug)]
pub(super) struct Encoder {
    /// The newest first.
    table: VecDeque<(String, String)>,
    size_max: usize,
}

impl Encoder {
    pub(super) fn new() -> Self {
        Self { table: VecDeque::new(), size_max: SIZE_MAX }
    }

    /// A block with these fields.
    pub(super) fn encode(&mut self, fields: &[(String, String)], choices: &mut Choices) -> Vec<u8> {
        let mut out = Vec::new();
        if choices.chance(20) {
            self.size_max = choices.one(&[0, 60, 200, 200, SIZE_MAX]);
            self.evict(self.size_max);
            push_integer(&mut out, 0x20, 5, self.size_max);
        }
        for field in fields {
            self.push(&mut out, field, choices);
        }
        out
    }

    /// The first index that stands for nothing.
    pub(super) fn index_beyond(&self) -> usize {
        FIRST_INDEX + self.table.len()
    }

    fn push(&mut self, out: &mut Vec<u8>, field: &(String, String), choices: &mut Choices) {
        let (name, value) = field;
        let whole = self.table.iter().position(|other| other == field);
        if let Some(index) = whole.filter(|_| choices.chance(80)) {
            return push_integer(out, 0x80, 7, FIRST_INDEX + index);
        }
        // With incremental indexing, without, and never indexed.
        let (pattern, prefix_bits) = choices.one(&[(0x40, 6), (0x40, 6), (0x00, 4), (0x10, 4)]);
        match self.table.iter().position(|(other, _)| other == name) {
            Some(index) => push_integer(out, pattern, prefix_bits, FIRST_INDEX + index),
            None => {
                push_integer(out, pattern, prefix_bits, 0);
                push_string(out, name);
            }
        }
        push_string(out, value);
        if pattern == 0x40 {
            self.insert(field);
        }
    }

    fn insert(&mut self, field: &(String, String)) {
        // One that is larger than the table empties it.
        let Some(room) = self.size_max.checked_sub(size(field)) else { return self.table.clear() };
        self.evict(room);
        self.table.push_front(field.clone());
    }

    fn evict(&mut self, size_max: usize) {
        while self.table.iter().map(size).sum::<usize>() > size_max {
            self.table.pop_back();
        }
    }
}

/// What a field counts for.
fn size((name, value): &(String, String)) -> usize {
    name.len() + value.len() + 32
}

/// Appends an index or a length; `pattern` is above the prefix.
pub(super) fn push_integer(out: &mut Vec<u8>, pattern: u8, prefix_bits: u32, number: usize) {
    let mask = (1 << prefix_bits) - 1;
    if number < mask {
        return out.push(pattern | number as u8);
    }
    out.push(pattern | mask as u8);
    let mut rest = number - mask;
    while rest >= 0x80 {
        out.push(0x80 | rest as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn push_string(out: &mut Vec<u8>, text: &str) {
    push_integer(out, 0x00, 7, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// The table as long as the server allows no other, in bytes.
const SIZE_MAX: usize = 4096;

/// The dynamic table begins behind the static one.
const FIRST_INDEX: usize = 62;
