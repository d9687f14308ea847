//! A stored response: its head, and where its body is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use baton_http::Status;
use baton_segment::index::Facts;
use baton_segment::layout::Layout;
use baton_segment::policy::CachePolicy;
use baton_segment::rules::{Label, RouteRules, Stored};

use crate::blocks::Blocks;
use crate::record::ResponseRecord;

/// A stored response. A validation makes another one with the same content.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) stored: Stored,
    pub(crate) content: Arc<Content>,
    pub(crate) labels: Box<[Label]>,
    /// The last purge that did not concern it.
    generation: AtomicU64,
    /// It was found on the disk, and its freshness was judged without knowing the rules of its route.
    is_unjudged: bool,
}

impl Object {
    pub(crate) fn new(stored: Stored, content: Arc<Content>, labels: Box<[Label]>, generation: u64) -> Self {
        Self { stored, content, labels, generation: AtomicU64::new(generation), is_unjudged: false }
    }

    /// A response that the store has found.
    pub(crate) fn recovered(
        blocks: &Arc<Blocks>,
        content: u128,
        facts: Facts,
        record: ResponseRecord,
    ) -> Self {
        let ResponseRecord { generation, times, head, variant, labels, .. } = record;
        let stored = Stored::restore(&RouteRules::default(), head, times, variant);
        let content = Arc::new(Content::new(blocks, content, facts));
        Self { is_unjudged: true, ..Self::new(stored, content, labels, generation) }
    }

    /// The response judged by the rules of its route; `None`: it was judged before.
    pub(crate) fn judged(&self, rules: &RouteRules) -> Option<Self> {
        self.is_unjudged.then(|| {
            let (head, variant) = (self.stored.head().clone(), self.stored.variant().clone());
            let stored = Stored::restore(rules, head, self.stored.times(), variant);
            Self::new(stored, Arc::clone(&self.content), self.labels.clone(), self.generation())
        })
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Whether the origin can be asked for parts of it that are not here: only parts of one version meet in a body.
    pub(crate) fn is_combinable(&self) -> bool {
        let is_one_body = self.stored.head().status() == Status::OK && self.content.length().is_some();
        is_one_body && self.stored.validators().strong_field().is_some()
    }

    /// No purge up to this one concerns it.
    pub(crate) fn note_current(&self, generation: u64) {
        self.generation.store(generation, Ordering::Relaxed);
    }
}

/// The body of one version of a resource. Its blocks are dropped when nothing refers to it any more: who reads an old
/// version reads it to its end.
#[derive(Debug)]
pub(crate) struct Content {
    blocks: Arc<Blocks>,
    pub(crate) key: u128,
    /// Of what is asked for: its next version has the same.
    pub(crate) handle: u64,
    /// Which of its segments are kept.
    pub(crate) policy: CachePolicy,
    length: OnceLock<u64>,
}

impl Content {
    pub(crate) fn new(blocks: &Arc<Blocks>, key: u128, facts: Facts) -> Self {
        let Facts { handle, length, .. } = facts;
        let policy = facts.policy.unwrap_or(blocks.policy());
        let length = length.map(OnceLock::from).unwrap_or_default();
        Self { blocks: Arc::clone(blocks), key, handle, policy, length }
    }

    /// How it is divided.
    pub(crate) fn layout(&self) -> Layout {
        self.blocks.layout().grouped(self.policy.grouping)
    }

    /// Its length in bytes, if it is known yet.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length.get().copied()
    }

    pub(crate) fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    pub(crate) fn set_length(&self, length: u64) {
        // The first one counts: it is what clients were told.
        let _ = self.length.set(length);
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        self.blocks.forget(self.key);
    }
}
