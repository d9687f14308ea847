//! The journal: what the store has done, one entry after the other, from which the next process learns what is there.
//!
//! ```text
//!   ┌ header ──────────────┬ mark ───────────┬ frame ──────────────────┬ frame ─ … ┐
//!   │ magic, version, id … │ durable up to   │ checksum, length, entry │           │
//!   └──────────────────────┴─────────────────┴─────────────────────────┴───────────┘
//! ```
//!
//! What counts is the longest prefix of valid frames. The checksum of a frame includes the journal's id and the frame's
//! offset, so no leftover of another journal passes for an entry. A prefix that ends before the mark means that bytes
//! are damaged that were on the disk already; a removal may be among them, so the whole journal is void then.

pub mod entry;
pub(crate) mod file;
pub mod frame;
