//! The contents that are being fetched, and how.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;

use crate::fill::Fill;
use crate::parts::Parts;

/// How a content is fetched.
#[derive(Clone, Debug)]
pub(crate) enum Live {
    /// By one response, from its first byte on.
    Stream(Arc<Fill>),
    /// By responses to requests for parts.
    Parts(Arc<Parts>),
}

/// By content. There are as many as requests that gateways have, at the most.
#[derive(Debug, Default)]
pub(crate) struct LiveFills(Mutex<HashMap<u128, Live, RandomState>>);

impl LiveFills {
    /// How a content is fetched, as long as it is.
    pub(crate) fn of(&self, content: u128) -> Option<Live> {
        self.lock().get(&content).cloned()
    }

    pub(crate) fn insert(&self, content: u128, live: Live) {
        self.lock().insert(content, live);
    }

    /// How a content is fetched: by these parts from now on, unless it is already.
    pub(crate) fn of_or_parts(&self, content: u128, parts: impl FnOnce() -> Arc<Parts>) -> Live {
        self.lock().entry(content).or_insert_with(|| Live::Parts(parts())).clone()
    }

    pub(crate) fn remove(&self, content: u128) {
        self.lock().remove(&content);
    }

    /// Forgets parts, unless others have their place.
    pub(crate) fn remove_parts(&self, parts: &Arc<Parts>) {
        let mut live = self.lock();
        let key = parts.object.content.key;
        if matches!(live.get(&key), Some(Live::Parts(other)) if Arc::ptr_eq(other, parts)) {
            live.remove(&key);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u128, Live, RandomState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
