//! How long output has been held back from the server, which takes a silent application for stuck.
//!
//! Output is collected as long as more follows at once. There is no timer: the next write checks the time since the
//! last data to the server.

use std::time::{Duration, Instant};

/// A response that takes so long is sent as it is made. No `timeout_ms` of use is as short, and most pages are
/// complete before, and leave as a whole.
const HELD_MAX: Duration = Duration::from_millis(500);

/// Reading the clock costs as much as copying so many bytes. Programs with a buffer of their own write at least 8 KB.
const LOOK_BYTES: usize = 4 << 10;

/// The output held back of one response.
#[derive(Debug)]
pub(super) struct Held {
    /// When the server last got data of the response, or its request was sent.
    heard: Instant,
    /// How much was held back at the last look at the clock.
    looked_at: usize,
}

impl Default for Held {
    fn default() -> Self {
        Self { heard: Instant::now(), looked_at: 0 }
    }
}

impl Held {
    /// The server hears of the response.
    pub(super) fn note_heard(&mut self) {
        *self = Self::default();
    }

    /// Whether `bytes` of output must be sent although more follows.
    pub(super) fn is_overdue(&mut self, bytes: usize) -> bool {
        if bytes < self.looked_at + LOOK_BYTES {
            return false;
        }
        self.looked_at = bytes;
        self.heard.elapsed() >= HELD_MAX
    }
}
