//! The HTTP/2 connection, frame by frame.
//!
//! Goal: what RFC 9113 and 9218 ask of a server, and the bounds that it needs. Method: frames made by hand go in, events
//! and frames come out.

mod bounds;
mod client;
mod files;
mod flow;
mod frames;
mod laws;
mod streams;
