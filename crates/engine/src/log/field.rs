//! What a line can say of a request.

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
    /// when the request ended, in seconds since 1970
    Time = "time",
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

impl LogField {
    /// What JSON says if the configuration does not choose.
    pub(super) const USUAL: [Self; 17] = [
        Self::Time,
        Self::Peer,
        Self::User,
        Self::Site,
        Self::Request,
        Self::Status,
        Self::BodyBytes,
        Self::DurationUs,
        Self::FirstByteUs,
        Self::UpstreamUs,
        Self::Outcome,
        Self::Cache,
        Self::Origin,
        Self::RequestId,
        Self::TraceId,
        Self::Referer,
        Self::UserAgent,
    ];
}
