//! HTTP/1.0 and 1.1, one request at a time (RFC 9112).
//!
//! ```text
//!   bytes ──► requests   heads, bodies, what is read past     ──► exchange
//!   bytes ◄── responses  persistence, framing, 100 Continue   ◄── exchange
//! ```

mod body;
mod connection;
mod requests;
mod responses;

pub(crate) use body::{BodyRead, BodySink};
pub(crate) use connection::Http1;
pub(crate) use requests::NextRequest;
pub(crate) use responses::{LastClose, Responder};
