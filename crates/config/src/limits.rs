//! `[limits]`: bounds on clients and responses.

use super::kind::{Bytes, Flag, Integer, Or};
use super::setting::settings;

settings! {
    /// Bounds on clients, and on what answers them. Every limit says what happens when it is reached.
    Limits in "limits" {
        /// Connections open at a time in one worker process. Beyond it, new ones wait in the listener's queue, and idle ones end.
        /// One client has at most three quarters of them. Lower if the process may open too few files (`baton ctl status` says
        /// so).
        connections_max: u64 = 10_000, Integer(1, 10_000_000);
        /// Connections of one client at a time, over all workers. Beyond it, new ones are closed at once. Of IPv6, the first 64
        /// bits are a client. Those of proxies that `real_ip` or `proxy_protocol` of a site names are not counted.
        connections_per_address_max: Option<u64> = None, Or("off", Integer(1, 1_000_000));
        /// Bytes of a request head. Beyond it: 431. A connection holds as much memory only while a head of that
        /// size arrives.
        head_bytes_max: u64 = 32 << 10, Bytes(256, 1 << 20);
        /// Bytes of a request target. Beyond it: 414.
        target_bytes_max: u64 = 8 << 10, Bytes(64, 1 << 20);
        /// Fields of a request head. Beyond it: 431.
        fields_max: u64 = 100, Integer(1, baton_http::FIELDS_CAP as u64);
        /// Whether request fields with an underscore in their names count. Applications that make variables of names take
        /// `X_Real_IP` for `X-Real-IP`, so such fields reach neither rules, guards and logs nor origins and applications.
        underscores_in_headers: bool = false, Flag;
        /// Bytes of a request body. Beyond it: 413. Static content ignores bodies: the rest of one is discarded after
        /// the answer; beyond the limit the connection ends.
        body_bytes_max: u64 = 1 << 20, Bytes(0, 1 << 50);
        /// Requests on one connection. After the last, it is closed in order.
        requests_per_connection_max: u64 = 1_000_000, Integer(1, u32::MAX as u64);
        /// Pipelined requests answered with one send. The others follow in the next turn.
        pipelined_max: u64 = 64, Integer(1, 10_000);
        /// Bytes of the head of a response, of applications and origins alike. Beyond it: 502. A connection holds as much memory
        /// only while a head of that size arrives. Browsers take 256 KiB.
        response_head_bytes_max: u64 = baton_http::origin::RESPONSE_HEAD_BYTES_MAX as u64, Bytes(1 << 10, 1 << 20);
        /// Ranges of one request. Beyond it the whole file is sent, as RFC 9110 14.2 allows.
        ranges_max: u64 = 16, Integer(0, 1_000);
        /// Bytes that all temporary files of the server take together: bodies of requests that are not complete, and
        /// responses that slow clients have not taken. Beyond it, an application waits for its slow client, and a body
        /// that would need a file is refused: 503. One client has at most three quarters of them.
        temporary_bytes_max: u64 = 4 << 30, Bytes(0, 1 << 50);
    }
}
