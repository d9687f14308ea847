//! The head of a response, as an exchange sends it on: it does not tell which protocol the origin speaks.

use crate::fields::{field_parts, line_parts};
use crate::names::Names;
use crate::reply::push_line;
use crate::{Status, Version};
use std::borrow::Cow;

/// A head whose fields may all go to the client: none of them frames the body or is about the connection to the origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Lines `Name: value`, each with CR LF.
    text: Vec<u8>,
    names: Names,
    status: Status,
    reason: Cow<'static, [u8]>,
    version: Version,
    content_length: Option<u64>,
}

impl ResponseHead {
    /// A head of the lines in `text`, each with LF or CR LF, which are checked: tokens, colons, values without control characters.
    /// Lines whose names `keeps` refuses are removed. `reason`: the phrase, possibly empty.
    pub fn of_lines(
        mut text: Vec<u8>,
        status: Status,
        reason: impl AsRef<[u8]>,
        content_length: Option<u64>,
        keeps: impl Fn(&[u8]) -> bool,
    ) -> Self {
        remove_lines(&mut text, |name, _| keeps(name));
        let ends_bare = |at: usize| !text[..at].ends_with(b"\r");
        if memchr::memchr_iter(b'\n', &text).any(ends_bare) {
            let mut lines = Vec::with_capacity(text.len() + text.len() / 8);
            field_parts(&text).for_each(|(name, value)| push_line(&mut lines, name, value));
            text = lines;
        }
        let names = Names::of(&text);
        Self::of_checked(text, names, status, reason.as_ref(), content_length)
    }

    /// A head without fields, of this server.
    pub const fn of_status(status: Status) -> Self {
        let reason = Cow::Borrowed(status.reason().as_bytes());
        let names = Names::none();
        Self { text: Vec::new(), names, status, reason, version: Version::Http11, content_length: None }
    }

    /// A head of checked lines that all are to stay, each with CR LF.
    pub(super) fn of_checked(
        text: Vec<u8>,
        names: Names,
        status: Status,
        reason: &[u8],
        content_length: Option<u64>,
    ) -> Self {
        let reason = Self::phrase(status, reason);
        Self { text, names, status, reason, version: Version::Http11, content_length }
    }

    /// A reason phrase to keep. Usual ones cost no memory.
    pub fn phrase(status: Status, reason: &[u8]) -> Cow<'static, [u8]> {
        if reason == status.reason().as_bytes() {
            Cow::Borrowed(status.reason().as_bytes())
        } else {
            Cow::Owned(reason.to_vec())
        }
    }

    pub(super) fn with_version(self, version: Version) -> Self {
        Self { version, ..self }
    }

    /// The status.
    pub const fn status(&self) -> Status {
        self.status
    }

    /// Gives it another status, with the usual phrase.
    pub fn set_status(&mut self, status: Status) {
        (self.status, self.reason) = (status, Cow::Borrowed(status.reason().as_bytes()));
    }

    /// The reason phrase, possibly empty.
    pub fn reason(&self) -> &[u8] {
        &self.reason
    }

    /// The version of HTTP in which the origin has answered.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// The length of the body in bytes, if the origin declares it; for a HEAD, of the body that is not sent.
    pub const fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    /// Declares a length of the body, or none.
    pub const fn set_content_length(&mut self, content_length: Option<u64>) {
        self.content_length = content_length;
    }

    /// All fields in order, blanks around the values removed.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        field_parts(&self.text)
    }

    /// The value of the first field with this name, in any case.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.values(name).next()
    }

    /// The values of all fields with this name, in any case.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let mut rest = if self.names.may_have(name.as_bytes()) { &self.text[..] } else { b"" };
        let lines = std::iter::from_fn(move || rest.split_off(..=memchr::memchr(b'\n', rest)?));
        lines.filter_map(move |line| {
            let (own, value) = line.split_at_checked(name.len())?;
            let value = value.strip_prefix(b":")?;
            own.eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
        })
    }

    /// Adds a field behind the others. Name and value are safe: see
    /// [`field_name_is_safe`](crate::field_name_is_safe) and [`field_value_is_safe`](crate::field_value_is_safe).
    pub fn add(&mut self, name: &str, value: &[u8]) {
        self.names.note(name.as_bytes());
        push_line(&mut self.text, name.as_bytes(), value);
    }

    /// Adds complete lines, each with its CR LF: safe, as above.
    pub fn add_lines(&mut self, lines: &[u8]) {
        debug_assert!(lines.is_empty() || lines.ends_with(b"\r\n"));
        self.names.join(Names::of(lines));
        self.text.extend_from_slice(lines);
    }

    /// All lines, each with CR LF.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Adds a field whose value `push` appends: safe, as above.
    pub fn add_with(&mut self, name: &str, push: impl FnOnce(&mut Vec<u8>)) {
        self.names.note(name.as_bytes());
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b": ");
        push(&mut self.text);
        self.text.extend_from_slice(b"\r\n");
    }

    /// A copy with room for so many bytes of more fields.
    #[must_use]
    pub fn copy_with_room(&self, bytes: usize) -> Self {
        let mut text = Vec::with_capacity(self.text.len() + bytes);
        text.extend_from_slice(&self.text);
        Self { text, reason: self.reason.clone(), ..*self }
    }

    /// Keeps the fields, by name and value, that `keeps` accepts.
    pub fn retain(&mut self, keeps: impl Fn(&[u8], &[u8]) -> bool) {
        remove_lines(&mut self.text, keeps);
        self.names = Names::of(&self.text);
    }

    /// Replaces the values that `change` has something else for.
    pub fn replace_values(&mut self, mut change: impl FnMut(&[u8], &[u8]) -> Option<Vec<u8>>) {
        let mut changed: Option<Vec<u8>> = None;
        let mut done = 0;
        for (name, value) in field_parts(&self.text) {
            let Some(new) = change(name, value) else { continue };
            let start = offset(&self.text, name);
            let end = offset(&self.text, value) + value.len();
            let text = changed.get_or_insert_with(|| Vec::with_capacity(self.text.len() + new.len()));
            text.extend_from_slice(&self.text[done..start]);
            text.extend_from_slice(name);
            text.extend_from_slice(b": ");
            text.extend_from_slice(&new);
            done = end;
        }
        if let Some(mut text) = changed {
            text.extend_from_slice(&self.text[done..]);
            self.text = text;
        }
    }

    /// Gives the memory back.
    pub fn into_buffer(self) -> Vec<u8> {
        self.text
    }
}

