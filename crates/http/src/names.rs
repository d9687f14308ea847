//! Which fields a head may have, without a walk over its lines.

use crate::fields::{field_parts, folded};

/// Which names the fields of a head may have: a bit for first letter, last letter and length. Nearly all fields that are looked for
/// are not there, and need no walk over the lines. Names [of one field](crate::is_same_field) have one bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names(u64);

impl Names {
    /// Those of checked lines.
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut names = Self::default();
        field_parts(text).for_each(|(name, _)| names.note(name));
        names
    }

    /// A head without fields.
    pub(crate) const fn none() -> Self {
        Self(0)
    }

    /// Adds a field.
    pub(crate) fn note(&mut self, name: &[u8]) {
        self.0 |= Self::bit(name);
    }

    /// Adds the fields of other lines.
    pub(crate) fn join(&mut self, others: Self) {
        self.0 |= others.0;
    }

    /// False: there is no such field.
    pub(crate) fn may_have(self, name: &[u8]) -> bool {
        self.0 & Self::bit(name) != 0
    }

    /// The factors keep what is looked for in most heads apart from what browsers and servers send: `Upgrade` from `Priority`,
    /// `Connection` from `Referer`, `Content-Encoding` from `Content-Language`.
    fn bit(name: &[u8]) -> u64 {
        let [first, .., last] = name else { return 1 };
        let letters = usize::from(folded(*first)) + 3 * usize::from(folded(*last));
        1 << ((letters + 45 * name.len()) % 64)
    }
}

#[cfg(test)]
mod tests {
    use crate::{HeadLimits, RequestHead};

    /// Goal: no field is missed, however client and server spell it.
    #[test]
    fn a_field_that_is_there_is_found_however_it_is_written() {
        let names = ["Host", "x-Device_ID", "_", "A", "a-b", "Sec-Fetch-Mode", "z"];
        let lines: String = names.iter().map(|name| format!("{name}: {name}\r\n")).collect();
        let text = format!("GET / HTTP/1.1\r\n{lines}\r\n");
        let limits = HeadLimits { keeps_underscores: true, ..HeadLimits::default() };
        let kept = RequestHead::parse(text.as_bytes(), &limits).unwrap().keep();
        for name in names {
            for asked in [name.to_ascii_lowercase(), name.to_ascii_uppercase(), name.replace('_', "-")] {
                assert_eq!(kept.get().field(&asked), Some(name.as_bytes()), "{asked}");
            }
        }
        assert!(!kept.get().may_have("Upgrade"));
        assert_eq!(kept.get().field("Hot"), None);
        assert_eq!(kept.get().field("Huut"), None, "a name with the same bit");
    }

    /// Goal: what is looked for in each request on its way to an origin costs no walk over what a browser sends.
    #[test]
    fn a_browser_s_head_has_nothing_of_what_few_heads_have() {
        let text = "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: a\r\nAccept: a\r\nAccept-Language: a\r\n\
                    Accept-Encoding: a\r\nReferer: a\r\nCookie: a\r\nUpgrade-Insecure-Requests: 1\r\n\
                    Sec-Fetch-Dest: a\r\nSec-Fetch-Site: a\r\nSec-Fetch-User: a\r\nSec-CH-UA: a\r\n\
                    If-None-Match: a\r\nIf-Modified-Since: a\r\nPriority: a\r\n\r\n";
        let head = RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap();
        for name in ["Upgrade", "Connection", "Cache-Control", "Pragma", "Authorization"] {
            assert!(!head.may_have(name), "{name}");
        }
    }
}
