//! What answers a client of HTTP/1: the head in front of a body that an application or an origin has composed, and how the
//! body is framed.
//!
//! The server and the libraries inside applications share this code, so their responses are the same byte for byte
//! (`docs/handover-protocol.md`, section 4).

mod chunk;
mod codable;
mod edits;
mod framing;
mod head;

pub use chunk::{LAST_CHUNK, push_chunk_head};
pub use codable::{Codable, CodedFor, CodingTerms, is_type_among, says_no_transform};
pub use edits::{Edits, push_coding_terms, push_default, push_drop, push_join};
pub use framing::{Client, Framing};
pub use head::{HeadLines, push_head, push_head_of_fields};
