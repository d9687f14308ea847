//! What a client is like, what it has done, and what it is in the middle of.

use crate::choices::Choices;

/// How a client lets the server send.
#[derive(Debug)]
pub(super) struct Flow {
    /// Windows that it keeps open, in bytes.
    pub(super) window: i64,
    /// How often it thinks of that, in a hundred times. Never: it stalls.
    pub(super) percent: u8,
    /// WINDOW_UPDATE frames that it may still send before the server takes them for an abuse.
    pub(super) updates_left: u32,
}

impl Flow {
    pub(super) fn choose(choices: &mut Choices) -> Self {
        Self {
            window: choices.one(&[700, 5_000, 65_535, 65_535, 1_000_000]),
            percent: choices.one(&[0, 10, 80, 80, 80, 100]),
            updates_left: UPDATES_MAX,
        }
    }

    /// The server has sent DATA.
    pub(super) fn handle_data(&mut self) {
        self.updates_left = (self.updates_left + 1).min(UPDATES_MAX);
    }
}

/// How busy a client is with other frames than those of requests.
#[derive(Debug)]
pub(super) struct Mood {
    /// How often, in a hundred times.
    pub(super) percent: u8,
    /// How often it breaks the protocol, in a hundred times.
    pub(super) violates_percent: u8,
    /// Frames that it may still send before the server takes them for an abuse.
    pub(super) frames_left: u32,
}

impl Mood {
    pub(super) fn choose(choices: &mut Choices) -> Self {
        Self {
            percent: choices.one(&[0, 5, 5, 30]),
            violates_percent: choices.one(&[0, 0, 0, 0, 10]),
            frames_left: FRAMES_MAX,
        }
    }
}

/// Answers that the client owes.
#[derive(Debug, Default)]
pub(super) struct Debts {
    pub(super) settings_ack: bool,
    pub(super) pings: Vec<[u8; 8]>,
}

/// SETTINGS that the server has not acknowledged.
#[derive(Debug)]
pub(super) struct SentSettings {
    /// Where they end in what the client sends.
    pub(super) at: usize,
    pub(super) initial_window: Option<u32>,
    /// The highest stream that was read before them, once they were read.
    pub(super) read_behind: Option<u32>,
}

/// A PING that the server has not answered.
#[derive(Debug)]
pub(super) struct SentPing {
    pub(super) at: usize,
    pub(super) payload: [u8; 8],
    pub(super) is_read: bool,
}

/// A header block that lacks its end.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) stream: u32,
    pub(super) ends: bool,
    pub(super) bytes: Vec<u8>,
}

/// The server's last GOAWAY.
#[derive(Clone, Debug)]
pub(super) struct Farewell {
    /// Streams above this one are not answered.
    pub(super) last: u32,
    pub(super) code: u32,
}

impl Farewell {
    /// Whether the server says which streams it has taken.
    pub(super) fn is_final(&self) -> bool {
        self.last != STREAM_MAX
    }
}

/// What the client wants of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Priority {
    /// 0 is the most urgent.
    pub(super) urgency: usize,
    pub(super) is_incremental: bool,
}

impl Priority {
    /// As a field says it, or a frame.
    pub(super) fn value(self) -> String {
        let incremental = if self.is_incremental { ", i" } else { "" };
        format!("u={}{incremental}", self.urgency)
    }
}

/// That of requests that do not say it.
pub(super) const USUAL: Priority = Priority { urgency: 3, is_incremental: false };

/// A stream whose head breaks the rules of HTTP/2.
#[derive(Debug, Default)]
pub(super) struct Malformed {
    pub(super) is_read: bool,
    pub(super) is_reset: bool,
}

/// What a client does wrong. It sends nothing behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Violation {
    /// Code and word of the server's GOAWAY.
    pub(super) code: u32,
    pub(super) word: &'static str,
    /// Where the wrong bytes begin and end in all that the client sends.
    pub(super) begins_at: usize,
    pub(super) ends_at: usize,
    /// The stream that it opens by the way, or 0.
    pub(super) stream: u32,
    /// Whether it is none once the server has ceased to take requests.
    pub(super) is_excusable: bool,
}

impl Violation {
    /// Whether the server may know of it.
    pub(super) fn is_begun(&self, bytes_read: usize) -> bool {
        bytes_read > self.begins_at
    }

    /// Whether the server must know of it.
    pub(super) fn is_read(&self, bytes_read: usize, has_farewell: bool) -> bool {
        bytes_read >= self.ends_at && !(self.is_excusable && has_farewell)
    }
}

/// WINDOW_UPDATE frames that the server takes without DATA that explain them; it has a hundred to spare.
const UPDATES_MAX: u32 = 300;

/// Frames that are no part of requests; the server takes 200 of them.
const FRAMES_MAX: u32 = 150;

/// The last stream of a GOAWAY that only announces another.
pub(super) const STREAM_MAX: u32 = 0x7fff_ffff;
