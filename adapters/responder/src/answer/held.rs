//! How long output has been held back from the server, which takes an application for stuck of which it hears nothing.
//!
//! Output is collected as long as more follows at once. There is no timer that would say when it does not: the next
//! write finds that out, by the clock, from the time at which the server has heard of the response before.

use std::time::{Duration, Instant};

/// A response that takes so long is sent as it is made. No `timeout_ms` of use is as short, and most pages are
/// complete before, and leave as a whole.
const HELD_MAX: Duration = Duration::from_millis(500);

/// Looking at the clock costs as much as copying so many bytes. Programs with a buffer of their own write at least 8 KB.
const LOOK_BYTES: usize = 4 << 10;

/// What is held back of one response.
#[derive(Debug)]
pub(super) struct Held {
    /// When the server has heard of the response, or has asked for it.
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

    /// Whether `bytes` of output have to be sent although more is sure to follow.
    pub(super) fn is_overdue(&mut self, bytes: usize) -> bool {
        if bytes < self.looked_at + LOOK_BYTES {
            return false;
        }
        self.looked_at = bytes;
        self.heard.elapsed() >= HELD_MAX
    }
}
