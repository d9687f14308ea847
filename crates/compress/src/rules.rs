//! Which responses are worth coding, and in which coding.

use baton_http::response::{is_type_among, push_coding_terms};
use baton_http::{Coding, RequestHead, preferred_coding};

/// What is coded on the fly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The codings on offer; among those that the client likes equally, the first is chosen. Without
    /// [`Coding::Identity`].
    pub codings: Vec<Coding>,
    /// Media types: `text/html`; one `*` in each stands for any run of characters: `text/*`, `*+json`.
    pub types: Vec<String>,
    /// Shorter bodies, in bytes, are sent as they are.
    pub min_bytes: u64,
    /// Longer files, in bytes, are sent as they are. Streams have no such bound.
    pub max_bytes: u64,
}

impl Rules {
    /// Whether bodies of this media type, which may have parameters, are coded.
    pub fn covers(&self, media_type: &[u8]) -> bool {
        is_type_among(media_type, self.types.iter().map(String::as_bytes))
    }

    /// Whether a file of so many bytes is coded.
    pub fn covers_file(&self, bytes: u64) -> bool {
        (self.min_bytes..=self.max_bytes).contains(&bytes)
    }

    /// The coding for a client with this `Accept-Encoding`; `None`: it gets the body as it is.
    pub fn choose(&self, accept_encoding: Option<&[u8]>) -> Option<Coding> {
        preferred_coding(accept_encoding, &self.codings)
    }

    /// Appends an edit for an application that is offered the client's socket: which responses to this request are coded.
    pub fn push_terms(&self, request: &RequestHead<'_>, out: &mut Vec<u8>) {
        let is_coded = request.range.is_none() && self.choose(request.accept_encoding).is_some();
        push_coding_terms(out, is_coded.then_some(self.min_bytes), &self.types);
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            // zstd costs the server the least for what it saves.
            codings: vec![Coding::Zstd, Coding::Brotli, Coding::Gzip],
            types: TYPES.map(str::to_owned).into(),
            min_bytes: 1024,
            max_bytes: 2 << 20,
        }
    }
}

/// Types of text, and the few binary formats that are not compressed in themselves.
const TYPES: [&str; 14] = [
    "text/*",
    "*+json",
    "*+xml",
    "application/json",
    "application/javascript",
    "application/xml",
    "application/yaml",
    "application/toml",
    "application/x-ndjson",
    "application/wasm",
    "application/vnd.apple.mpegurl",
    "font/ttf",
    "font/otf",
    "image/vnd.microsoft.icon",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_compared_without_parameters_and_case() {
        let rules = Rules::default();
        for (media_type, is_covered) in [
            ("text/html; charset=utf-8", true),
            ("Text/CSS", true),
            ("application/problem+json", true),
            ("image/svg+xml; charset=utf-8", true),
            ("application/json ;charset=utf-8", true),
            ("application/wasm", true),
            ("text/event-stream", false),
            ("image/png", false),
            ("video/mp4", false),
            ("application/octet-stream", false),
            ("application/zip", false),
            ("application/jsonp", false),
            ("font/woff2", false),
            ("", false),
            ("+json", true),
        ] {
            assert_eq!(rules.covers(media_type.as_bytes()), is_covered, "{media_type}");
        }
        let events = Rules { types: vec!["Text/event-stream".into()], ..Rules::default() };
        assert!(events.covers(b"text/event-stream;charset=utf-8"));
        let none = Rules { types: Vec::new(), ..rules };
        assert!(!none.covers(b"text/html"));
    }

    #[test]
    fn the_servers_order_counts_among_equals() {
        let rules = Rules::default();
        let chosen = |field: &str| rules.choose(Some(field.as_bytes()));
        assert_eq!(chosen("gzip, deflate, br, zstd"), Some(Coding::Zstd));
        assert_eq!(chosen("gzip, br"), Some(Coding::Brotli));
        assert_eq!(chosen("gzip, br;q=0.9"), Some(Coding::Gzip));
        assert_eq!(chosen("identity;q=0, *;q=0.1"), Some(Coding::Zstd));
        assert_eq!(chosen("identity, gzip;q=0.5"), None);
        assert_eq!(chosen("deflate"), None);
        assert_eq!(rules.choose(None), None);
        let gzip = Rules { codings: vec![Coding::Gzip], ..rules };
        assert_eq!(gzip.choose(Some(b"br, gzip;q=0.1")), Some(Coding::Gzip));
        assert_eq!(gzip.choose(Some(b"br")), None);
    }

    #[test]
    fn files_have_a_least_and_a_most_length() {
        let rules = Rules { min_bytes: 10, max_bytes: 20, ..Rules::default() };
        let covered: Vec<_> = [9, 10, 20, 21].into_iter().filter(|bytes| rules.covers_file(*bytes)).collect();
        assert_eq!(covered, [10, 20]);
    }
}
