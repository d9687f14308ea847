//! HTTP/1.1 as a client speaks it: what a proxy says to an origin, and what it reads back (RFC 9110, 9112).
//!
//! ```text
//!   RequestHead ─► Forwarding::push_head ─► bytes to the origin
//!
//!   bytes from the origin ─► ResponseReader ─┬─► ResponseHead ─► ResponseRules ─► the client
//!                                            ├─► ranges of the body
//!                                            └─► Trailers
//! ```
//!
//! A response that two readers could take for different ones is refused: [`BadResponse`] has the reasons. What goes on
//! is written anew from what was understood, never copied as a whole.

mod bad_response;
mod claims;
mod forwarded_fields;
mod forwarding;
mod head;
mod hop_by_hop;
mod reader;
mod response_head;
mod response_rules;
mod target;
mod trailers;

pub use bad_response::BadResponse;
pub use claims::{Claims, Hop, is_claim, is_told_anew};
pub use forwarded_fields::ForwardedClient;
pub use forwarding::{
    ForwardedBody, ForwardedRequest, Forwarding, HostRule, NotForwarded, PASSES_MAX, field_may_be_ruled,
    upgrade_of,
};
pub use head::{RESPONSE_FIELDS_MAX, RESPONSE_HEAD_BYTES_MAX, RequestKind};
pub use reader::{INTERIM_HEADS_MAX, ResponsePart, ResponseReader, StreamEnd};
pub use response_head::ResponseHead;
pub use response_rules::{Prefix, ResponseRules};
pub use target::PathRule;
pub use trailers::Trailers;
