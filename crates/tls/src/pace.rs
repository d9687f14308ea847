//! How large the next record is.
//!
//! A client can use nothing of a record before all of it has arrived. While the congestion window is small, a record
//! therefore fits one segment; once data flows, large records cost less.

use crate::record_key::PLAINTEXT_BYTES_MAX;

/// Plaintext of a record that fits one segment: 1440 bytes over IPv6, less 12 of timestamps, at most 29 of the record,
/// and 30 to spare for a tunnel on the way.
const SMALL_BYTES: usize = 1369;

/// Bytes in small records before large ones follow: more than three initial congestion windows of 10 segments.
const SMALL_BYTES_TOTAL: usize = 64 * 1024;

/// After so long without output the congestion window is small again (RFC 5681, section 4.1, restarts it after one
/// retransmission timeout, which is at most about a second here).
const IDLE_MS: u64 = 1000;

/// Chooses the size of records from what went before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Bytes still to go in small records.
    small_left: usize,
    /// When the last record was sealed.
    last_ms: u64,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self { small_left: SMALL_BYTES_TOTAL, last_ms: 0 }
    }

    /// Output begins or goes on at this time.
    pub(crate) fn handle_time(&mut self, now_ms: u64) {
        if now_ms.saturating_sub(self.last_ms) >= IDLE_MS {
            self.small_left = SMALL_BYTES_TOTAL;
        }
        self.last_ms = now_ms;
    }

    /// The most plaintext that the next record should carry.
    pub(crate) fn record_bytes(&self) -> usize {
        if self.small_left == 0 { PLAINTEXT_BYTES_MAX } else { SMALL_BYTES }
    }

    /// A record with so much plaintext was sealed.
    pub(crate) fn handle_sealed(&mut self, bytes: usize) {
        self.small_left = self.small_left.saturating_sub(bytes);
    }
}
