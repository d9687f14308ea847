//! Edits of an application's own fields: lines before the response fields of an offer (`docs/handover-protocol.md`,
//! section 2). They begin with bytes that no field name begins with.
//!
//! ```text
//!   /Name            the application's fields of this name are dropped
//!   ?Name: value     this field is added where the application has none of this name, those that are dropped not counted
//!   +Name: value     this member joins the list that the application's fields of this name are, in one line
//! ```

use crate::fields::{field_parts, is_same_field, list_members};
use crate::reply::push_line;

/// The lines, each with its CR LF. Most heads have none of a kind, and are asked of it for each field.
#[derive(Clone, Copy, Debug)]
pub struct Edits<'a> {
    lines: &'a [u8],
    has_drops: bool,
    has_joins: bool,
}

impl<'a> Edits<'a> {
    /// Splits response fields into the edits in front and the rest.
    pub fn split(fields: &'a [u8]) -> (Self, &'a [u8]) {
        let (mut len, mut has_drops, mut has_joins) = (0, false, false);
        while let [kind @ (DROP | DEFAULT | JOIN), ..] = fields[len..] {
            has_drops |= kind == DROP;
            has_joins |= kind == JOIN;
            len += memchr::memchr(b'\n', &fields[len..]).map_or(fields.len() - len, |end| end + 1);
        }
        (Self { lines: &fields[..len], has_drops, has_joins }, &fields[len..])
    }

    /// Whether nothing is changed.
    pub const fn is_empty(self) -> bool {
        self.lines.is_empty()
    }

    /// Whether a list of the application's is joined.
    pub const fn joins_any(self) -> bool {
        self.has_joins
    }

    /// Appends the application's lines as they are to be: all at once, if they stay where they are.
    pub(crate) fn push_lines(self, lines: &[u8], out: &mut Vec<u8>) {
        let fields = field_parts(lines);
        if self.has_drops || self.has_joins {
            return self.push_fields(fields, out);
        }
        out.extend_from_slice(lines);
        self.push_defaults(fields, out);
    }

    /// Appends the application's fields as they are to be.
    pub(crate) fn push_fields<'f>(
        self,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
        out: &mut Vec<u8>,
    ) {
        let stay = fields.clone().filter(|(name, _)| !self.drop(name) && !self.joins(name));
        stay.for_each(|(name, value)| push_line(out, name, value));
        self.push_joined(fields.clone(), out);
        self.push_defaults(fields, out);
    }

    /// Whether the application's fields of this name are dropped.
    fn drop(self, name: &[u8]) -> bool {
        self.has_drops && self.lines(DROP).any(|dropped| is_same_field(dropped, name))
    }

    fn joins(self, name: &[u8]) -> bool {
        self.has_joins && self.joining().any(|(joined, _)| is_same_field(joined, name))
    }

    /// The names of lists, and what joins them.
    fn joining(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.lines(JOIN).map(|line| {
            let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
            (&line[..colon], line.get(colon + 1..).unwrap_or_default().trim_ascii())
        })
    }

    /// Appends a line for each list that is joined: the application's members first, each member once. With `*` among them, a
    /// list says all that it can (RFC 9110 section 12.5.5).
    fn push_joined<'f>(self, fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone, out: &mut Vec<u8>) {
        for (at, (name, _)) in self.joining().enumerate() {
            if self.joining().take(at).any(|(before, _)| is_same_field(before, name)) {
                continue;
            }
            let own = fields.clone().filter(|(own, _)| is_same_field(own, name) && !self.drop(own));
            let ours = self.joining().filter(|(other, _)| is_same_field(other, name));
            out.extend_from_slice(name);
            out.extend_from_slice(b": ");
            let start = out.len();
            own.for_each(|(_, value)| push_new_members(value, out, start));
            ours.for_each(|(_, value)| push_new_members(value, out, start));
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Appends the defaults that the application's `fields` lack.
    fn push_defaults<'f>(
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
        let mut rest = self.lines;
        let lines = std::iter::from_fn(move || {
            let len = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            let (line, behind) = rest.split_at_checked(len).filter(|_| len > 0)?;
            rest = behind;
            Some(line)
        });
        lines.filter_map(move |line| Some(line.strip_prefix(&[kind])?.trim_ascii_end()))
    }
}

/// Appends an edit: the application's fields of this name are dropped.
pub fn push_drop(out: &mut Vec<u8>, name: &str) {
    out.push(DROP);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends an edit: `member` (or several, separated by commas) joins the list that the application's fields of this name are.
pub fn push_join(out: &mut Vec<u8>, name: &str, member: impl AsRef<[u8]>) {
    push_edit(JOIN, name, member.as_ref(), out);
}

/// Appends an edit: a field is added where the application has none of its name.
pub fn push_default(out: &mut Vec<u8>, name: &str, value: impl AsRef<[u8]>) {
    push_edit(DEFAULT, name, value.as_ref(), out);
}

fn push_edit(kind: u8, name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Appends the members of a list to the one that begins at `start`, without those that stand there, in any case.
fn push_new_members(list: &[u8], out: &mut Vec<u8>, start: usize) {
    for member in list_members(list) {
        if list_members(&out[start..]).any(|known| known == b"*" || known.eq_ignore_ascii_case(member)) {
            continue;
        }
        if member == b"*" {
            out.truncate(start);
        } else if out.len() > start {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(member);
    }
}

const DROP: u8 = b'/';
const DEFAULT: u8 = b'?';
const JOIN: u8 = b'+';
