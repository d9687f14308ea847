//! Edits of an application's own fields: lines before the response fields of an offer (`docs/handover-protocol.md`,
//! section 2). They begin with bytes that no field name begins with.
//!
//! ```text
//!   /Name            the application's fields of this name are dropped
//!   ?Name: value     this field is added where the application has none of this name, those that are dropped not counted
//! ```

use crate::fields::is_same_field;

/// The lines, each with its CR LF.
#[derive(Clone, Copy, Debug)]
pub struct Edits<'a>(&'a [u8]);

impl<'a> Edits<'a> {
    /// Splits response fields into the edits in front and the rest.
    pub fn split(fields: &'a [u8]) -> (Self, &'a [u8]) {
        let mut len = 0;
        while let [DROP | DEFAULT, ..] = fields[len..] {
            len += memchr::memchr(b'\n', &fields[len..]).map_or(fields.len() - len, |end| end + 1);
        }
        (Self(&fields[..len]), &fields[len..])
    }

    /// Whether nothing is changed.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Whether any of the application's fields may be dropped.
    pub(crate) fn drops_any(self) -> bool {
        self.lines(DROP).next().is_some()
    }

    /// Whether the application's fields of this name are dropped.
    pub(crate) fn drop(self, name: &[u8]) -> bool {
        self.lines(DROP).any(|dropped| is_same_field(dropped, name))
    }

    /// Appends the defaults that the application's `fields` lack.
    pub(crate) fn push_defaults<'f>(
        self,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
        out: &mut Vec<u8>,
    ) {
        for line in self.lines(DEFAULT) {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            let has_it = |(own, _): (&[u8], &[u8])| is_same_field(own, name) && !self.drop(own);
            if !fields.clone().any(has_it) {
                out.extend_from_slice(line);
                out.extend_from_slice(b"\r\n");
            }
        }
    }

    /// The lines of a kind, without what marks it, and without their ends.
    fn lines(self, kind: u8) -> impl Iterator<Item = &'a [u8]> {
        let lines = self.0.split(|byte| *byte == b'\n');
        lines.filter_map(move |line| Some(line.strip_prefix(&[kind])?.trim_ascii_end()))
    }
}

/// Appends an edit: the application's fields of this name are dropped.
pub fn push_drop(out: &mut Vec<u8>, name: &str) {
    out.push(DROP);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends an edit: a field is added where the application has none of its name.
pub fn push_default(out: &mut Vec<u8>, name: &str, value: impl AsRef<[u8]>) {
    out.push(DEFAULT);
    for part in [name.as_bytes(), b": ", value.as_ref(), b"\r\n"] {
        out.extend_from_slice(part);
    }
}

const DROP: u8 = b'/';
const DEFAULT: u8 = b'?';
