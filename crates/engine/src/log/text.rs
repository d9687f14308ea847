//! What a line says of the request itself.

use baton_parcel::{Packer, Unpacker};

/// What a line says of the request itself, kept until the response has been sent.
#[derive(Debug, Default)]
pub(super) struct RequestText {
    bytes: Vec<u8>,
    line_end: usize,
    host_end: usize,
    referer_end: usize,
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
    }

    /// Packs it for the process that writes the line.
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
        &self.bytes[self.referer_end..]
    }
}
