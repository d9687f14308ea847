//! Which kind of answer obeys which rule, and why another does not.

use crate::kinds::Kind;
use crate::rules::Rule;

/// What a rule asks of a kind of answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    Obeys,
    /// It need not, for this reason.
    Exempt(&'static str),
}

/// The rows: exceptions first, then every kind and every rule by name.
#[rustfmt::skip]
pub(crate) fn duty(kind: Kind, rule: Rule) -> Duty {
    use Duty::{Exempt, Obeys};
    use Kind as K;
    use Rule as R;
    match (kind, rule) {
        (K::RefusedInput, R::RequestId | R::Trace) =>
            Exempt("No head was read: no site, whose setting it is, and no trace are known."),
        (K::RefusedInput, R::Fields | R::Cors | R::Hsts) =>
            Exempt("No head was read, so no site is known, whose rules they are."),
        (K::SlowBody, R::Fields | R::Cors | R::Hsts) =>
            Exempt("The connection refuses the rest of a request, and knows no route."),
        (K::AcmeProof, R::Fields | R::Cors | R::Hsts) =>
            Exempt("It comes before the choice of a site and a route: an authority asks, not a browser."),

        (K::Part | K::Parts, R::Compression) =>
            Exempt("A range is one of the bytes of the file, not of a coded form."),
        (K::NotModified | K::Options | K::Preflight, R::Compression) =>
            Exempt("It has no body."),
        (K::PreconditionFailed | K::RangeNotSatisfiable | K::ErrorPage | K::Redirect | K::RefusedInput | K::SlowBody
            | K::RefusedByGuard | K::RateLimited | K::Unauthorized | K::MethodNotAllowed | K::ContentTooLarge
            | K::Away | K::AcmeProof, R::Compression) =>
            Exempt("The server writes its body, which is shorter than 1 KiB."),
        (K::ZeroCopy, R::Compression) =>
            Exempt("Its files leave by reference."),

        (K::File | K::Part | K::Parts | K::NotModified | K::PreconditionFailed | K::RangeNotSatisfiable | K::ErrorPage
            | K::OwnErrorPage | K::Redirect | K::Fixed | K::Listing | K::RefusedInput | K::SlowBody | K::RefusedByGuard
            | K::RateLimited | K::Unauthorized | K::MethodNotAllowed | K::ContentTooLarge | K::Options | K::Preflight
            | K::Sendfile | K::AccelRedirect | K::ZeroCopy | K::Cgi | K::Scgi | K::Unix | K::Shm | K::Passfd | K::Origin
            | K::Rewritten | K::Away | K::AcmeProof, R::CacheStatus) =>
            Exempt("No cached route answers."),

        (K::File | K::Part | K::Parts | K::NotModified | K::PreconditionFailed | K::RangeNotSatisfiable | K::ErrorPage
            | K::OwnErrorPage | K::Redirect | K::Fixed | K::Listing | K::RefusedInput | K::SlowBody | K::RefusedByGuard
            | K::RateLimited | K::Unauthorized | K::MethodNotAllowed | K::ContentTooLarge | K::Options | K::Preflight
            | K::Sendfile | K::AccelRedirect | K::ZeroCopy | K::Cgi | K::Scgi | K::Unix | K::Shm | K::Passfd | K::Origin
            | K::Fresh | K::Validated | K::Stale | K::Rewritten | K::Away | K::AcmeProof,
         R::RequestId | R::Trace | R::Cors | R::Fields | R::Vary | R::Compression | R::Date | R::Server | R::Hsts
            | R::CacheStatus) => Obeys,
    }
}
