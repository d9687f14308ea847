//! Edits of an application's own fields: lines before the response fields of an offer (`docs/handover-protocol.md`,
//! section 2). They begin with bytes that no field name begins with.
//!
//! ```text
//!   /Name            the application's fields of this name are dropped
//!   ?Name: value     this field is added where the application has none of this name, those that are dropped not counted
//!   +Name: value     this member joins the list that the application's fields of this name are, in one line
//!   ~1024 text/*     changes no field: which responses are coded (`CodingTerms`)
//! ```

use super::CodingTerms;
use crate::fields::{field_parts, is_same_field, list_members};
use crate::push_decimal;
use crate::reply::push_line;

/// The lines, each with its CR LF. Most heads have none of a kind, and are asked of it for each field.
#[derive(Clone, Copy, Debug)]
pub struct Edits<'a> {
    lines: &'a [u8],
    has_drops: bool,
    has_joins: bool,
    has_codes: bool,
}

impl<'a> Edits<'a> {
    /// Splits response fields into the edits in front and the rest.
    pub fn split(fields: &'a [u8]) -> (Self, &'a [u8]) {
        let (mut len, mut has_drops, mut has_joins, mut has_codes) = (0, false, false, false);
        while let [kind @ (DROP | DEFAULT | JOIN | CODES), ..] = fields[len..] {
            has_drops |= kind == DROP;
            has_joins |= kind == JOIN;
            has_codes |= kind == CODES;
            len += memchr::memchr(b'\n', &fields[len..]).map_or(fields.len() - len, |end| end + 1);
        }
        (Self { lines: &fields[..len], has_drops, has_joins, has_codes }, &fields[len..])
    }

    /// Whether nothing is changed.
    pub const fn is_empty(self) -> bool {
        self.lines.is_empty()
    }

    /// Whether a list of the application's is joined.
    pub const fn joins_any(self) -> bool {
        self.has_joins
    }

    /// Which responses are coded, if any are.
    pub fn coding_terms(self) -> Option<CodingTerms<'a>> {
        if self.has_codes { self.lines(CODES).next().map(CodingTerms::parse) } else { None }
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

/// Appends an edit: what is coded. `min_bytes`: `None`: nothing is for this client.
pub fn push_coding_terms(out: &mut Vec<u8>, min_bytes: Option<u64>, types: &[String]) {
    out.push(CODES);
    match min_bytes {
        Some(bytes) => push_decimal(out, bytes),
        None => out.push(b'-'),
    }
    for pattern in types {
        out.push(b' ');
        out.extend_from_slice(pattern.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
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
const CODES: u8 = b'~';

#[cfg(test)]
mod tests {
    use super::super::CodedFor;
    use super::*;

    #[test]
    fn what_is_coded_is_no_edit_of_a_field() {
        let types = ["text/*".to_owned(), "*+json".to_owned()];
        let mut offered = Vec::new();
        push_coding_terms(&mut offered, Some(1024), &types);
        push_drop(&mut offered, "X-A");
        offered.extend_from_slice(b"Server: baton\r\n");
        assert!(offered.starts_with(b"~1024 text/* *+json\r\n/X-A\r\n"));
        let (edits, fields) = Edits::split(&offered);
        assert_eq!(fields, b"Server: baton\r\n");
        let own = [(&b"Content-Type"[..], &b"text/css"[..])];
        let terms = edits.coding_terms().expect("terms");
        assert_eq!(terms.judge(200, own.into_iter(), None), CodedFor::ThisOne);
        let mut out = Vec::new();
        edits.push_fields(own.into_iter(), &mut out);
        assert_eq!(out, b"Content-Type: text/css\r\n");

        let mut offered = Vec::new();
        push_coding_terms(&mut offered, None, &types);
        assert_eq!(offered, b"~- text/* *+json\r\n");
        assert!(Edits::split(b"/X-A\r\n").0.coding_terms().is_none());
    }
}
