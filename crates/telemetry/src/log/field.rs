//! What a line can say of a request.

use std::fmt;

macro_rules! fields {
    ($($(#[doc = $doc:literal])* $variant:ident = $word:literal,)*) => {
        /// A field of the access log.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum LogField {
            $($(#[doc = $doc])* $variant,)*
        }

        impl LogField {
            /// Each field with its name and what it means.
            pub const ALL: &[(&'static str, Self, &'static str)] =
                &[$(($word, Self::$variant, concat!($($doc),*)),)*];

            /// Its name.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

fields! {
    /// when the request ended, in UTC, as in RFC 3339: 1994-11-06T08:49:37.123Z
    Time = "time",
    /// the same as `combined` writes it: 06/Nov/1994:08:49:37 +0000
    TimeCommon = "time_common",
    /// address of the client
    Peer = "peer",
    /// user whose password was right
    User = "user",
    /// name of the site
    Site = "site",
    /// host that the client asked for, without the port
    Host = "host",
    /// first line of the request
    Request = "request",
    /// method of the request
    Method = "method",
    /// path and query of the request
    Target = "target",
    /// version of HTTP
    Protocol = "protocol",
    /// status of the response
    Status = "status",
    /// bytes of the body that were sent
    BodyBytes = "body_bytes",
    /// microseconds from the head of the request to the last byte of the response
    DurationUs = "duration_us",
    /// microseconds until the first byte of the response had left
    FirstByteUs = "first_byte_us",
    /// microseconds for which an application or origin had the request
    UpstreamUs = "upstream_us",
    /// how the request ended
    Outcome = "outcome",
    /// what the shared cache did
    Cache = "cache",
    /// how the answer of an application has travelled: see docs/applications.md
    Transport = "transport",
    /// the origin that was asked, how often, and how long it took
    Origin = "origin",
    /// id of the request, see `request_id` of the site
    RequestId = "request_id",
    /// trace that the request belongs to, where `request_id` or `traceparent` is on
    TraceId = "trace_id",
    /// the page from which the client came
    Referer = "referer",
    /// the client's program
    UserAgent = "user_agent",
}

/// What a line says: a field of the log, or one of the head of request or response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineField {
    /// One that the log knows.
    Known(LogField),
    /// The request's field of this name.
    OfRequest(Box<str>),
    /// The response's field of this name.
    OfResponse(Box<str>),
}

impl LineField {
    /// What the names of request fields begin with in a log.
    pub const OF_REQUEST: &'static str = "request_header.";

    /// What the names of response fields begin with in a log.
    pub const OF_RESPONSE: &'static str = "response_header.";

    /// The name of the request's field, if it is one.
    pub(super) fn of_request(&self) -> Option<&str> {
        match self {
            Self::OfRequest(name) => Some(name),
            Self::Known(_) | Self::OfResponse(_) => None,
        }
    }

    /// The name of the response's field, if it is one.
    pub(super) fn of_response(&self) -> Option<&str> {
        match self {
            Self::OfResponse(name) => Some(name),
            Self::Known(_) | Self::OfRequest(_) => None,
        }
    }
}

impl fmt::Display for LineField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(field) => f.write_str(field.word()),
            Self::OfRequest(name) => write!(f, "{}{name}", Self::OF_REQUEST),
            Self::OfResponse(name) => write!(f, "{}{name}", Self::OF_RESPONSE),
        }
    }
}

impl From<LogField> for LineField {
    fn from(field: LogField) -> Self {
        Self::Known(field)
    }
}

impl LogField {
    /// What JSON says if the configuration does not choose.
    pub(super) const USUAL: [LineField; 18] = [
        LineField::Known(Self::Time),
        LineField::Known(Self::Peer),
        LineField::Known(Self::User),
        LineField::Known(Self::Site),
        LineField::Known(Self::Request),
        LineField::Known(Self::Status),
        LineField::Known(Self::BodyBytes),
        LineField::Known(Self::DurationUs),
        LineField::Known(Self::FirstByteUs),
        LineField::Known(Self::UpstreamUs),
        LineField::Known(Self::Outcome),
        LineField::Known(Self::Cache),
        LineField::Known(Self::Transport),
        LineField::Known(Self::Origin),
        LineField::Known(Self::RequestId),
        LineField::Known(Self::TraceId),
        LineField::Known(Self::Referer),
        LineField::Known(Self::UserAgent),
    ];
}
