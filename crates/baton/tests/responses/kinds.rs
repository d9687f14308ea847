//! The kinds of answers, and the request that causes each.

use crate::askers::{Request, Sent};
use crate::declared::declare;
use crate::site::Stage;

declare! {
    /// What is answered, and by whom.
    Kind {
        File = "file",
        Part = "range of a file",
        Parts = "several ranges of a file",
        NotModified = "304",
        PreconditionFailed = "412",
        RangeNotSatisfiable = "416",
        ErrorPage = "error page",
        OwnErrorPage = "error page of the site",
        Redirect = "redirect",
        Fixed = "fixed answer",
        Listing = "listing",
        RefusedInput = "refusal of input that is no request",
        SlowBody = "refusal of a body that does not come (408)",
        RefusedByGuard = "refusal by a guard (403)",
        RateLimited = "429",
        Unauthorized = "401",
        MethodNotAllowed = "405",
        ContentTooLarge = "413",
        Options = "answer to OPTIONS (204)",
        Preflight = "answer to a preflight (204)",
        Sendfile = "file by `X-Sendfile`",
        AccelRedirect = "file by `X-Accel-Redirect`",
        ZeroCopy = "files by `X-ZeroCopy`",
        Cgi = "CGI program",
        Scgi = "SCGI application",
        Unix = "FastCGI application, `unix`",
        Shm = "FastCGI application, `shm`",
        Passfd = "FastCGI application, `passfd`",
        Origin = "origin",
        Fresh = "cached, fresh",
        Validated = "cached, validated",
        Stale = "cached, stale",
        Rewritten = "document with other links",
        Away = "redirect to a document that is away",
        AcmeProof = "ACME proof",
    }
}

impl Kind {
    /// The request for it; `None`: what it takes is not installed here.
    pub(crate) fn request(self, stage: &Stage) -> Option<Request> {
        let get = |path: &str| with("GET", path, "");
        Some(match self {
            Self::File => get("/page.html"),
            Self::Part => with("GET", "/page.html", "Range: bytes=0-1999\r\n"),
            Self::Parts => with("GET", "/page.html", "Range: bytes=0-1999,3000-3999\r\n"),
            Self::NotModified => with("GET", "/page.html", "If-None-Match: *\r\n"),
            Self::PreconditionFailed => with("GET", "/page.html", "If-Match: \"other\"\r\n"),
            Self::RangeNotSatisfiable => with("GET", "/page.html", "Range: bytes=999999-\r\n"),
            Self::ErrorPage => get("/none"),
            Self::OwnErrorPage => get("/own/gone"),
            Self::Redirect => get("/own/moved"),
            Self::Fixed => get("/own/fixed"),
            Self::Listing => get("/own/listing/"),
            Self::RefusedInput => get(&format!("/{}", "long".repeat(5_000))),
            Self::SlowBody => Request { body: Sent::Withheld(5), ..with("POST", "/own/slow/page", "") },
            Self::RefusedByGuard => get("/own/denied/page.html"),
            Self::RateLimited => get("/own/rare/page.html"),
            Self::Unauthorized => get("/own/users/page.html"),
            Self::MethodNotAllowed => Request { body: Sent::Whole(5), ..with("POST", "/page.html", "") },
            Self::ContentTooLarge => {
                Request { body: Sent::Whole(20), ..with("POST", "/own/bounded/page", "") }
            }
            Self::Options => with("OPTIONS", "/page.html", ""),
            Self::Preflight => with("OPTIONS", "/page.html", "Access-Control-Request-Method: PUT\r\n"),
            Self::Sendfile => get("/own/unix/sendfile"),
            Self::AccelRedirect => get("/own/unix/accel"),
            Self::ZeroCopy => get("/own/unix/zerocopy"),
            Self::Cgi => get("/own/cgi/page.cgi"),
            Self::Scgi => get("/own/scgi/page"),
            Self::Unix => get("/own/unix/page"),
            Self::Shm => get("/own/shm/page"),
            Self::Passfd => get("/own/passfd/page"),
            Self::Origin => get("/own/origin/page"),
            Self::Fresh => get("/own/cached/fresh"),
            Self::Validated => get("/own/cached/validated"),
            Self::Stale => get("/own/cached/stale"),
            Self::Rewritten => get("/"),
            Self::Away => get(crate::documents::AWAY),
            Self::AcmeProof => get(stage.proof()?.path()),
        })
    }

    pub(crate) fn status(self) -> u16 {
        match self {
            Self::NotModified => 304,
            Self::PreconditionFailed => 412,
            Self::RangeNotSatisfiable => 416,
            Self::ErrorPage => 404,
            Self::OwnErrorPage => 410,
            Self::Redirect => 302,
            Self::Away => 307,
            Self::RefusedInput => 414,
            Self::SlowBody => 408,
            Self::RefusedByGuard => 403,
            Self::RateLimited => 429,
            Self::Unauthorized => 401,
            Self::MethodNotAllowed => 405,
            Self::ContentTooLarge => 413,
            Self::Options | Self::Preflight => 204,
            Self::Part | Self::Parts => 206,
            _ => 200,
        }
    }

    /// Whether another request comes first: that which takes the token, or fills the cache.
    pub(crate) fn is_second(self) -> bool {
        matches!(self, Self::RateLimited) || self.is_cached()
    }

    /// Whether the shared cache gives it.
    pub(crate) fn is_cached(self) -> bool {
        matches!(self, Self::Fresh | Self::Validated | Self::Stale)
    }

    /// Whether an origin has made it.
    pub(crate) fn is_of_origin(self) -> bool {
        matches!(self, Self::Origin) || self.is_cached()
    }

    /// Whether an application has made it, or named it.
    pub(crate) fn is_of_application(self) -> bool {
        let by_name = matches!(self, Self::Sendfile | Self::AccelRedirect | Self::ZeroCopy);
        by_name || matches!(self, Self::Cgi | Self::Scgi | Self::Unix | Self::Shm | Self::Passfd)
    }

    /// Whether its head begins with fields of an application or an origin.
    pub(crate) fn has_fields_of_others(self) -> bool {
        self.is_of_application() || self.is_of_origin()
    }
}

fn with(method: &'static str, path: &str, fields: &str) -> Request {
    Request { method, path: path.to_owned(), fields: fields.to_owned(), body: Sent::Nothing }
}
