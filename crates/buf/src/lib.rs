//! What flows through Baton: immutable, reference-counted buffers and the aggregates made of them.
//!
//! The idea is IO-Lite's (Pai, 1999, section 2.2.1). Bytes live in a [`Buffer`] that never changes while it is
//! shared; a [`Slice`] is a range of one; an [`Aggregate`] is an ordered list of slices *or of ranges of open files*.
//! Aggregates are passed by value, the bytes under them by reference: heads are prepended, bodies appended, ranges
//! split off, and nothing is copied to do so.
//!
//! ```text
//!   Aggregate   [ Slice ][ Slice ][ FileSlice        ][ Slice ]
//!                   │        │         │                  │
//!   Buffer      ┌───▼────────▼───┐   open file        ┌───▼───┐
//!               │ head    body   │   (page cache)     │ tail  │
//!               └────────────────┘                    └───────┘
//! ```
//!
//! Bytes may also lie in a [`Region`] that another process writes to: a [`SharedSlice`] is a range of those, which the
//! kernel alone ever looks at ([`gather`]), or in a [`Pipe`] between two sockets. A [`Sender`] takes an aggregate to a socket, or to another
//! [`Sink`], a call at a time.
//!
//! A [`Pool`] reuses the memory of unreferenced buffers, so a server in its steady state allocates nothing.

mod aggregate;
mod buffer;
mod file;
pub mod gather;
mod memory_sink;
mod piped;
mod pool;
mod sender;
mod shared;
mod sink;
mod unsent;

pub use aggregate::{Aggregate, FileSlice, Piece};
pub use buffer::{Buffer, Held, Slice, SliceName};
pub use file::OpenFile;
pub use memory_sink::MemorySink;
pub use piped::{Pipe, PipedSlice, Pipes};
pub use pool::{Pool, Unfrozen};
pub use sender::{Sender, Stop};
pub use shared::{Loan, SharedSlice};
pub use sink::Sink;
pub use unsent::Unsent;
