//! What an application was asked, what clients have seen of its answers, and the laws for both.
//!
//! - A POST reaches the application once.
//! - While a response for all comes, and as long as it is fresh, the origin is not asked for it again.
//! - Behind an answered POST no client gets what was there before.
//!
//! The second law is narrow: it counts only responses that nothing can make unusable, in worlds with an
//! [ample](Ledger::new) cache, and there a crowd asks for them.

use std::cell::RefCell;
use std::collections::BTreeSet;

/// What the application of a world was asked.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Whether the cache evicts nothing.
    is_ample: bool,
    records: RefCell<Records>,
}

#[derive(Debug, Default)]
struct Records {
    /// Numbers of the POSTs that have come.
    posts: BTreeSet<usize>,
    /// What POSTs have changed.
    changed: BTreeSet<Target>,
    changes: Vec<Change>,
    fetches: Vec<Fetch>,
}

/// What the cache takes for one resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub(crate) name: u32,
    pub(crate) scheme: String,
}

/// What the origin is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OriginRequest {
    pub(crate) target: Target,
    /// The variant.
    pub(crate) kind: String,
    /// Whether it is the whole, without conditions, and all may have the response as long as the world lasts.
    pub(crate) is_plain: bool,
}

/// A request for a resource of a cached route.
#[derive(Debug)]
struct Fetch {
    asked: OriginRequest,
    at_ms: u64,
    /// The connection on which it has come, until its answer is written or the server gives it up.
    connection: Option<usize>,
    /// Whether a client has begun to get the response through the cache.
    is_seen: bool,
    /// Earlier ones, whose responses were here or coming when it began.
    repeats: Vec<usize>,
}

/// A POST whose answer a client has seen.
#[derive(Debug)]
struct Change {
    target: Target,
    /// When the origin has handled it.
    at_ms: u64,
    seen_ms: u64,
}

impl Ledger {
    /// `is_ample`: the cache evicts nothing in this world.
    pub(crate) fn new(is_ample: bool) -> Self {
        Self { is_ample, records: RefCell::default() }
    }

    /// The application has read a request with this number.
    ///
    /// # Panics
    /// If it may not be repeated, and was.
    pub(crate) fn note(&self, method: &str, number: usize) {
        if method == "POST" {
            assert!(self.records.borrow_mut().posts.insert(number), "POST {number} comes twice");
        }
    }

    /// A POST changes a resource.
    pub(crate) fn note_change(&self, target: Target) {
        self.records.borrow_mut().changed.insert(target);
    }

    /// The origin has read a request for this. Returns its number.
    pub(crate) fn begin(&self, asked: OriginRequest, at_ms: u64, connection: Option<usize>) -> usize {
        let records = &mut *self.records.borrow_mut();
        let number = records.fetches.len();
        let is_counted = self.is_ample && connection.is_some() && !records.changed.contains(&asked.target);
        let is_repeated = |other: &Fetch| {
            let is_here = other.connection.is_some() || other.is_seen;
            other.asked == asked && at_ms < other.at_ms + FRESH_MS && is_here
        };
        let repeats = match is_counted && asked.is_plain {
            true => (0..number).filter(|earlier| is_repeated(&records.fetches[*earlier])).collect(),
            false => Vec::new(),
        };
        records.fetches.push(Fetch { asked, at_ms, connection, is_seen: false, repeats });
        number
    }

    /// The answer on this connection is written, or nothing reads it any more.
    pub(crate) fn end(&self, connection: usize) {
        let fetches = &mut self.records.borrow_mut().fetches;
        for fetch in fetches.iter_mut().filter(|fetch| fetch.connection == Some(connection)) {
            fetch.connection = None;
        }
    }

    /// A client gets the response to this fetch through the cache.
    pub(crate) fn note_seen(&self, number: usize) {
        self.records.borrow_mut().fetches[number].is_seen = true;
    }

    /// Checks how often the origin was asked. Only those fetches count whose responses clients have seen: the cache has
    /// nothing to do with some requests, and the origin cannot tell.
    ///
    /// # Panics
    /// If one has repeated another.
    pub(crate) fn check_fetches(&self) {
        let fetches = &self.records.borrow().fetches;
        for fetch in fetches.iter().filter(|fetch| fetch.is_seen) {
            let repeated = fetch.repeats.iter().map(|number| &fetches[*number]).find(|other| other.is_seen);
            assert!(repeated.is_none(), "the origin was asked again: {fetch:?}, {repeated:?}");
        }
    }

    /// A client sees the answer to a POST.
    pub(crate) fn note_change_seen(&self, target: Target, at_ms: u64, seen_ms: u64) {
        self.records.borrow_mut().changes.push(Change { target, at_ms, seen_ms });
    }

    /// Checks what a client gets for a request that the server has begun to read at `begun_ms`: what the origin had at
    /// `time_ms`.
    ///
    /// # Panics
    /// If a POST has made it unusable before the request began.
    pub(crate) fn check(&self, target: &Target, time_ms: u64, begun_ms: u64) {
        for change in self.records.borrow().changes.iter().filter(|change| change.target == *target) {
            let is_before = change.seen_ms < begun_ms && time_ms < change.at_ms;
            assert!(
                !is_before,
                "a request of {begun_ms} gets what was there at {time_ms}, before {change:?}"
            );
        }
    }
}

/// How long such a response is fresh, whatever time it takes on its way. It says `max-age=60`.
const FRESH_MS: u64 = 40_000;
