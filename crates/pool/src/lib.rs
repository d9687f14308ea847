//! Memory that a server and an application share: who may write to it is a type.
//!
//! | the server has | the application has | who writes | who looks |
//! |---|---|---|---|
//! | [`ChunkPool`], [`Chunk`] | [`View`] | the server; the kernel refuses the application | both |
//! | [`Region`] | [`Writable`] | the application, at any time | the application; the server lets only the kernel look |
//! | a file in memory, sealed once | [`View`] | nothing any more | both |
//!
//! The memory is a file without a name (`memfd`), whose descriptor goes over a Unix socket once. It cannot shrink, so no
//! access raises `SIGBUS`, and it cannot grow, which bounds it. [`Lent`] counts what an application may still look at.

mod chunk;
mod lent;
mod mapping;
mod region;
mod view;
mod writable;

pub use chunk::{CHUNK_BYTES, Chunk, ChunkPool};
pub use lent::{Lent, NotLent};
pub use region::Region;
pub use view::View;
pub use writable::Writable;
