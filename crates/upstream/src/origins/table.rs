//! The rows of all origins.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_sys::shared_table::{Shape, SharedTable};

use super::counts::OriginCounts;
use super::record::OriginRecord;
use super::{COUNT_WORDS, SHARED_WORDS, word};

/// An origin of a route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OriginName {
    /// The name of its site.
    pub site: String,
    /// The path of its route.
    pub route: String,
    /// Its URL.
    pub origin: String,
}

/// The rows of all origins, in memory that the processes of a server share.
#[derive(Clone, Copy, Debug)]
pub struct OriginTable {
    rows: SharedTable,
    workers: usize,
}

impl OriginTable {
    /// Most rows. Origins beyond work, but without counts, each process has its own verdicts of them, and they cannot be
    /// drained.
    pub const ROWS_MAX: usize = 1_024;

    /// An empty table; to be called before the workers are forked.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn allocate(workers: usize) -> io::Result<Self> {
        let row_words = SHARED_WORDS + workers * COUNT_WORDS;
        let rows = SharedTable::allocate(Shape { sets: 1, ways: Self::ROWS_MAX, row_words })?;
        Ok(Self { rows, workers })
    }

    /// Begins a row, for an origin that has none. What another origin has left in it is cleared.
    pub fn begin(&self, row: usize, name: &OriginName) {
        self.rows.begin(row, self.rows.key(name));
    }

    /// Ends a row: no worker finds it any more. Those that have found it go on to count in it.
    pub fn end(&self, row: usize) {
        self.rows.row(row)[word::NAME].store(0, Ordering::Relaxed);
    }

    /// An origin's row as a worker sees it. One that is in no row gets a record of its own.
    pub fn record(&self, name: &OriginName, worker: usize) -> OriginRecord {
        let key = self.rows.key(name);
        // From the first row: those behind the last origin were never touched, and take no memory.
        let found = self.rows.rows().position(|row| row[word::NAME].load(Ordering::Acquire) == key);
        found.map_or_else(OriginRecord::default, |row| self.record_of(row, worker))
    }

    /// A row as the master sees it.
    pub fn verdicts(&self, row: usize) -> OriginRecord {
        self.record_of(row, 0)
    }

    /// The counts in a row, of all workers together.
    pub fn counts(&self, row: usize) -> OriginCounts {
        let mut counts = OriginCounts::default();
        (0..self.workers).for_each(|worker| counts.add(self.counts_of(row, worker)));
        // A request of an old configuration may end in a row that is another origin's by now.
        counts.in_flight = u64::try_from(counts.in_flight as i64).unwrap_or(0);
        counts
    }

    /// A worker has ended: its requests have, too.
    pub fn reset_gauges(&self, worker: usize) {
        (0..Self::ROWS_MAX)
            .filter(|row| self.rows.row(*row)[word::NAME].load(Ordering::Relaxed) != 0)
            .for_each(|row| OriginCounts::reset_gauges(self.counts_of(row, worker)));
    }

    fn record_of(&self, row: usize, worker: usize) -> OriginRecord {
        OriginRecord::in_table(&self.rows.row(row)[..SHARED_WORDS], self.counts_of(row, worker))
    }

    fn counts_of(&self, row: usize, worker: usize) -> &'static [AtomicU64] {
        &self.rows.row(row)[SHARED_WORDS + worker * COUNT_WORDS..][..COUNT_WORDS]
    }
}

#[cfg(test)]
mod tests {
    use super::super::AtOrigin;
    use super::*;

    fn name(origin: &str) -> OriginName {
        OriginName { site: "s".into(), route: "/".into(), origin: origin.into() }
    }

    /// Goal: workers share verdicts and count apart; a row that is another origin's by now keeps nothing.
    #[test]
    fn rows_are_shared_and_found_by_name() {
        let table = OriginTable::allocate(2).unwrap();
        table.begin(7, &name("http://a"));
        let [one, other] = [0, 1].map(|worker| table.record(&name("http://a"), worker));
        one.set_drained(true);
        assert!(other.is_drained() && !table.record(&name("http://b"), 0).is_drained());
        let requests = [AtOrigin::begin(&one, 0), AtOrigin::begin(&other, 0)];
        table.reset_gauges(1);
        assert_eq!((table.counts(7).requests, table.counts(7).in_flight), (2, 1));
        table.end(7);
        assert!(!table.record(&name("http://a"), 0).is_drained());
        table.begin(7, &name("http://b"));
        drop(requests);
        assert_eq!(table.counts(7), OriginCounts::default());
        assert!(!table.verdicts(7).is_drained());
    }
}
