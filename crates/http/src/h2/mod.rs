//! HTTP/2 without I/O (RFC 9113).

mod priority;

pub use priority::Priority;
