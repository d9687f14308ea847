//! What a client may ask for, and how long it may take.

use baton_http::HeadLimits;

/// What a client may ask for, and how long it may take. Can change while the server runs.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections open at a time in one worker process; beyond it new ones wait in the listener's queue.
    pub connections_max: usize,
    /// Connections of one client at a time, in all workers; beyond it new ones are closed. `None`: any number.
    pub connections_per_address_max: Option<u64>,
    /// Request heads.
    pub head: HeadLimits,
    /// Bytes of a request's body; beyond it 413.
    pub body_bytes_max: u64,
    /// Requests after which a connection is closed.
    pub requests_per_connection_max: u64,
    /// Pipelined requests that are answered in one go, at the most.
    pub pipelined_max: usize,
    /// Ranges in one request; one with more gets the whole.
    pub ranges_max: usize,
    /// From the first byte of a head to its last; beyond it 408.
    pub head_timeout_ms: u64,
    /// Between two reads of a body; beyond it 408.
    pub body_timeout_ms: u64,
    /// Between two requests.
    pub idle_timeout_ms: u64,
    /// During which a client must take at least one byte.
    pub send_timeout_ms: u64,
    /// What a client must take on average, measured over `send_timeout_ms`; 0: any rate will do.
    pub send_rate_min_bytes_per_s: u64,
    /// For which the rest of a refused request is read before the connection is closed.
    pub linger_timeout_ms: u64,
}

impl Limits {
    /// Bytes that a client must take within `send_timeout_ms`.
    pub fn least_bytes_per_send_timeout(&self) -> u64 {
        (self.send_rate_min_bytes_per_s * self.send_timeout_ms / 1000).max(1)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            connections_per_address_max: None,
            head: HeadLimits::default(),
            body_bytes_max: 1 << 20,
            requests_per_connection_max: 1_000_000,
            pipelined_max: 64,
            ranges_max: 16,
            head_timeout_ms: 30_000,
            body_timeout_ms: 30_000,
            idle_timeout_ms: 75_000,
            send_timeout_ms: 60_000,
            send_rate_min_bytes_per_s: 100,
            linger_timeout_ms: 5_000,
        }
    }
}
