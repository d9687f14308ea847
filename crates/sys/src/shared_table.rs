//! A table of rows in memory that processes share, found by keys.
//!
//! ```text
//!   set │ row: key, words … │ row: key, words … │ …      a key is in one set, in any of its rows
//! ```
//!
//! A key is a hash of what a row is about, so every process finds the row by itself. A row without a key is free. There is no
//! lock, since a process that dies with one would stop the others: one compare-and-swap claims a row.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use rustix::rand::{GetRandomFlags, getrandom};

use crate::shared::shared_counters;

/// The word of a row that has its key.
pub const KEY: usize = 0;

/// The size of a table, which never changes. It takes memory only where it is used.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How many sets there are.
    pub sets: usize,
    /// Rows of a set: as many keys that fall into it have rows at the same time.
    pub ways: usize,
    /// Words of a row, its key included.
    pub row_words: usize,
}

/// The table. A copy is the same table, also in a process that was forked.
#[derive(Clone, Copy)]
pub struct SharedTable {
    words: &'static [AtomicU64],
    shape: Shape,
    /// What hashes begin with. If it were known, a client could choose keys that fill a set.
    secret: [u8; 16],
}

impl std::fmt::Debug for SharedTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedTable({:?})", self.shape)
    }
}

impl SharedTable {
    /// An empty table; to be called before the processes are forked that share it.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn allocate(shape: Shape) -> io::Result<Self> {
        let words = shared_counters(shape.sets * shape.ways * shape.row_words)?;
        let mut secret = [0; 16];
        getrandom(&mut secret, GetRandomFlags::empty())?;
        Ok(Self { words, shape, secret })
    }

    /// The key of what a row is about: the same in all processes, and never 0.
    pub fn key(&self, subject: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.secret);
        subject.hash(&mut hasher);
        hasher.finish().max(1)
    }

    /// All rows, in the order of their numbers.
    pub fn rows(&self) -> impl Iterator<Item = &'static [AtomicU64]> + Clone + use<> {
        self.words.chunks_exact(self.shape.row_words)
    }

    /// The words of a row.
    pub fn row(&self, row: usize) -> &'static [AtomicU64] {
        &self.words[row * self.shape.row_words..][..self.shape.row_words]
    }

    /// The row of a key.
    pub fn find(&self, key: u64) -> Option<usize> {
        self.set_of(key).find(|row| self.row(*row)[KEY].load(Acquire) == key)
    }

    /// The row of a key, which gets a free one if it has none. `None`: there is none left. Of processes that claim the same key
    /// at the same time, all get the same row, unless one [ends](Self::end) a row meanwhile.
    pub fn claim(&self, key: u64) -> Option<usize> {
        self.set_of(key).find(|row| {
            let word = &self.row(*row)[KEY];
            // A row that is taken is only read: other processes have it in their caches, too.
            let seen = match word.load(Acquire) {
                0 => word.compare_exchange(0, key, AcqRel, Acquire).err().unwrap_or(key),
                seen => seen,
            };
            seen == key
        })
    }

    /// The row of a key. If it has none, it gets a free one, or the one of its set with the lowest rank, whose words become 0.
    /// Two processes that do so at the same moment may both get the same row.
    pub fn replace(&self, key: u64, rank: impl Fn(&[AtomicU64]) -> u64) -> usize {
        let rank_of = |row: &usize| match self.row(*row)[KEY].load(Relaxed) {
            0 => 0,
            _ => rank(self.row(*row)).max(1),
        };
        self.find(key).unwrap_or_else(|| {
            let row = self.set_of(key).min_by_key(rank_of).unwrap_or_default();
            self.begin(row, key);
            row
        })
    }

    /// Gives a row to a key. What another key has left in it is cleared first.
    pub fn begin(&self, row: usize, key: u64) {
        let words = self.row(row);
        clear(words);
        words[KEY].store(key, Release);
    }

    /// Clears a row, and then frees it. No process may write to it any more, or what it writes is found by the next key.
    pub fn end(&self, row: usize) {
        clear(self.row(row));
        self.row(row)[KEY].store(0, Release);
    }

    /// The rows of a key's set, from one that depends on the key.
    fn set_of(&self, key: u64) -> impl Iterator<Item = usize> + use<> {
        let Shape { sets, ways, .. } = self.shape;
        let (set, from) = ((key % sets as u64) as usize, (key / sets as u64 % ways as u64) as usize);
        (from..ways).chain(0..from).map(move |way| set * ways + way)
    }
}

/// Clears what is behind the key. Memory that was never used stays untouched.
fn clear(row: &[AtomicU64]) {
    row[KEY + 1..].iter().filter(|word| word.load(Relaxed) != 0).for_each(|word| word.store(0, Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(sets: usize, ways: usize) -> SharedTable {
        SharedTable::allocate(Shape { sets, ways, row_words: 2 }).unwrap()
    }

    #[test]
    fn keys_claim_rows_until_there_are_none() {
        let table = table(1, 8);
        let keys: Vec<_> = (0..8).map(|n| table.key(n)).collect();
        let rows: Vec<_> = keys.iter().map(|key| table.claim(*key).unwrap()).collect();
        assert_eq!(keys.iter().map(|key| table.find(*key).unwrap()).collect::<Vec<_>>(), rows);
        assert_eq!(keys.iter().map(|key| table.claim(*key).unwrap()).collect::<Vec<_>>(), rows);
        let ninth = table.key(8);
        assert_eq!((table.claim(ninth), table.find(ninth)), (None, None));
        table.row(rows[3])[1].store(7, Relaxed);
        table.end(rows[3]);
        assert_eq!((table.find(keys[3]), table.claim(ninth)), (None, Some(rows[3])));
        assert_eq!(table.row(rows[3])[1].load(Relaxed), 0, "nothing is left of the key before");
    }

    /// Goal: a key has one row, in whatever order processes come.
    #[test]
    fn threads_that_claim_at_the_same_time_agree() {
        for _ in 0..50 {
            let table = table(1, 16);
            let keys: Vec<_> = (0..12).map(|n| table.key(n)).collect();
            let claim_all = || keys.iter().map(|key| table.claim(*key).unwrap()).collect::<Vec<_>>();
            let claimed: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(claim_all)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(claimed.iter().all(|rows| *rows == claimed[0]));
            assert_eq!(table.rows().filter(|row| row[KEY].load(Relaxed) != 0).count(), keys.len());
        }
    }

    #[test]
    fn a_full_set_gives_up_its_lowest_row() {
        let table = table(2, 4);
        let rank = |row: &[AtomicU64]| row[1].load(Relaxed);
        // All of one set.
        let keys: Vec<_> = (1..=5).map(|n| n * 2).collect();
        for (key, value) in keys[..4].iter().zip([30, 10, 20, 40]) {
            table.row(table.replace(*key, rank))[1].store(value, Relaxed);
        }
        let row = table.replace(keys[4], rank);
        assert_eq!((table.find(keys[1]), table.find(keys[4])), (None, Some(row)));
        assert_eq!(rank(table.row(row)), 0);
        assert!([0, 2, 3].iter().all(|at| table.find(keys[*at]).is_some()));
    }
}
