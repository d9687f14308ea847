//! Carries out purges.

use baton_segment::rules::{Label, Purge};

use crate::{PurgeOrder, SharedCache};

impl SharedCache {
    /// Purges. What is being fetched is purged, too. What it purges takes memory until it is looked up, evicted, or
    /// [swept](SharedCache::sweep).
    pub fn purge(&self, orders: &[PurgeOrder]) {
        for order in orders {
            let secret = &self.secret;
            let purge = match order {
                PurgeOrder::Uri(uri) => Purge::Label(Label::uri(secret, uri.as_bytes())),
                // One that is none is no prefix of any key.
                PurgeOrder::Prefix(prefix) => match Purge::prefix(secret, prefix.as_bytes()) {
                    Some(purge) => purge,
                    None => continue,
                },
                PurgeOrder::Tag(tag) => Purge::Label(Label::tag(secret, tag.as_bytes())),
                PurgeOrder::Group { origin, name } => {
                    Purge::Label(Label::group(secret, origin.as_bytes(), name.as_bytes()))
                }
                PurgeOrder::Everything => Purge::Everything,
            };
            self.note_purge(purge);
        }
    }

    /// Drops all that was purged, and returns how many responses. Takes time for each one that is stored, and each lock
    /// of the directory for a part of that.
    pub fn sweep(&self) -> u64 {
        let mut dropped = 0;
        self.directory.sweep(|entry| {
            let before = entry.variants.len();
            self.drop_purged(entry);
            dropped += (before - entry.variants.len()) as u64;
        });
        dropped
    }
}
