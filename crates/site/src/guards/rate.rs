//! How often a client may ask: token buckets, in a table of fixed size that all workers of the server share.
//!
//! A bucket is one number, the time at which it is full again (GCRA, ITU-T I.371): a request moves it on by what one token
//! takes to come back, and is refused if that is further away than a whole bucket takes. So a bucket is changed by one
//! compare-and-swap, and needs neither a timer nor a lock.

use std::hash::Hash;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use baton_shares::ClientKey;
use baton_sys::shared_table::{Shape, SharedTable};

use crate::condition::{Condition, RequestView};

/// How often requests with the same key pass.
#[derive(Clone, Debug)]
pub struct RateLimit {
    /// Which buckets are its own: a name that stays the same over a reload.
    pub scope: String,
    /// Time in which one token comes back, in microseconds.
    pub interval_us: u64,
    /// Tokens in a full bucket: requests that may come at once. At least 1.
    pub burst: u64,
    /// What requests of one bucket have in common.
    pub key: RateKey,
    /// Which requests are counted; `None`: all.
    pub when: Option<Arc<Condition>>,
    /// Where the buckets are.
    pub table: RateTable,
}

/// What requests of one bucket have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateKey {
    /// The client's address; of IPv6 the first 64 bits, which a client can choose no more than it can choose its provider.
    Address,
    /// The value of this field, or the address if the request has none. An address has no more than sixteen values could have.
    Field(String),
    /// The user who was verified.
    User,
}

/// A bucket is empty: so many seconds until there is a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    pub retry_after_s: u64,
}

/// Buckets by a hash of their key: memory that is shared between processes, or one process's own.
#[derive(Clone, Copy, Debug)]
pub struct RateTable(SharedTable);

impl RateTable {
    /// An empty table; to be called before workers are forked. It takes memory only where it is used.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn allocate() -> io::Result<Self> {
        SharedTable::allocate(Shape { sets: SETS, ways: WAYS, row_words: WORDS }).map(Self)
    }

    /// A key that a client chooses is never that of another scope.
    fn tag(&self, scope: &str, kind: u8, key: impl Hash) -> u64 {
        self.0.key((scope, kind, key))
    }

    /// The time at which the bucket with this tag is full. A new bucket takes the place of the one of its set that is full
    /// first, which loses least. Another process may be as quick; then a few requests count for the wrong bucket.
    fn bucket(&self, tag: u64) -> &AtomicU64 {
        &self.0.row(self.0.replace(tag, |bucket| bucket[FULL_AT].load(Relaxed)))[FULL_AT]
    }

    /// Takes a token.
    fn take(&self, tag: u64, interval_us: u64, burst: u64, now_us: u64) -> Result<(), Exceeded> {
        let room_us = interval_us.saturating_mul(burst.saturating_sub(1));
        let full_at = self.bucket(tag);
        let taken = full_at.fetch_update(AcqRel, Acquire, |full_us| {
            let full_us = full_us.max(now_us);
            (full_us - now_us <= room_us).then(|| full_us.saturating_add(interval_us))
        });
        taken.map(drop).map_err(|full_us| {
            let wait_us = full_us.saturating_sub(now_us).saturating_sub(room_us);
            Exceeded { retry_after_s: wait_us.div_ceil(1_000_000).max(1) }
        })
    }
}

impl RateLimit {
    /// Whether the request has to wait for its user to be known.
    pub fn is_by_user(&self) -> bool {
        self.key == RateKey::User
    }

    /// Takes a token for the request.
    pub fn take(&self, view: &RequestView<'_>, user: Option<&str>, now_ms: u64) -> Result<(), Exceeded> {
        if self.when.as_ref().is_some_and(|when| !when.holds(view)) {
            return Ok(());
        }
        let client = view.address.map(ClientKey::of);
        let by_address = || self.table.tag(&self.scope, b'a', client);
        let now_us = now_ms.saturating_mul(1_000);
        let tag = match &self.key {
            RateKey::Address => by_address(),
            RateKey::Field(name) => match view.head.field(name) {
                Some(value) => {
                    let of_all = self.table.tag(&self.scope, b'v', client);
                    let (interval_us, burst) =
                        (self.interval_us / VALUES_MAX, self.burst.saturating_mul(VALUES_MAX));
                    self.table.take(of_all, interval_us.max(1), burst, now_us)?;
                    self.table.tag(&self.scope, b'f', value)
                }
                None => by_address(),
            },
            RateKey::User => match user {
                Some(user) => self.table.tag(&self.scope, b'u', user.as_bytes()),
                None => by_address(),
            },
        };
        self.table.take(tag, self.interval_us, self.burst, now_us)
    }
}

/// A client address has the buckets of so many values of a field: it could otherwise make up a value for each request.
const VALUES_MAX: u64 = 16;

/// Tag and time.
const WORDS: usize = 2;
const FULL_AT: usize = 1;

/// Places for a key.
const WAYS: usize = 8;

/// 65,536 buckets, 1 MiB. Beyond, a new client's bucket replaces one that is nearly full.
const SETS: usize = 8_192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_fills_up_again() {
        let table = RateTable::allocate().unwrap();
        let take = |now_us| table.take(7, 100_000, 3, now_us);
        let start = 1_000_000_000;
        assert!((0..3).all(|_| take(start).is_ok()));
        assert_eq!(take(start), Err(Exceeded { retry_after_s: 1 }));
        assert_eq!(take(start + 99_999), Err(Exceeded { retry_after_s: 1 }));
        assert!(take(start + 100_000).is_ok() && take(start + 100_000).is_err());
        assert!((0..3).all(|_| take(start + 10_000_000).is_ok()), "no more than the bucket holds");
        assert!(take(start + 10_000_000).is_err());
        assert!(table.take(8, 100_000, 3, start).is_ok(), "another bucket");
        assert!(table.take(9, 90_000_000, 1, start).is_ok());
        assert_eq!(table.take(9, 90_000_000, 1, start), Err(Exceeded { retry_after_s: 90 }));
    }

    /// Many more keys than places: an old bucket that is still empty is kept as long as others are nearer to being full.
    #[test]
    fn memory_is_bounded_and_the_emptiest_bucket_stays() {
        let table = RateTable::allocate().unwrap();
        let now = 1_000_000_000;
        let abuser = table.tag("site", 4, b"abuser");
        while table.take(abuser, 60_000_000, 10, now).is_ok() {}
        for other in 0..200_000_u32 {
            let tag = table.tag("site", 4, other.to_le_bytes());
            assert!(table.take(tag, 1_000, 10, now).is_ok());
        }
        assert!(table.take(abuser, 60_000_000, 10, now).is_err());
    }

    #[test]
    fn threads_together_take_what_there_is() {
        let table = RateTable::allocate().unwrap();
        let now = 1_000_000_000;
        table.bucket(7);
        let taken: usize = std::thread::scope(|scope| {
            let take = || (0..1_000).filter(|_| table.take(7, 1_000_000, 500, now).is_ok()).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(taken, 500);
    }
}
