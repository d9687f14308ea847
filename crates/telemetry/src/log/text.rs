//! What a line says of the request itself.

use baton_http::RequestHead;
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
    }

    /// Keeps the request's fields of these names, too.
    pub(super) fn keep<'n>(&mut self, names: impl Iterator<Item = &'n str>, head: &RequestHead<'_>) {
        for name in names {
            let start = self.bytes.len();
            let mut is_there = false;
            for value in head.fields_of(name) {
                // Several lines are a list (RFC 9110 section 5.3).
                for part in [if is_there { &b", "[..] } else { b"" }, value] {
                    let room = FIELD_BYTES_MAX - (self.bytes.len() - start);
                    self.bytes.extend_from_slice(&part[..part.len().min(room)]);
                }
                is_there = true;
            }
            self.of_request.push(is_there.then_some(self.bytes.len()));
        }
    }

    /// The values of these, in their order.
    pub(super) fn of_request(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let mut start = self.agent_end;
        self.of_request.iter().map(move |end| {
            let value = &self.bytes[start..(*end)?];
            start += value.len();
            Some(value)
        })
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

/// Bytes that a line says of a field that the user has chosen.
const FIELD_BYTES_MAX: usize = 1024;
