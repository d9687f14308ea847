//! Names under which stored responses are purged together: groups that the origin names (RFC 9875), and tags of the
//! operator.

use super::{Key, KeySecret, NotStored, RouteRules};
use baton_http::is_same_field;
use baton_http::origin::ResponseHead;
use sfv::{BareItem, Item, List, ListEntry, Parser};

/// A name as a hash. Two names that meet are purged together, which no client can bring about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(pub u64);

impl Label {
    /// A group of an origin: names are compared byte by byte, and never with those of other origins.
    pub fn group(secret: &KeySecret, origin: &[u8], name: &[u8]) -> Self {
        Self::hash(secret, b"group", &[origin, name])
    }

    /// A tag, which holds for all origins.
    pub fn tag(secret: &KeySecret, name: &[u8]) -> Self {
        Self::hash(secret, b"tag", &[name])
    }

    /// One URI, with all its variants.
    pub fn uri(secret: &KeySecret, uri: &[u8]) -> Self {
        Self::hash(secret, b"uri", &[uri])
    }

    /// All URIs that begin so.
    pub(super) fn prefix(secret: &KeySecret, prefix: &[u8]) -> Self {
        Self::hash(secret, b"prefix", &[prefix])
    }

    fn hash(secret: &KeySecret, purpose: &[u8], parts: &[&[u8]]) -> Self {
        Self(secret.hash(purpose, parts).0 as u64)
    }
}

/// The labels of a response: its groups, and the words of the fields for tags.
///
/// # Errors
/// There are more than [`LABELS_MAX`]: a purge by one of them would miss the response, so it is not stored.
pub fn labels_of(
    rules: &RouteRules,
    secret: &KeySecret,
    key: &Key,
    head: &ResponseHead,
) -> Result<Box<[Label]>, NotStored> {
    let mut labels: Vec<_> = groups_of(head, "Cache-Groups")
        .map(|name| Label::group(secret, key.origin(), name.as_bytes()))
        .take(LABELS_MAX + 1)
        .collect();
    let is_tags = |name: &[u8]| rules.tag_fields.iter().any(|field| is_same_field(name, field));
    for (_, value) in head.fields().filter(|(name, _)| is_tags(name)) {
        let words = value.split(|byte| matches!(byte, b',' | b' ' | b'\t')).filter(|word| !word.is_empty());
        labels.extend(words.map(|word| Label::tag(secret, word)).take(LABELS_MAX + 1));
        if labels.len() > LABELS_MAX {
            break;
        }
    }
    labels.sort_unstable();
    labels.dedup();
    if labels.len() > LABELS_MAX { Err(NotStored::LabelsTooMany) } else { Ok(labels.into()) }
}

/// The strings of a list (RFC 9875 section 2). Members of other types are left out; a field that is no list is ignored.
pub(super) fn groups_of(head: &ResponseHead, field: &str) -> impl Iterator<Item = String> {
    let is_named = |name: &[u8]| name.eq_ignore_ascii_case(field.as_bytes());
    let lines: Vec<_> = head.fields().filter(|(name, _)| is_named(name)).map(|(_, value)| value).collect();
    let list = Parser::new(&lines.join(&b", "[..])).parse::<List>().unwrap_or_default();
    let names = list.into_iter().filter_map(|entry| match entry {
        ListEntry::Item(Item { bare_item: BareItem::String(name), .. }) => Some(name.as_str().to_owned()),
        _ => None,
    });
    names.filter(|name| name.len() <= GROUP_BYTES_MAX)
}

/// The longest name of a group. RFC 9875 section 2 asks for 32 characters at least; longer ones name no group.
const GROUP_BYTES_MAX: usize = 1024;

/// Most labels of a response. RFC 9875 asks for 32 groups at least; each costs 8 bytes of memory.
pub const LABELS_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::QueryRule;
    use baton_http::Status;

    fn labels(fields: &str) -> Result<Box<[Label]>, NotStored> {
        let head = ResponseHead::of_lines(fields.as_bytes().to_vec(), Status::OK, b"", None, |_| true);
        let key = Key::of_uri(&QueryRule::default(), b"http://a/").unwrap();
        labels_of(&RouteRules::default(), &secret(), &key, &head)
    }

    fn secret() -> KeySecret {
        KeySecret::new([7; 16])
    }

    fn expected(groups: &[&str], tags: &[&str]) -> Box<[Label]> {
        let groups = groups.iter().map(|name| Label::group(&secret(), b"http://a", name.as_bytes()));
        let tags = tags.iter().map(|name| Label::tag(&secret(), name.as_bytes()));
        let mut labels: Vec<_> = groups.chain(tags).collect();
        labels.sort_unstable();
        labels.into()
    }

    #[test]
    fn rfc9875_2_groups_are_strings_of_a_list() {
        for (fields, groups, tags) in [
            ("Cache-Groups: \"a b\", \"A b\";c, token, 1\n", &["a b", "A b"][..], &[][..]),
            ("Cache-Groups: \"a\"\ncache-groups: \"b\", \"a\"\n", &["a", "b"], &[]),
            ("Cache-Groups: \"a\", \n", &[], &[]),
            ("Cache-Tag: x,y z\nSurrogate-Key: x  w\n", &[], &["x", "y", "z", "w"]),
        ] {
            assert_eq!(labels(fields), Ok(expected(groups, tags)), "{fields}");
        }
        let key = |origin: &[u8]| Label::group(&secret(), origin, b"a");
        assert_ne!(key(b"http://a"), key(b"https://a"));
        assert_ne!(key(b"http://a"), Label::tag(&secret(), b"a"));
    }

    #[test]
    fn a_response_with_too_many_labels_is_refused() {
        let tags = |count: usize| (0..count).map(|n| format!("t{n}")).collect::<Vec<_>>().join(" ");
        let groups = |count: usize| (0..count).map(|n| format!("\"g{n}\"")).collect::<Vec<_>>().join(", ");
        assert_eq!(labels(&format!("Surrogate-Key: {}\n", tags(LABELS_MAX))).unwrap().len(), LABELS_MAX);
        assert_eq!(
            labels(&format!("Surrogate-Key: {}\n", tags(LABELS_MAX + 1))),
            Err(NotStored::LabelsTooMany)
        );
        assert_eq!(
            labels(&format!("Cache-Groups: {}\n", groups(LABELS_MAX + 1))),
            Err(NotStored::LabelsTooMany)
        );
        let both = format!("Cache-Groups: {}\nCache-Tag: {}\n", groups(LABELS_MAX), tags(1));
        assert_eq!(labels(&both), Err(NotStored::LabelsTooMany));
    }
}
