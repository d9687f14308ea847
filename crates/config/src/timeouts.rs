//! `[timeouts]`: how long a client may take in each phase.

use super::duration::Milliseconds;
use super::kind::Bytes;
use super::setting::settings;

const DAY_MS: u64 = 86_400_000;

settings! {
    /// How long a client may take, in each phase of a connection.
    Timeouts in "timeouts" {
        /// Milliseconds from the first byte of a request head to its last. Then: 408, and the connection is closed.
        head_ms: u64 = 30_000, Milliseconds(1, DAY_MS);
        /// Milliseconds between two reads of a request body. Then: 408, unless the request has been answered already, and the
        /// connection is closed.
        body_ms: u64 = 30_000, Milliseconds(1, DAY_MS);
        /// Milliseconds that a kept-alive connection may be idle between two requests. Then it is closed.
        idle_ms: u64 = 75_000, Milliseconds(1, DAY_MS);
        /// Milliseconds in which a client must read at least one byte of its response. Then the connection is reset.
        send_ms: u64 = 60_000, Milliseconds(1, DAY_MS);
        /// Bytes per second that a client must take on average over `send_ms`; 0: any rate will do.
        send_rate_min_bytes_per_s: u64 = 100, Bytes(0, 1 << 30);
        /// Milliseconds for which the rest of a refused request is read, so that the client receives the answer.
        linger_ms: u64 = 5_000, Milliseconds(0, DAY_MS);
    }
}