/// Removes lines in place.
pub(super) fn remove_lines(text: &mut Vec<u8>, keeps: impl Fn(&[u8], &[u8]) -> bool) {
    let (mut kept, mut at) = (0, 0);
    while let Some(len) = memchr::memchr(b'\n', &text[at..]) {
        let line = at..at + len + 1;
        at = line.end;
        if line_parts(&text[line.start..line.end - 1]).is_some_and(|(name, value)| keeps(name, value)) {
            // Until a line goes, all stay where they are.
            if kept < line.start {
                text.copy_within(line.clone(), kept);
            }
            kept += line.len();
        }
    }
    text.truncate(kept);
}

/// Where `part` stands in `text`.
fn offset(text: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(lines: &str) -> ResponseHead {
        ResponseHead::of_lines(lines.into(), Status::OK, "OK", None, |name| name != b"Not-This")
    }

    #[test]
    fn fields_are_found_however_they_came() {
        let mut head = head("vary: a\r\nNot-This: 1\r\nVARY: b\r\n_a: 1\r\n");
        head.add("X-Added", b"2");
        head.add_lines(b"X-Line: 3\r\nX-Other: 4\r\n");
        head.add_with("X-With", |out| out.push(b'5'));
        assert_eq!(head.values("Vary").collect::<Vec<_>>(), [b"a", b"b"]);
        for (name, value) in [("_A", b"1"), ("x-added", b"2"), ("x-other", b"4"), ("X-WITH", b"5")] {
            assert_eq!(head.field(name), Some(&value[..]), "{name}");
        }
        // As long, and with the same first letter: it is looked for, and is not there.
        for name in ["Not-This", "X-Adder", "Vars", ""] {
            assert_eq!(head.field(name), None, "{name}");
        }
        head.replace_values(|name, _| (name == b"VARY").then(|| b"c".to_vec()));
        head.retain(|name, _| name != b"vary");
        assert_eq!(head.values("Vary").collect::<Vec<_>>(), [b"c"]);
    }

    /// They go to clients as they are. Applications may end them with LF alone.
    #[test]
    fn all_lines_end_with_cr_lf() {
        assert_eq!(head("A:b\nC: d \r\nE:\n").text(), b"A: b\r\nC: d\r\nE: \r\n");
        assert_eq!(head("\nA: b\r\n").text(), b"A: b\r\n");
        assert_eq!(head("A:b\r\nC: d \r\n").text(), b"A:b\r\nC: d \r\n", "what may be sent stays");
    }
}
