//! What is to be purged, in words that every process of a server understands: hashes differ between them.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use baton_segment::rules::{Key, PREFIX_DEPTH_MAX, QueryRule};
use rustix::event::EventfdFlags;
use serde::{Deserialize, Serialize};

/// One purge.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PurgeOrder {
    /// A URI with all its variants, in the form of keys: see [`uris`](Self::uris).
    Uri(String),
    /// All URIs that begin so: see [`prefix`](Self::prefix).
    Prefix(String),
    /// What has a tag, whatever its host.
    Tag(String),
    /// A group of an origin (RFC 9875).
    Group {
        /// `https://host`
        origin: String,
        /// Its name.
        name: String,
    },
    /// All that there is.
    Everything,
}

/// Why something cannot be purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeRefusal {
    /// It is no URI of a host, or one that no request can have.
    Uri,
    /// A prefix that does not end with a slash, or has a query.
    PrefixEnd,
    /// A prefix with too many slashes.
    PrefixDepth,
    /// A tag that no field can have.
    Tag,
}

impl PurgeOrder {
    /// A URI as an operator writes it. Routes that count queries differently know it by different keys: `rules` are theirs.
    ///
    /// # Errors
    /// It is no URI.
    pub fn uris<'a>(
        uri: &str,
        rules: impl IntoIterator<Item = &'a QueryRule>,
    ) -> Result<Vec<Self>, PurgeRefusal> {
        let mut orders = vec![Self::uri(&parse(&QueryRule::default(), uri)?)];
        for rule in rules {
            let order = Self::uri(&parse(rule, uri)?);
            if !orders.contains(&order) {
                orders.push(order);
            }
        }
        Ok(orders)
    }

    /// All URIs below a prefix: `https://host/a/`.
    ///
    /// # Errors
    /// It is no URI, does not end with a slash, or has more than [`PREFIX_DEPTH_MAX`] of them.
    pub fn prefix(prefix: &str) -> Result<Self, PurgeRefusal> {
        let key = parse(&QueryRule::default(), prefix)?;
        let target = key.target();
        if !target.ends_with(b"/") || target.contains(&b'?') {
            return Err(PurgeRefusal::PrefixEnd);
        }
        if target.iter().filter(|byte| **byte == b'/').count() > PREFIX_DEPTH_MAX {
            return Err(PurgeRefusal::PrefixDepth);
        }
        Ok(Self::Prefix(text(key.uri())))
    }

    /// What has a tag. Fields with tags separate them by commas and blanks.
    ///
    /// # Errors
    /// It is empty, or has bytes that no tag has.
    pub fn tag(tag: &str) -> Result<Self, PurgeRefusal> {
        let is_part = |byte: u8| byte > b' ' && byte != 0x7f && byte != b',';
        let is_tag = !tag.is_empty() && tag.bytes().all(is_part);
        if is_tag { Ok(Self::Tag(tag.to_owned())) } else { Err(PurgeRefusal::Tag) }
    }

    pub(crate) fn uri(key: &Key) -> Self {
        Self::Uri(text(key.uri()))
    }

    pub(crate) fn group(key: &Key, name: String) -> Self {
        Self::Group { origin: text(key.origin()), name }
    }

    /// No key, group or tag that something is stored with is longer.
    pub const TEXT_BYTES_MAX: usize = 16 << 10;

    /// Bytes of its text. In JSON there may be twice as many.
    pub fn text_len(&self) -> usize {
        match self {
            Self::Uri(text) | Self::Prefix(text) | Self::Tag(text) => text.len(),
            Self::Group { origin, name } => origin.len() + name.len(),
            Self::Everything => 0,
        }
    }
}

fn parse(rule: &QueryRule, uri: &str) -> Result<Key, PurgeRefusal> {
    Key::of_uri(rule, uri.as_bytes()).ok_or(PurgeRefusal::Uri)
}

/// Keys are ASCII: other bytes are percent-encoded in them.
fn text(ascii: &[u8]) -> String {
    String::from_utf8_lossy(ascii).into_owned()
}

impl fmt::Display for PurgeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uri => f.write_str("expected https://HOST/PATH or http://HOST/PATH, as clients ask for it"),
            Self::PrefixEnd => {
                f.write_str("a prefix ends with a slash, and has no query: https://HOST/PATH/")
            }
            Self::PrefixDepth => write!(f, "a prefix has at most {PREFIX_DEPTH_MAX} slashes in its path"),
            Self::Tag => f.write_str("a tag is one word, without blanks and commas"),
        }
    }
}

