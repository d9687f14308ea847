//! HTTP/2 without I/O (RFC 9113).

mod head;
pub mod hpack;
mod malformed;
mod priority;
mod pseudo;
mod response_head;

pub use head::{CRUMBS_MAX, HeadText, Request};
pub use malformed::{HeadError, Malformed};
pub use priority::Priority;
pub use response_head::encode_response_head;
