//! SETTINGS of both sides (RFC 9113 section 6.5).

use super::frame::{kind, push_frame};

/// What the server tells a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Streams that may be open at once; default 100.
    pub streams_max: u16,
    /// Longest head of a request as HPACK counts it, 32 bytes more for each field; default 32768. Advice for the client:
    /// [`HeadLimits`](crate::HeadLimits) decide.
    pub head_bytes_max: u32,
    /// Whether extended CONNECT is served (RFC 8441); default no.
    pub connect_protocol: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { streams_max: 100, head_bytes_max: 32_768, connect_protocol: false }
    }
}

impl Settings {
    /// Appends the frame.
    pub(crate) fn push(&self, out: &mut Vec<u8>) {
        let mut payload = Vec::with_capacity(4 * SETTING_BYTES);
        let mut push = |id: u16, value: u32| {
            payload.extend_from_slice(&id.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        };
        push(id::MAX_CONCURRENT_STREAMS, u32::from(self.streams_max));
        push(id::MAX_HEADER_LIST_SIZE, self.head_bytes_max);
        push(id::NO_RFC7540_PRIORITIES, 1);
        if self.connect_protocol {
            push(id::ENABLE_CONNECT_PROTOCOL, 1);
        }
        push_frame(out, kind::SETTINGS, 0, 0, &payload);
    }
}

/// The settings in a payload whose length was checked.
pub(crate) fn settings_in(payload: &[u8]) -> impl Iterator<Item = (u16, u32)> {
    payload
        .as_chunks::<SETTING_BYTES>()
        .0
        .iter()
        .map(|[a, b, value @ ..]| (u16::from_be_bytes([*a, *b]), u32::from_be_bytes(*value)))
}

/// Bytes of one setting.
pub(crate) const SETTING_BYTES: usize = 6;

/// HPACK's table as long as no setting says otherwise, in bytes.
pub(crate) const HEADER_TABLE_BYTES: u32 = 4096;

/// Numbers of settings.
pub(crate) mod id {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 0x1;
    pub(crate) const ENABLE_PUSH: u16 = 0x2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 0x3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 0x4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 0x5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 0x6;
    /// RFC 8441 section 3.
    pub(crate) const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;
    /// RFC 9218 section 2.1.
    pub(crate) const NO_RFC7540_PRIORITIES: u16 = 0x9;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_a_frame_of_pairs() {
        let mut out = Vec::new();
        Settings { connect_protocol: true, ..Settings::default() }.push(&mut out);
        assert_eq!(out[..9], [0, 0, 24, 4, 0, 0, 0, 0, 0]);
        let all = [(3, 100), (6, 32_768), (9, 1), (8, 1)];
        assert_eq!(settings_in(&out[9..]).collect::<Vec<_>>(), all);
        out.clear();
        Settings::default().push(&mut out);
        assert_eq!(settings_in(&out[9..]).collect::<Vec<_>>(), all[..3]);
    }
}
