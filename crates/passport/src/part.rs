//! What is known of a connection beyond its socket and its input: a part for each machine that knows something.
//!
//! A part is bytes that the machine has packed, and that only it reads.

use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Most bytes of all parts of a passport.
pub const PARTS_BYTES_MAX: usize = 128 << 10;

/// What a part is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// TLS: keys, numbers of records, what the handshake has settled, and what has arrived and not been read.
    Tls,
    /// HTTP/2, between two requests.
    Http2,
    /// A response of HTTP/1 that is being sent: ranges of files, whose descriptors come behind the client's, and bytes.
    Response,
    /// A tunnel to an origin, whose connection comes behind the client's: bytes that neither of the two has taken.
    Tunnel,
}

/// A part. It may hold keys: its memory is cleared when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is of.
    pub kind: PartKind,
    /// What that machine has packed.
    pub bytes: Zeroizing<Vec<u8>>,
}

/// Without what is in it.
impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {} bytes", self.kind, self.bytes.len())
    }
}
