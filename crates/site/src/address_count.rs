//! How many connections each client has, over all workers of the server.
//!
//! ```text
//!   part: owner, places … │ part: owner, places … │ …
//! ```
//!
//! A worker counts in a part of its own, which it claims with its process id, and adds up all parts. Only the end of a
//! connection takes its count back, and a killed worker ends none. So the master empties a part once the kernel has said that
//! its owner has ended: no process writes there then.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use baton_shares::ClientKey;
use baton_sys::shared_table::{KEY, Shape, SharedTable};

/// Counts of all workers: memory that processes share.
#[derive(Clone, Copy, Debug)]
pub struct AddressTable(SharedTable);

/// A worker's part of it.
#[derive(Clone, Copy, Debug)]
pub struct AddressCounts {
    table: AddressTable,
    part: usize,
}

/// A connection that counts until this is dropped.
#[derive(Debug, Default)]
pub struct Counted(Option<(&'static AtomicU64, u64)>);

impl AddressTable {
    /// An empty table for so many workers, and those that are about to take their places; to be called before they are forked.
    /// It takes memory only where it is used.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn allocate(workers: usize) -> io::Result<Self> {
        let ways = workers * PARTS_PER_WORKER;
        SharedTable::allocate(Shape { sets: 1, ways, row_words: PART_WORDS }).map(Self)
    }

    /// A free part for this process. `None`: all are taken, by processes that have not ended.
    pub fn claim(self, pid: u32) -> Option<AddressCounts> {
        let part = self.0.claim(pid.into())?;
        Some(AddressCounts { table: self, part })
    }

    /// A process has ended: what it has counted is gone.
    pub fn release(self, pid: u32) {
        if let Some(part) = self.0.find(pid.into()) {
            self.0.end(part);
        }
    }

    /// What stands for a client: of IPv6, for its network.
    fn tag(self, address: IpAddr) -> u64 {
        (self.0.key(ClientKey::of(address)) >> COUNT_BITS).max(1)
    }
}

/// The places of a client in a part.
fn places(part: &'static [AtomicU64], tag: u64) -> &'static [AtomicU64] {
    let set = 1 + (tag % SETS as u64) as usize * WAYS;
    &part[set..set + WAYS]
}

fn count_of(word: u64, tag: u64) -> Option<u64> {
    (word >> COUNT_BITS == tag).then_some(word & COUNT_MAX)
}

impl AddressCounts {
    /// Counts a connection, if its client has at most `most` with it.
    pub fn enter_up_to(self, address: IpAddr, most: u64) -> Option<Counted> {
        let counted = self.enter(address);
        // Two workers that do so at the same moment may both find one too many, but never one too few.
        (self.open(address) <= most).then_some(counted)
    }

    /// Counts a connection. Where a set of places is full, it does not count.
    pub fn enter(self, address: IpAddr) -> Counted {
        let tag = self.table.tag(address);
        let places = places(self.table.0.row(self.part), tag);
        let one_more = |word| count_of(word, tag).filter(|count| *count < COUNT_MAX).map(|_| word + 1);
        let known = places.iter().find(|place| place.fetch_update(AcqRel, Acquire, one_more).is_ok());
        let first = tag << COUNT_BITS | 1;
        let free = || places.iter().find(|place| place.compare_exchange(0, first, AcqRel, Relaxed).is_ok());
        Counted(known.or_else(free).map(|place| (place, tag)))
    }

    /// How many connections the client has.
    fn open(self, address: IpAddr) -> u64 {
        let tag = self.table.tag(address);
        let claimed = self.table.0.rows().filter(|part| part[KEY].load(Acquire) != 0);
        claimed
            .flat_map(|part| places(part, tag))
            .filter_map(|place| count_of(place.load(Acquire), tag))
            .sum()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some((place, tag)) = self.0 {
            let one_less = |word| count_of(word, tag).map(|count| if count <= 1 { 0 } else { word - 1 });
            // It fails for no connection that counts.
            let _ = place.fetch_update(AcqRel, Acquire, one_less);
        }
    }
}

/// A word has the tag of a client and, in its last bits, a count.
const COUNT_BITS: u32 = 16;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;

/// Places for a client.
const WAYS: usize = 8;

/// 8,192 places, 64 KiB for each worker. Where more clients are connected to one, some of them are not counted.
const SETS: usize = 1_024;
const PART_WORDS: usize = 1 + SETS * WAYS;

/// The worker itself, one that finishes, and two that do so slowly.
const PARTS_PER_WORKER: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn workers_count_together_and_take_back_what_ends() {
        let table = AddressTable::allocate(2).unwrap();
        let (one, other) = (table.claim(11).unwrap(), table.claim(12).unwrap());
        let client = address("192.0.2.1");
        let mut held: Vec<_> = [one, other, one].map(|part| part.enter_up_to(client, 3)).into();
        assert!(held.iter().all(Option::is_some));
        assert!(other.enter_up_to(client, 3).is_none(), "which did not count either");
        assert!(one.enter_up_to(client, 3).is_none());
        assert!(one.enter_up_to(address("::ffff:192.0.2.1"), 3).is_none(), "the same client");
        assert!(one.enter_up_to(address("192.0.2.2"), 3).is_some(), "another one");
        held.pop();
        assert!(other.enter_up_to(client, 3).is_some());
    }

    #[test]
    fn networks_of_ipv6_are_one_client() {
        let part = AddressTable::allocate(1).unwrap().claim(11).unwrap();
        let _held = part.enter_up_to(address("2001:db8::1"), 1).unwrap();
        assert!(part.enter_up_to(address("2001:db8::2"), 1).is_none());
        assert!(part.enter_up_to(address("2001:db8:0:1::1"), 1).is_some());
    }

    /// What a killed worker has counted goes with it, and its part is free for another.
    #[test]
    fn the_dead_have_no_connections() {
        let table = AddressTable::allocate(1).unwrap();
        let client = address("192.0.2.1");
        let parts: Vec<_> = (1..=4).map(|pid| table.claim(pid).unwrap()).collect();
        assert!(table.claim(5).is_none());
        // Nothing drops them.
        parts.iter().for_each(|part| std::mem::forget(part.enter(client)));
        assert!(parts[0].enter_up_to(client, 4).is_none());
        table.release(2);
        table.release(3);
        assert_eq!(parts[0].open(client), 2);
        assert_eq!(table.claim(5).unwrap().open(client), 2);
    }

    #[test]
    fn counts_end_with_their_bound_and_with_the_last_place() {
        let part = AddressTable::allocate(1).unwrap().claim(1).unwrap();
        let held: Vec<_> = (0..=COUNT_MAX).map(|_| part.enter(address("192.0.2.1"))).collect();
        assert_eq!(part.open(address("192.0.2.1")), COUNT_MAX + 1, "in another place");
        drop(held);
        let many: Vec<_> = (0..20_000_u32).map(|one| part.enter(IpAddr::V4(one.into()))).collect();
        assert!(many.iter().filter(|one| one.0.is_some()).count() <= SETS * WAYS);
        drop(many);
        let is_empty = |part: &[AtomicU64]| part[1..].iter().all(|place| place.load(Relaxed) == 0);
        assert!(part.table.0.rows().all(is_empty));
    }
}
