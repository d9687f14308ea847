//! HTTP without I/O: bytes go in, decisions come out (RFC 9110, 9112, 9113).
//!
//! Nothing here reads a clock, a descriptor or the environment, so everything can be tested with byte
//! arrays. The parts, in the order in which a request meets them:
//!
//! ```text
//!   bytes ─► HeadScanner ─► RequestHead ─► BodyReader            what the client asked
//!                               │
//!              decode_path ◄────┼────► AcceptedCodings           which representation
//!                               │
//!           Conditions ─► Precondition ─► select_ranges          which part of it, if any
//!                               │
//!                           ReplyHead (+ multipart)              what is answered
//! ```
//!
//! HTTP/2 ([`h2`]) has heads of its own form, which are turned into this one and out of it.
//!
//! What a proxy says to an origin, and what it reads back, is in [`origin`]. Heads that an application or an origin has
//! composed go to the client by [`response`].
//!
//! Requests that two servers in a row might read differently are refused: every reason is a [`Refusal`], with its
//! status, a word for logs and metrics, and a sentence for people.

mod authority;
mod body;
mod coding;
mod conditions;
mod content_range;
mod date;
mod decimal;
mod diagnose;
mod etag;
mod fields;
mod framing;
pub mod h2;
mod kept;
mod known;
mod line;
mod media;
mod method;
pub mod multipart;
mod names;
pub mod origin;
mod path;
mod preference;
mod prefix;
mod proxy_protocol;
mod ranges;
mod reasons;
mod refusal;
mod reply;
mod request;
pub mod response;
mod rules;
mod scanner;
mod status;
mod target;
mod variable;
mod variable_text;

pub use authority::{Authority, without_root};
pub use body::{BodyReader, BodyStep, EXTENSION_BYTES_MAX, TRAILER_BYTES_MAX};
pub use coding::{AcceptedCodings, Coding, preferred_coding};
pub use conditions::{Conditions, Precondition};
pub use content_range::ContentRange;
pub use date::{Stamp, parse_date};
pub use decimal::{parse_decimal, push_decimal};
pub use etag::{ETag, EntityTag, FileState};
pub use fields::{begins_like_field, field_parts, is_same_field, is_token_byte, list_members};
pub use framing::BodyFraming;
pub use kept::KeptHead;
pub use media::{MediaTypes, is_media_type};
pub use method::{Method, Version};
pub use path::{PathRefusal, decode_any_path, decode_path};
pub use preference::preferred_media_type;
pub use prefix::path_below;
pub use proxy_protocol::{Announced, BadProxyHeader, PROXY_HEADER_BYTES_MAX, read_proxy_header};
pub use ranges::{ByteRange, RangeList, RangeSpec, Ranges, select_ranges};
pub use refusal::Refusal;
pub use reply::{ReplyHead, field_name_is_safe, field_value_is_safe, push_line};
pub use request::{FIELDS_CAP, HeadLimits, RequestHead};
pub use rules::FieldRules;
pub use scanner::{HeadScanner, LEADING_BLANK_LINES_MAX};
pub use status::Status;
pub use target::{as_uri, encode_path, encode_query};
pub use variable::{LoneDollar, OfNginx, TextPart, Variable, text_of_parts, text_parts};
pub use variable_text::{VariableSource, VariableText};
