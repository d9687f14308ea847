//! IO-Lite's calls (Pai, 1999, appendix A): programs that both use them pass bytes to each other by reference.
//!
//! ```text
//!   writer                        pipe or Unix socket                          reader
//!   Aggregate ─► Writer ═══ bytes, and markers in their place ═════════► Reader ─► Aggregate
//!                   │                                                       ▲
//!                   └── channel: descriptors of pools and files, once ──────┤
//!                       ◄──────────── references that are not needed ───────┘
//! ```
//!
//! A [`Reader`] listens on an abstract Unix socket, the *channel*, which is named after the pipe. A [`Writer`] that finds it
//! writes, in the place of long runs of bytes, a marker that refers to them. One that does not writes bytes. Order, waiting, the end and the loss of
//! the other side are the pipe's own. Both ends belong to one user ([0108](../../docs/decisions/0108-references-beside-the-pipe.md)).
//!
//! | module | what it is |
//! |---|---|
//! | `wire` | markers and messages, without I/O |
//! | `channel` | how two ends find each other |
//! | `allocator` | memory for new bytes |
//! | `writer`, `reader` | the two ends |
//! | `memory` | what slices lie in: another program's pool, a range of a file |
//! | `c` | the functions of `iolite.h` |

mod allocator;
#[allow(unsafe_code)]
mod c;
mod channel;
mod memory;
mod reader;
#[doc(hidden)]
pub mod wire;
mod writer;

pub use allocator::{Allocator, Blank};
pub use baton_buf::Aggregate;
pub use memory::look;
pub use reader::Reader;
pub use writer::Writer;

/// Fewer bytes than this in a row go as bytes: a marker would cost more than to copy them.
const REFERENCE_BYTES_MIN: u64 = 8 << 10;

/// What a pipe holds at most, unless root has made it larger.
const UNREAD_BYTES_MAX: u64 = 1 << 20;
