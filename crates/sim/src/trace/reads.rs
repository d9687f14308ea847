//! Which bytes of a file a client got, and when: what a log tells of players, which ask for parts.

use baton_dispatch::target_hash;
use baton_http::{MediaTypes, is_media_type};

use super::{LogEntry, TargetId};

/// The bytes that one request got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRead {
    /// When the request began, in milliseconds since 1970.
    pub begin_ms: u64,
    /// When its response had ended.
    pub end_ms: u64,
    /// A hash of the client's address.
    pub client: u64,
    /// The file.
    pub target: TargetId,
    /// The first byte; not known of a part in a log without ranges.
    pub start: Option<u64>,
    /// How many there were, at least 1.
    pub bytes: u64,
    /// Whether the file is video or sound, by its name.
    pub is_media: bool,
}

/// All that a log tells of.
#[derive(Debug)]
pub(super) struct LogReads {
    pub(super) list: Vec<LogRead>,
    types: MediaTypes,
}

impl Default for LogReads {
    fn default() -> Self {
        Self { list: Vec::new(), types: MediaTypes::builtin() }
    }
}

impl LogReads {
    /// Servers write an entry when the response has ended.
    pub(super) fn take(&mut self, entry: &LogEntry<'_>, target: TargetId, path: &[u8]) {
        if entry.bytes == 0 {
            return;
        }
        let media_type = self.types.of(path);
        let end_ms = entry.time_s.max(0) as u64 * 1000;
        self.list.push(LogRead {
            begin_ms: end_ms.saturating_sub(entry.duration_ms),
            end_ms,
            client: target_hash(&entry.client),
            target,
            start: entry.start(),
            bytes: entry.bytes,
            is_media: ["video/*", "audio/*"].iter().any(|kind| is_media_type(media_type, kind)),
        });
    }
}
