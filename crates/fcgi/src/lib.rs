//! FastCGI 1.0, CGI response heads and SCGI without I/O, and the hand-over protocol on top of them
//! (`docs/handover-protocol.md`): bytes go in, decisions come out.
//!
//! Both ends are here, since the server and the libraries that run in applications must agree:
//!
//! ```text
//!            server                                           application
//!   environment ─► params ─► request::push_* ──────────► application::RequestReader
//!                    ▲ offer                                          │
//!   response::ResponseReader ◄──────────────────── application::push_*
//!        │ Stdout
//!   cgi::HeadReader ─► CgiHead ─► http::response    (both ends: what answers the client)
//!                        └─► Instruction: named files (zero_copy), redirects within the server
//! ```
//!
//! Streams (standard output, standard input, parameters) are passed on as ranges of the caller's buffer, never
//! copied; records that must be complete (ends, slices, counts) are buffered, at most 64 KiB. Any split of the input
//! gives the same result.

pub mod application;
mod broken;
pub mod cgi;
pub mod environment;
pub mod frames;
mod handover;
pub mod offer;
pub mod params;
pub mod record;
pub mod request;
pub mod response;
pub mod scgi;
mod text;
pub mod zero_copy;

pub use broken::Broken;
pub use handover::{AnswerOutcome, Answered, Declined, FileRange, RegionSlice, Rest, SLICES_MAX};
