//! Which of several media types a client prefers (RFC 9110 section 12.5.1).

use std::cmp::Reverse;

use crate::coding::{QUALITY_MAX, parse_quality};
use crate::fields::list_members;

/// The index of the offer that the client prefers by its Accept field. Of offers with the same quality, the one that
/// it names more precisely comes first, then the earlier one. A client that accepts none gets the first.
///
/// Offers are in lower case, like `text/html`. Malformed members of the field are ignored.
pub fn preferred_media_type(accept: Option<&[u8]>, offers: &[&str]) -> usize {
    let Some(accept) = accept else { return 0 };
    let rank = |offer: &str| {
        let matching = list_members(accept).filter_map(|member| {
            let mut parts = member.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
            let precision = precision(parts.next()?, offer)?;
            let quality = parts.find(|parameter| matches!(parameter, [b'q' | b'Q', b'=', ..]));
            Some((precision, quality.map_or(Some(QUALITY_MAX), parse_quality)?))
        });
        // The most precise range decides about an offer, whatever the others say.
        let (precision, quality) = matching.max_by_key(|(precision, _)| *precision).unwrap_or((0, 0));
        (quality, if quality == 0 { 0 } else { precision })
    };
    (0..offers.len()).min_by_key(|index| Reverse(rank(offers[*index]))).unwrap_or(0)
}

/// How precisely a range names a media type: 3 for the type itself, 2 for `text/*`, 1 for `*/*`.
fn precision(range: &[u8], offer: &str) -> Option<u8> {
    if range.eq_ignore_ascii_case(offer.as_bytes()) {
        return Some(3);
    }
    if range == b"*/*" {
        return Some(1);
    }
    let class = range.strip_suffix(b"/*")?;
    let (offered, _) = offer.split_once('/')?;
    class.eq_ignore_ascii_case(offered.as_bytes()).then_some(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_decides_then_precision_then_order() {
        let offers = ["text/html", "application/json", "text/plain"];
        for (accept, expected) in [
            ("*/*", "text/html"),
            ("", "text/html"),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", "text/html"),
            ("image/avif,image/webp,*/*;q=0.8", "text/html"),
            ("image/png", "text/html"),
            ("application/json", "application/json"),
            ("APPLICATION/JSON", "application/json"),
            ("application/json, text/plain, */*", "application/json"),
            ("application/json;q=0.5, text/html", "text/html"),
            ("text/x, application/json;q=0.5", "application/json"),
            ("text/html;level=1;q=0.4, application/json;q=0.5", "application/json"),
            ("application/*", "application/json"),
            ("text/*", "text/html"),
            ("text/plain", "text/plain"),
            ("text/plain, */*;q=0.1", "text/plain"),
            ("text/*, text/html;q=0.2", "text/plain"),
            ("text/html;q=0, */*", "application/json"),
            ("application/json;q=0, */*;q=0.1", "text/html"),
            ("application/json;q=2, text/plain;q=0.1", "text/plain"),
            (",;q=1, /*, */json, text", "text/html"),
        ] {
            let chosen = offers[preferred_media_type(Some(accept.as_bytes()), &offers)];
            assert_eq!(chosen, expected, "{accept}");
        }
        assert_eq!(preferred_media_type(None, &offers), 0);
    }
}
