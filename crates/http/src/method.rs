//! Methods and versions of requests.

use std::fmt;

/// A request method. The methods of RFC 9110 section 9 and PATCH (RFC 5789) have names; a server of files
/// answers every other one the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Transfer the representation.
    Get,
    /// Like GET, without the content.
    Head,
    /// Ask what may be done with the target.
    Options,
    /// Let the target process the content.
    Post,
    /// Replace the target.
    Put,
    /// Remove the target.
    Delete,
    /// Change parts of the target.
    Patch,
    /// Make a tunnel.
    Connect,
    /// Echo the request.
    Trace,
    /// A well-formed method that none of the above names.
    Other,
}

impl Method {
    /// The method that a token names. Methods are case-sensitive: `get` is [`Method::Other`].
    pub(crate) fn of_token(token: &[u8]) -> Self {
        match token {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"OPTIONS" => Self::Options,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"PATCH" => Self::Patch,
            b"CONNECT" => Self::Connect,
            b"TRACE" => Self::Trace,
            _ => Self::Other,
        }
    }

    /// Whether its requests are taken to have content: recipients want to be told if there is none (RFC 9110 section 8.6).
    pub const fn anticipates_content(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }

    /// The token, or `OTHER` (the request line has the client's own spelling).
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Options => "OPTIONS",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Patch => "PATCH",
            Self::Connect => "CONNECT",
            Self::Trace => "TRACE",
            Self::Other => "OTHER",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The version of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/1.0: connections close unless the client asks otherwise.
    Http10,
    /// HTTP/1.1: connections persist unless a side asks otherwise.
    Http11,
    /// HTTP/2: a stream of a connection that persists.
    Http2,
}

impl Version {
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2.0`, as logs and `SERVER_PROTOCOL` have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2.0",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
