//! Which fields of a client's request reach the origin of a cached route.
//!
//! What changes the answer is in the key, is named by Vary, or does not go on: else one client chooses the answer that
//! others get ("web cache poisoning"). Applications answer to fields that no Vary names. Those that are known go no
//! further.

use baton_http::is_same_field;

/// What becomes of a field on the way to the origin of a cached route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldUse {
    /// It goes on.
    Forward,
    /// It does not: it would change the answer, and no key has it.
    Withhold,
    /// The cache has its own, or none: conditions and ranges, of which it asks for others than the client, and
    /// Accept-Encoding, in the form that counts for Vary
    /// ([`push_reduced_codings`](super::push_reduced_codings)).
    Rewrite,
}

/// What becomes of a field.
pub fn field_use(name: &[u8]) -> FieldUse {
    let is = |other: &&str| is_same_field(name, other);
    if REWRITTEN.iter().any(is) {
        FieldUse::Rewrite
    } else if WITHHELD.iter().any(is) {
        FieldUse::Withhold
    } else {
        FieldUse::Forward
    }
}

const REWRITTEN: [&str; 7] = [
    "Accept-Encoding",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "If-Range",
    "If-Unmodified-Since",
    "Range",
];

/// Fields that frameworks let take the place of host, path, scheme or method, or that switch what is answered. The
/// server's own `X-Forwarded-Host` and `-Proto`, which say the same as the key, come behind these.
const WITHHELD: [&str; 27] = [
    // The host.
    "X-Forwarded-Host",
    "X-Forwarded-Server",
    "X-Host",
    "X-Host-Override",
    "X-Original-Host",
    "X-HTTP-Host-Override",
    "Fastly-Host",
    // The path: IIS, Symfony, Zend; what Spring, ASP.NET and Traefik put in front of it.
    "X-Original-URL",
    "X-Original-URI",
    "X-Rewrite-URL",
    "X-Forwarded-Prefix",
    "X-Forwarded-Path",
    "X-Forwarded-Uri",
    "X-Script-Name",
    // The scheme and the port, by which links and redirects are made.
    "X-Forwarded-Proto",
    "X-Forwarded-Protocol",
    "X-Forwarded-Scheme",
    "X-Forwarded-Ssl",
    "X-Forwarded-Port",
    "X-Url-Scheme",
    "Front-End-Https",
    // The method: Rails, Laravel, Express.
    "X-HTTP-Method",
    "X-HTTP-Method-Override",
    "X-Method-Override",
    // What Next.js answers with instead of the page.
    "X-Middleware-Subrequest",
    "X-Middleware-Prefetch",
    "X-Invoke-Status",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_key_has_does_not_go_on() {
        for (name, expected) in [
            ("X-Forwarded-Host", FieldUse::Withhold),
            ("x_forwarded_HOST", FieldUse::Withhold),
            ("X-Original-URL", FieldUse::Withhold),
            ("X-HTTP-Method-Override", FieldUse::Withhold),
            ("Range", FieldUse::Rewrite),
            ("if_none_match", FieldUse::Rewrite),
            ("Accept-Encoding", FieldUse::Rewrite),
            ("X-Forwarded-For", FieldUse::Forward),
            ("Cookie", FieldUse::Forward),
            ("Accept-Language", FieldUse::Forward),
            ("", FieldUse::Forward),
        ] {
            assert_eq!(field_use(name.as_bytes()), expected, "{name}");
        }
    }
}