/// Invalidations of which the other processes of the server have to hear.
#[derive(Debug)]
pub struct PurgeOutbox {
    orders: Mutex<HashSet<PurgeOrder>>,
    waker: OwnedFd,
}

impl PurgeOutbox {
    /// An empty one.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`.
    pub fn new() -> io::Result<Self> {
        let waker = rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { orders: Mutex::default(), waker })
    }

    /// Readable when there are orders.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }

    /// Takes all orders.
    pub fn take(&self) -> Vec<PurgeOrder> {
        let _ = rustix::io::read(&self.waker, &mut [0; 8]);
        self.lock().drain().collect()
    }

    pub(crate) fn put(&self, new: &[PurgeOrder]) {
        let mut orders = self.lock();
        let was_empty = orders.is_empty();
        orders.extend(new.iter().cloned());
        if orders.len() > OUTBOX_MAX {
            orders.clear();
            orders.insert(PurgeOrder::Everything);
        }
        drop(orders);
        if was_empty {
            // It can only fail because 2^64 - 1 wake-ups are pending.
            let _ = rustix::io::write(&self.waker, &1_u64.to_ne_bytes());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<PurgeOrder>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Orders that wait to be taken, within milliseconds. Beyond, everything is purged: a cache may forget, but never lie.
const OUTBOX_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn uris(uri: &str, rules: &[QueryRule]) -> Vec<String> {
        let orders = PurgeOrder::uris(uri, rules).unwrap();
        let uri = |order| match order {
            PurgeOrder::Uri(uri) => uri,
            other => panic!("{other:?}"),
        };
        orders.into_iter().map(uri).collect()
    }

    #[test]
    fn a_uri_is_known_by_a_key_for_each_way_of_counting_queries() {
        let ignored = QueryRule { is_ignored: true, ..QueryRule::default() };
        let sorted = QueryRule { is_sorted: true, ..QueryRule::default() };
        assert_eq!(uris("HTTP://A:80/x", &[ignored.clone(), sorted.clone()]), ["http://a/x"]);
        let all = uris("http://a/x?b&a", &[ignored, sorted]);
        assert_eq!(all, ["http://a/x?b&a", "http://a/x", "http://a/x?a&b"]);
        assert_eq!(PurgeOrder::uris("/x", []), Err(PurgeRefusal::Uri));
    }

    #[test]
    fn prefixes_and_tags_are_what_labels_can_be() {
        let prefix = |text: &str| PurgeOrder::prefix(text);
        assert_eq!(prefix("https://A"), Ok(PurgeOrder::Prefix("https://a/".into())));
        assert_eq!(prefix("https://a/b/../c/"), Ok(PurgeOrder::Prefix("https://a/c/".into())));
        assert_eq!(prefix("https://a/b"), Err(PurgeRefusal::PrefixEnd));
        assert_eq!(prefix("https://a/?b/"), Err(PurgeRefusal::PrefixEnd));
        assert_eq!(prefix("b/"), Err(PurgeRefusal::Uri));
        let deepest = format!("https://a{}/", "/x".repeat(PREFIX_DEPTH_MAX - 1));
        assert!(prefix(&deepest).is_ok());
        assert_eq!(prefix(&format!("{deepest}x/")), Err(PurgeRefusal::PrefixDepth));
        assert_eq!(PurgeOrder::tag("é-1"), Ok(PurgeOrder::Tag("é-1".into())));
        for tag in ["", "a b", "a,b", "a\n"] {
            assert_eq!(PurgeOrder::tag(tag), Err(PurgeRefusal::Tag), "{tag:?}");
        }
    }

    #[test]
    fn an_outbox_that_is_not_emptied_forgets_everything() {
        let outbox = PurgeOutbox::new().unwrap();
        let tag = |number: usize| PurgeOrder::Tag(number.to_string());
        (0..2 * OUTBOX_MAX).for_each(|_| outbox.put(&[tag(0)]));
        assert_eq!(outbox.take(), [tag(0)], "the same again is the same");
        outbox.put(&(0..=OUTBOX_MAX).map(tag).collect::<Vec<_>>());
        assert_eq!(outbox.take(), [PurgeOrder::Everything]);
        assert_eq!(outbox.take(), []);
    }
}
