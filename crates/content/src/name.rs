//! The cache's entry for a name.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use baton_http::{AcceptedCodings, Stamp};

use crate::disk::Identity;
use crate::resolve::{Resolution, Target};
use crate::stored::Stored;
use crate::table::{Entry, Seat};

/// Everything that the result of a lookup depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub(crate) tree: u32,
    /// Raw, as it was sent. Different spellings of one path are different names.
    pub(crate) path: &'a [u8],
    pub(crate) accepted: AcceptedCodings,
    pub(crate) hash: u64,
}

impl<'a> Question<'a> {
    pub(crate) fn new(
        tree: u32,
        path: &'a [u8],
        accepted: AcceptedCodings,
        hasher: &foldhash::fast::RandomState,
    ) -> Self {
        Self { tree, path, accepted, hash: hasher.hash_one((tree, accepted, path)) }
    }
}

/// A name and what it leads to. A new result is a new `Name`.
#[derive(Debug)]
pub(crate) struct Name {
    tree: u32,
    path: Box<[u8]>,
    accepted: AcceptedCodings,
    hash: u64,
    pub(crate) answer: CachedResult,
    /// The second of the last confirmation.
    checked: AtomicU64,
    seat: Seat,
}

#[derive(Debug)]
pub(crate) enum CachedResult {
    /// The table of files owns the file; eviction there removes it here.
    File {
        target: Target,
        identity: Identity,
        stored: Weak<Stored>,
    },
    /// Relative to the root.
    Script(Arc<[u8]>),
    /// Relative to the root.
    Fallback(Arc<[u8]>),
    AddSlash,
    Missing,
    Forbidden,
}

impl CachedResult {
    /// Whether this agrees with `place`, to which the name leads now. The caller compares the states of files.
    pub(crate) fn agrees_with(&self, place: &Resolution) -> bool {
        match (self, place) {
            (Self::File { target, .. }, Resolution::File(now, _)) => target == now,
            (Self::Script(path), Resolution::Script(now))
            | (Self::Fallback(path), Resolution::Fallback(now)) => path[..] == now[..],
            (Self::AddSlash, Resolution::AddSlash)
            | (Self::Missing, Resolution::Missing)
            | (Self::Forbidden, Resolution::Forbidden) => true,
            _ => false,
        }
    }
}

impl Name {
    pub(crate) fn new(question: &Question<'_>, answer: CachedResult, checked: u64) -> Self {
        Self {
            tree: question.tree,
            path: question.path.into(),
            accepted: question.accepted,
            hash: question.hash,
            answer,
            checked: AtomicU64::new(checked),
            seat: Seat::default(),
        }
    }

    pub(crate) fn answers(&self, question: &Question<'_>) -> bool {
        self.path[..] == *question.path && self.tree == question.tree && self.accepted == question.accepted
    }

    /// Whether the answer is younger than `revalidate_ms`.
    pub(crate) fn is_fresh(&self, now: &Stamp, revalidate_ms: u64) -> bool {
        // A clock that was set back must not make answers live longer.
        let age_seconds = now.unix_seconds.abs_diff(self.checked());
        age_seconds.saturating_mul(1_000) < revalidate_ms
    }

    pub(crate) fn checked(&self) -> u64 {
        self.checked.load(Ordering::Relaxed)
    }

    /// Notes that the result was confirmed in this second.
    pub(crate) fn confirm(&self, unix_seconds: u64) {
        self.checked.store(unix_seconds, Ordering::Relaxed);
    }

    /// The file, if the cache still has it.
    pub(crate) fn stored(&self) -> Option<Arc<Stored>> {
        match &self.answer {
            CachedResult::File { stored, .. } => stored.upgrade().filter(|stored| stored.seat().is_taken()),
            CachedResult::Script(_)
            | CachedResult::Fallback(_)
            | CachedResult::AddSlash
            | CachedResult::Missing
            | CachedResult::Forbidden => None,
        }
    }
}

impl Entry for Name {
    fn hash(&self) -> u64 {
        self.hash
    }

    fn weight(&self) -> u64 {
        1
    }

    fn seat(&self) -> &Seat {
        &self.seat
    }
}
