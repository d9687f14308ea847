//! What is spoken on a connection: bytes in, requests and their bodies out; responses in, framed bytes out.
//!
//! A protocol touches no socket and no clock. Persistence, the `Connection` field, chunked coding and `100 Continue`
//! are decided here and nowhere else: an exchange writes a head and a body, and does not know how they are framed.

mod h1;
mod h2;
mod responder;
mod stream;
mod written;

pub(crate) use h1::{BodyRead, BodySink, Http1, LastClose, NextRequest};
pub(crate) use h2::{ResponseState, StreamBody};
pub(crate) use responder::Responder;
pub use stream::StreamId;
pub(crate) use written::{TooShort, Written};
