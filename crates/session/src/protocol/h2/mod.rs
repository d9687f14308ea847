//! HTTP/2 as exchanges see it: what a stream has of its request's body, and where its response goes.
//!
//! The connection itself (frames, windows, priorities, bounds) is [`baton_http::h2::Connection`].

mod body;
mod responder;

pub(crate) use body::StreamBody;
pub(crate) use responder::{Responder, ResponseState};
