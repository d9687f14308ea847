//! Content codings that are made on the fly, without I/O: [`Rules`] say what is worth coding and choose the coding,
//! an [`Encoder`] takes bytes and gives bytes.
//!
//! ```text
//!   media type, length ─► Rules::covers ─┐
//!                                        ├─► coding ─► whole():   a file, once, kept by the content cache
//!   Accept-Encoding ────► Rules::choose ─┘        └──► Encoder:   a stream, piece by piece, flushed where it pauses
//! ```

mod encoder;
mod head;
mod rules;

pub use encoder::{Effort, Encoder, whole};
pub use head::{Verdict, code, forget_bytes, judge};
pub use rules::Rules;
