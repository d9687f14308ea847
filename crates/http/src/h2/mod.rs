//! HTTP/2 without I/O (RFC 9113).

pub mod hpack;
mod priority;
mod response_head;

pub use priority::Priority;
pub use response_head::encode_response_head;
