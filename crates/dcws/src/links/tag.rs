//! The attributes of a start tag, with their places (HTML, section 13.2.5.32 to 13.2.5.40). The tokenizer of the page says
//! where tags are.

use std::ops::Range;

/// An attribute of a tag.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Attribute {
    /// In lower case.
    pub(super) name: Vec<u8>,
    /// Where its value stands in the tag, without quotes; empty if it has none.
    pub(super) value: Range<usize>,
}

/// The attributes of a tag from `<` to `>`: of several with one name, the first, which alone counts.
pub(super) fn attributes(tag: &[u8]) -> Vec<Attribute> {
    let mut found: Vec<Attribute> = Vec::new();
    let end = tag.len().saturating_sub(1);
    let mut at = skip(tag, 1, |byte| !is_space(byte) && byte != b'/');
    loop {
        at = skip(tag, at, |byte| is_space(byte) || byte == b'/');
        if at >= end {
            return found;
        }
        let name_start = at;
        // An equals sign that begins a name is a part of it.
        at = skip(tag, at + 1, |byte| !is_space(byte) && byte != b'/' && byte != b'=' && byte != b'>');
        let name = tag[name_start..at.min(end)].to_ascii_lowercase();
        let equals = skip(tag, at, is_space);
        let value = if tag.get(equals) == Some(&b'=') && equals < end {
            let start = skip(tag, equals + 1, is_space);
            match tag.get(start) {
                Some(&quote @ (b'"' | b'\'')) if start < end => {
                    let close = skip(tag, start + 1, |byte| byte != quote);
                    at = close + 1;
                    start + 1..close.min(end)
                }
                _ => {
                    at = skip(tag, start, |byte| !is_space(byte) && byte != b'>');
                    start.min(end)..at.min(end)
                }
            }
        } else {
            at..at
        };
        if !found.iter().any(|attribute| attribute.name == name) {
            found.push(Attribute { name, value });
        }
    }
}

/// Space characters of HTML.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

fn skip(tag: &[u8], from: usize, while_: impl Fn(u8) -> bool) -> usize {
    let rest = tag.get(from..).unwrap_or_default();
    from + rest.iter().position(|byte| !while_(*byte)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tag: &str) -> Vec<(String, &str)> {
        let attributes = attributes(tag.as_bytes());
        attributes.into_iter().map(|one| (String::from_utf8(one.name).unwrap(), &tag[one.value])).collect()
    }

    #[test]
    fn every_way_of_writing_an_attribute() {
        let own = |pairs: &[(&str, &'static str)]| -> Vec<(String, &str)> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
        };
        assert_eq!(read("<a>"), own(&[]));
        assert_eq!(read("<a href=b>"), own(&[("href", "b")]));
        assert_eq!(read("<a/HREF = 'b c' x y=\"\">"), own(&[("href", "b c"), ("x", ""), ("y", "")]));
        assert_eq!(read("<img src=/a/b/ alt>"), own(&[("src", "/a/b/"), ("alt", "")]));
        assert_eq!(read("<a =x=y>"), own(&[("=x", "y")]));
        assert_eq!(read("<a a='>'b=\"'\">"), own(&[("a", ">"), ("b", "'")]));
        assert_eq!(read("<a href=1 href=2>"), own(&[("href", "1")]));
        assert_eq!(read("<a href=>"), own(&[("href", "")]));
        assert_eq!(read("<br/>"), own(&[]));
    }
}
