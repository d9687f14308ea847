//! What the cache did, in the words of RFC 9211: the field `Cache-Status`, the log and the metrics have the same.

use baton_http::{is_token_byte, push_decimal};

baton_http::reasons! {
    /// Why a request goes to the origin (RFC 9211 section 2.2).
    Forward {
        /// The cache was not asked.
        Bypass => "bypass";
        /// The method is not one that the cache answers.
        Method => "method";
        /// Nothing is stored for the URI.
        UriMiss => "uri-miss";
        /// What is stored for the URI answers other requests.
        VaryMiss => "vary-miss";
        /// Nothing that could be used is stored, for another reason: a purge, for example.
        Miss => "miss";
        /// What is stored is fresh, but the request wants more.
        Request => "request";
        /// What is stored is stale.
        Stale => "stale";
        /// What is stored lacks bytes that the request wants.
        Partial => "partial";
    }
}

/// What the cache did with one request: the value of a Cache-Status field. It goes behind that of the origin, in a line
/// of its own: the list is in the order in which the response has come (RFC 9211 section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus<'a> {
    /// The name of this cache, not empty: visible ASCII and blanks.
    pub cache: &'a str,
    /// Why the request went to the origin; `None` for a hit.
    pub forward: Option<Forward>,
    /// The status of the origin's answer, if it is another one than the client's.
    pub forward_status: Option<u16>,
    /// How many seconds the response is fresh yet; negative if it is stale.
    pub ttl_s: Option<i64>,
    /// The response was stored.
    pub is_stored: bool,
    /// The request waited for another one of the same kind.
    pub is_collapsed: bool,
    /// A word of ours: why the response was not stored, for example.
    pub detail: Option<&'static str>,
}

impl CacheStatus<'_> {
    /// Appends the value.
    pub fn push(&self, out: &mut Vec<u8>) {
        push_item(out, self.cache);
        match self.forward {
            None => out.extend_from_slice(b"; hit"),
            Some(forward) => push_parts(out, &["; fwd=", forward.label()]),
        }
        if let Some(status) = self.forward_status {
            out.extend_from_slice(b"; fwd-status=");
            push_decimal(out, status.into());
        }
        if let Some(ttl_s) = self.ttl_s {
            out.extend_from_slice(if ttl_s < 0 { b"; ttl=-" } else { b"; ttl=" });
            push_decimal(out, ttl_s.unsigned_abs());
        }
        if self.is_stored {
            out.extend_from_slice(b"; stored");
        }
        if self.is_collapsed {
            out.extend_from_slice(b"; collapsed");
        }
        if let Some(detail) = self.detail {
            push_parts(out, &["; detail=", detail]);
        }
    }
}

/// Appends a token, or a string if the text is none (RFC 9651 sections 3.3.3 and 3.3.4).
fn push_item(out: &mut Vec<u8>, text: &str) {
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic());
    if begins && text.bytes().all(|byte| is_token_byte(byte) || matches!(byte, b':' | b'/')) {
        return out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
    for byte in text.bytes().filter(|byte| matches!(byte, 0x20..=0x7e)) {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

fn push_parts(out: &mut Vec<u8>, parts: &[&str]) {
    parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(status: &CacheStatus<'_>) -> String {
        let mut out = Vec::new();
        status.push(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rfc9211_2_the_parameters() {
        let hit = CacheStatus { cache: "baton", ttl_s: Some(376), ..CacheStatus::default() };
        assert_eq!(text(&hit), "baton; hit; ttl=376");
        assert_eq!(text(&CacheStatus { ttl_s: Some(-412), ..hit }), "baton; hit; ttl=-412");
        let miss = CacheStatus { forward: Some(Forward::UriMiss), ttl_s: None, ..hit };
        assert_eq!(text(&CacheStatus { is_collapsed: true, ..miss }), "baton; fwd=uri-miss; collapsed");
        let stored =
            CacheStatus { forward: Some(Forward::Stale), forward_status: Some(304), is_stored: true, ..hit };
        assert_eq!(text(&stored), "baton; fwd=stale; fwd-status=304; ttl=376; stored");
        let refused = CacheStatus { detail: Some("set-cookie"), ..miss };
        assert_eq!(text(&refused), "baton; fwd=uri-miss; detail=set-cookie");
        assert_eq!(text(&CacheStatus { cache: "1 \"b\"", ..hit }), "\"1 \\\"b\\\"\"; hit; ttl=376");
    }

    proptest! {
        /// Whatever it says is a structured field: an item with parameters.
        #[test]
        fn the_field_is_a_structured_one(cache in "[ -~]{1,9}", ttl: i32, forward in 0usize..9, rest: (bool, bool)) {
            let status = CacheStatus {
                cache: &cache,
                forward: Forward::ALL.get(forward).copied(),
                forward_status: Some(200).filter(|_| rest.0),
                ttl_s: Some(ttl.into()),
                is_stored: rest.0,
                is_collapsed: rest.1,
                detail: Some("set-cookie").filter(|_| rest.1),
            };
            let text = text(&status);
            let item = sfv::Parser::new(&text).parse::<sfv::Item>();
            prop_assert!(item.is_ok_and(|item| item.params.get("ttl").is_some()), "{}", text);
        }
    }
}
