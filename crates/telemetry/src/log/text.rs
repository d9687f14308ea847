//! What a line says of the request itself, and of the head of its response.

use baton_http::{RequestHead, field_parts, is_same_field};
use baton_passport::parcel::{Packer, Unpacker};

/// What a line says of the request itself, kept until the response has been sent.
#[derive(Debug, Default)]
pub(super) struct RequestText {
    bytes: Vec<u8>,
    line_end: usize,
    host_end: usize,
    referer_end: usize,
    agent_end: usize,
    /// Where the values of other fields end, that the lines say; `None`: the request does not have the field.
    of_request: Vec<Option<usize>>,
    /// Where the values of the response's fields end, behind those of the request.
    of_response: Vec<Option<usize>>,
}

impl RequestText {
    pub(super) fn fill(
        &mut self,
        line: &[u8],
        host: Option<&str>,
        referer: Option<&[u8]>,
        agent: Option<&[u8]>,
    ) {
        self.bytes.clear();
        self.bytes.extend_from_slice(line);
        self.line_end = self.bytes.len();
        self.bytes.extend_from_slice(host.unwrap_or_default().as_bytes());
        self.host_end = self.bytes.len();
        self.bytes.extend_from_slice(referer.unwrap_or_default());
        self.referer_end = self.bytes.len();
        self.bytes.extend_from_slice(agent.unwrap_or_default());
        self.agent_end = self.bytes.len();
        self.of_request.clear();
        self.of_response.clear();
    }

    /// Keeps the request's fields of these names, too.
    pub(super) fn keep<'n>(&mut self, names: impl Iterator<Item = &'n str>, head: &RequestHead<'_>) {
        self.of_request.extend(names.map(|name| keep(&mut self.bytes, head.fields_of(name))));
    }

    /// Keeps the fields of these names of a response whose head has these lines, in place of those of an earlier one.
    pub(super) fn keep_response<'n>(&mut self, names: impl Iterator<Item = &'n str>, lines: &[u8]) {
        self.bytes.truncate(self.response_start());
        self.of_response.clear();
        self.of_response.extend(names.map(|name| {
            let values = field_parts(lines).filter(|(other, _)| is_same_field(name, other));
            keep(&mut self.bytes, values.map(|(_, value)| value))
        }));
    }

    /// The values of the request's fields, in their order.
    pub(super) fn of_request(&self) -> impl Iterator<Item = Option<&[u8]>> {
        values(&self.bytes, self.agent_end, &self.of_request)
    }

    /// The values of the response's fields, in their order.
    pub(super) fn of_response(&self) -> impl Iterator<Item = Option<&[u8]>> {
        values(&self.bytes, self.response_start(), &self.of_response)
    }

    fn response_start(&self) -> usize {
        self.of_request.iter().rev().find_map(|end| *end).unwrap_or(self.agent_end)
    }

    /// Packs it for the process that writes the line, whose lines may say other fields of the request: these stay behind.
    pub(super) fn pack(&self, packer: &mut Packer) {
        packer.bytes(self.line()).bytes(self.host()).bytes(self.referer()).bytes(self.agent());
    }

    /// The text that another process has packed. `None`: it has packed something else.
    pub(super) fn unpack(packed: &mut Unpacker<'_>) -> Option<Self> {
        let mut text = Self::default();
        let (line, host) = (packed.bytes()?, packed.text()?);
        text.fill(line, Some(host), Some(packed.bytes()?), Some(packed.bytes()?));
        Some(text)
    }

    pub(super) fn line(&self) -> &[u8] {
        &self.bytes[..self.line_end]
    }

    /// A word of the first line: method, target, protocol.
    pub(super) fn word(&self, index: usize) -> &[u8] {
        self.line().split(|byte| *byte == b' ').nth(index).unwrap_or_default()
    }

    pub(super) fn host(&self) -> &[u8] {
        &self.bytes[self.line_end..self.host_end]
    }

    pub(super) fn referer(&self) -> &[u8] {
        &self.bytes[self.host_end..self.referer_end]
    }

    pub(super) fn agent(&self) -> &[u8] {
        &self.bytes[self.referer_end..self.agent_end]
    }
}

/// Appends the values of a field; several lines are a list (RFC 9110 section 5.3). Returns where they end, if there are any.
fn keep<'v>(bytes: &mut Vec<u8>, values: impl Iterator<Item = &'v [u8]>) -> Option<usize> {
    let start = bytes.len();
    let mut is_there = false;
    for value in values {
        for part in [if is_there { &b", "[..] } else { b"" }, value] {
            let room = FIELD_BYTES_MAX - (bytes.len() - start);
            bytes.extend_from_slice(&part[..part.len().min(room)]);
        }
        is_there = true;
    }
    is_there.then_some(bytes.len())
}

/// The values that end there, the first of which starts at `start`.
fn values<'t>(
    bytes: &'t [u8],
    mut start: usize,
    ends: &'t [Option<usize>],
) -> impl Iterator<Item = Option<&'t [u8]>> {
    ends.iter().map(move |end| {
        let value = &bytes[start..(*end)?];
        start += value.len();
        Some(value)
    })
}

/// Bytes that a line says of a field that the user has chosen.
const FIELD_BYTES_MAX: usize = 1024;
