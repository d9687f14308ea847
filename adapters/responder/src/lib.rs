//! The application's side of the hand-over protocol (`docs/handover-protocol.md`), as a blocking library.
//!
//! ```text
//!  Listener ─accept─► Connection ──────────► variables, body            (Responder, Request: all of it in one)
//!                        │  Link: FREED, GIVE_BACK
//!                        ▼
//!  application's output ─► Answer ─► FCGI_STDOUT │ shared region and SLICES │ the client's own socket
//! ```
//!
//! Applications written in Rust use [`Responder`]. The drop-in for `libfcgi` puts the C interface on [`Connection`] and
//! [`Answer`]; the preload library has its own parser of the connection, since the program reads it too, and uses
//! [`Descriptors`], [`Body`], [`Link`] and [`Answer`].
//!
//! Without an offer this is an ordinary FastCGI library, with records of 64 KiB.

mod answer;
mod body;
mod client;
mod connection;
mod descriptors;
mod environment;
mod link;
mod responder;

pub use answer::{Answer, Ended};
pub use body::{Body, BodyPiece};
pub use connection::{Begun, Connection, Memory, ReadError, Role};
pub use descriptors::Descriptors;
pub use environment::{ENVIRONMENT_BYTES_MAX, Environment};
pub use link::{Control, Link};
pub use responder::{Request, Responder};
