//! HTTP/2 without I/O (RFC 9113).
//!
//! ```text
//!   Connection ─┬─ frame, settings, error     what is on the wire
//!               ├─ head, hpack                requests ─► RequestHead, heads of responses ─► blocks
//!               ├─ streams, window, bounds    which streams there are, what each side may send
//!               └─ schedule, packer           whose DATA goes next, and how frames leave together
//! ```

pub mod bounds;
mod connection;
mod error;
mod event;
mod frame;
mod framed;
mod head;
pub mod hpack;
mod malformed;
mod packer;
mod priority;
mod pseudo;
mod response_head;
mod schedule;
mod settings;
mod streams;
mod window;

pub use bounds::Bound;
pub use connection::{Connection, Stall};
pub use error::{Cause, ConnectionError, ErrorCode, Violation};
pub use event::Event;
pub use frame::{FRAME_BYTES_MAX, PAYLOAD_BYTES_MAX, PREFACE, PrefaceMatch, StreamId, match_preface};
pub use framed::Framed;
pub use head::{CRUMBS_MAX, HeadText, Request};
pub use malformed::{HeadError, Malformed};
pub use packer::Packer;
pub use priority::Priority;
pub use response_head::{encode_response_head, encode_trailers};
pub use settings::Settings;
pub use window::{BODY_WINDOW, CONNECTION_WINDOW};
