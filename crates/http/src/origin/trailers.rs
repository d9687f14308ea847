//! The fields behind a chunked body (RFC 9110 section 6.5).

use super::hop_by_hop::is_of_the_connection;
use super::response_head::remove_lines;
use crate::fields::{field_parts, is_same_field};

/// Fields that may go on behind the body. They are never merged into a head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailers {
    text: Vec<u8>,
}

impl Trailers {
    /// `text`: complete lines, checked. Fields that no trailer may have are left out: a recipient that merges them into the
    /// head would act on them.
    pub(super) fn of_lines(mut text: Vec<u8>) -> Self {
        remove_lines(&mut text, |name, _| !is_of_the_connection(name) && !is_of_the_head(name));
        Self { text }
    }

    /// The fields in order, blanks around the values removed.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        field_parts(&self.text)
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

/// Whether a field decides on framing, routing, authentication, caching or the content's form, before the content comes
/// (RFC 9110 section 6.5.1).
fn is_of_the_head(name: &[u8]) -> bool {
    OF_THE_HEAD.iter().any(|other| is_same_field(name, other))
}

const OF_THE_HEAD: [&str; 18] = [
    "Age",
    "Authorization",
    "Cache-Control",
    "Content-Encoding",
    "Content-Length",
    "Content-Range",
    "Content-Type",
    "Cookie",
    "Date",
    "Expires",
    "Host",
    "Location",
    "Max-Forwards",
    "Retry-After",
    "Set-Cookie",
    "Vary",
    "Warning",
    "WWW-Authenticate",
];
