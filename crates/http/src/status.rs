//! Status codes and their reason phrases.

use std::fmt;

/// A status code: three digits, the first is its class (RFC 9110 section 15).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(u16);

macro_rules! statuses {
    ($($name:ident = $code:literal $reason:literal;)*) => {
        impl Status {
            $(#[doc = concat!("`", $code, " ", $reason, "`")]
            pub const $name: Self = Self($code);)*

            /// The reason phrase of the registry; empty for unknown codes.
            pub const fn reason(self) -> &'static str {
                match self.0 {
                    $($code => $reason,)*
                    _ => "",
                }
            }
        }
    };
}

statuses! {
    CONTINUE = 100 "Continue";
    SWITCHING_PROTOCOLS = 101 "Switching Protocols";
    OK = 200 "OK";
    CREATED = 201 "Created";
    ACCEPTED = 202 "Accepted";
    NO_CONTENT = 204 "No Content";
    PARTIAL_CONTENT = 206 "Partial Content";
    MULTIPLE_CHOICES = 300 "Multiple Choices";
    MOVED_PERMANENTLY = 301 "Moved Permanently";
    FOUND = 302 "Found";
    SEE_OTHER = 303 "See Other";
    NOT_MODIFIED = 304 "Not Modified";
    TEMPORARY_REDIRECT = 307 "Temporary Redirect";
    PERMANENT_REDIRECT = 308 "Permanent Redirect";
    BAD_REQUEST = 400 "Bad Request";
    UNAUTHORIZED = 401 "Unauthorized";
    PAYMENT_REQUIRED = 402 "Payment Required";
    FORBIDDEN = 403 "Forbidden";
    NOT_FOUND = 404 "Not Found";
    METHOD_NOT_ALLOWED = 405 "Method Not Allowed";
    NOT_ACCEPTABLE = 406 "Not Acceptable";
    REQUEST_TIMEOUT = 408 "Request Timeout";
    CONFLICT = 409 "Conflict";
    GONE = 410 "Gone";
    LENGTH_REQUIRED = 411 "Length Required";
    PRECONDITION_FAILED = 412 "Precondition Failed";
    CONTENT_TOO_LARGE = 413 "Content Too Large";
    URI_TOO_LONG = 414 "URI Too Long";
    UNSUPPORTED_MEDIA_TYPE = 415 "Unsupported Media Type";
    RANGE_NOT_SATISFIABLE = 416 "Range Not Satisfiable";
    EXPECTATION_FAILED = 417 "Expectation Failed";
    MISDIRECTED_REQUEST = 421 "Misdirected Request";
    UPGRADE_REQUIRED = 426 "Upgrade Required";
    TOO_MANY_REQUESTS = 429 "Too Many Requests";
    REQUEST_HEADER_FIELDS_TOO_LARGE = 431 "Request Header Fields Too Large";
    UNAVAILABLE_FOR_LEGAL_REASONS = 451 "Unavailable For Legal Reasons";
    INTERNAL_SERVER_ERROR = 500 "Internal Server Error";
    NOT_IMPLEMENTED = 501 "Not Implemented";
    BAD_GATEWAY = 502 "Bad Gateway";
    SERVICE_UNAVAILABLE = 503 "Service Unavailable";
    GATEWAY_TIMEOUT = 504 "Gateway Timeout";
    HTTP_VERSION_NOT_SUPPORTED = 505 "HTTP Version Not Supported";
    INSUFFICIENT_STORAGE = 507 "Insufficient Storage";
    LOOP_DETECTED = 508 "Loop Detected";
}

impl Status {
    /// The status of a code between 100 and 999.
    ///
    /// # Panics
    /// On any other code: a configuration is checked before it gets here.
    pub const fn new(code: u16) -> Self {
        assert!(code >= 100 && code <= 999, "a status code has three digits");
        Self(code)
    }

    /// The code: 100 to 999.
    pub const fn code(self) -> u16 {
        self.0
    }

    /// Whether an answer with this status never has content (RFC 9110 section 6.4.1).
    pub const fn forbids_content(self) -> bool {
        matches!(self.0, 100..=199 | 204 | 304)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status({self})")
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            "" => write!(f, "{}", self.0),
            reason => write!(f, "{} {reason}", self.0),
        }
    }
}
