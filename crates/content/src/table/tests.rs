//! The table against naive models that sort everything at each step.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Entry, Seat, Table};
use crate::policy::Policy;

#[derive(Debug, Default)]
struct Item {
    key: u64,
    weight: u64,
    seat: Seat,
}

impl Entry for Item {
    fn hash(&self) -> u64 {
        self.key / 2 // Pairs of keys collide.
    }

    fn weight(&self) -> u64 {
        self.weight
    }

    fn seat(&self) -> &Seat {
        &self.seat
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert { key: u64, weight: u64 },
    Use { key: u64 },
    Remove { key: u64 },
    SetWeightMax(u64),
    Evict(usize),
}

/// Weights are powers of two, so that `1 / weight` is exact in the table's fixed-point and the model's floating-point
/// numbers.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..12_u64;
    let step = prop_oneof![
        6 => (key.clone(), 0..7_u32).prop_map(|(key, log)| Step::Insert { key, weight: 1 << log }),
        6 => key.clone().prop_map(|key| Step::Use { key }),
        1 => key.prop_map(|key| Step::Remove { key }),
        1 => (0..200_u64).prop_map(Step::SetWeightMax),
        1 => (0..3_usize).prop_map(Step::Evict),
    ];
    prop::collection::vec(step, 1..120)
}

/// The simplest correct model of a policy.
trait Model {
    /// The value of an entry that is used now; the smallest is evicted first.
    fn value(&mut self, weight: u64) -> f64;
    fn evicted(&mut self, value: f64);
}

struct NaiveLru {
    uses: u64,
}

impl Model for NaiveLru {
    fn value(&mut self, _weight: u64) -> f64 {
        self.uses += 1;
        self.uses as f64
    }

    fn evicted(&mut self, _value: f64) {}
}

struct NaiveGds {
    inflation: f64,
}

impl Model for NaiveGds {
    fn value(&mut self, weight: u64) -> f64 {
        self.inflation + 1.0 / weight as f64
    }

    fn evicted(&mut self, value: f64) {
        self.inflation = value;
    }
}

struct Pair<M> {
    table: Table<Item>,
    model: M,
    /// Key, weight and value of what should be in the table.
    expected: Vec<(u64, u64, f64)>,
    weight_max: u64,
}

impl<M: Model> Pair<M> {
    fn step(&mut self, step: &Step) {
        match *step {
            Step::Insert { key, weight } => {
                let item = Arc::new(Item { key, weight, seat: Seat::default() });
                self.table.insert(item, |present| present.key == key, |_| false);
                self.expected.retain(|&(present, ..)| present != key);
                if weight <= self.weight_max {
                    self.evict_down_to(self.weight_max - weight);
                    let value = self.model.value(weight);
                    self.expected.push((key, weight, value));
                }
            }
            Step::Use { key } => {
                let used = self.table.find(key / 2, |item| item.key == key, |item| self.table.touch(item));
                let entry = self.expected.iter_mut().find(|(present, ..)| *present == key);
                assert_eq!(used.is_some(), entry.is_some());
                if let Some((_, weight, value)) = entry {
                    *value = self.model.value(*weight);
                }
            }
            Step::Remove { key } => {
                if let Some(item) = self.table.find(key / 2, |item| item.key == key, Arc::clone) {
                    self.table.remove(&item);
                    assert!(!item.seat.is_taken());
                    self.table.remove(&item);
                }
                self.expected.retain(|&(present, ..)| present != key);
            }
            Step::SetWeightMax(weight_max) => {
                self.table.set_weight_max(weight_max);
                self.weight_max = weight_max;
                self.evict_down_to(weight_max);
            }
            Step::Evict(count) => {
                let there = self.expected.len();
                assert_eq!(self.table.evict(count, |_| true), count.min(there));
                for _ in 0..count.min(there) {
                    self.evict_one();
                }
            }
        }
        self.check();
    }

    fn evict_down_to(&mut self, weight_max: u64) {
        while self.expected.iter().map(|(_, weight, _)| weight).sum::<u64>() > weight_max {
            self.evict_one();
        }
    }

    /// Evicts the entry of the smallest value; where several have it, one that the table has evicted too.
    fn evict_one(&mut self) {
        let smallest = self.expected.iter().map(|&(.., value)| value).fold(f64::INFINITY, f64::min);
        let victim = self
            .expected
            .iter()
            .position(|&(key, _, value)| value == smallest && !self.contains(key))
            .expect("the table has evicted an entry of the smallest value");
        let (.., value) = self.expected.remove(victim);
        self.model.evicted(value);
    }

    fn contains(&self, key: u64) -> bool {
        self.table.find(key / 2, |item| item.key == key, |_| ()).is_some()
    }

    fn check(&self) {
        assert_eq!(self.table.len(), self.expected.len());
        assert!(self.expected.iter().all(|&(key, ..)| self.contains(key)));
        assert_eq!(self.table.weight(), self.expected.iter().map(|(_, weight, _)| weight).sum::<u64>());
        assert!(self.table.weight() <= self.weight_max);
        let inner = self.table.read();
        assert_eq!(inner.queue.len(), inner.index.len());
        assert!(inner.queue.iter().all(|(rank, item)| *rank == item.seat.rank() && item.seat.is_taken()));
    }
}

fn compare(policy: Policy, model: impl Model, steps: &[Step]) {
    let weight_max = 100;
    let table = Table::new(policy, weight_max);
    let mut pair = Pair { table, model, expected: Vec::new(), weight_max };
    for step in steps {
        pair.step(step);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn lru_is_exact(steps in steps()) {
        compare(Policy::Lru, NaiveLru { uses: 0 }, &steps);
    }

    #[test]
    fn gds_is_exact(steps in steps()) {
        compare(Policy::Gds, NaiveGds { inflation: 0.0 }, &steps);
    }
}

/// The point of Greedy-Dual-Size, and its difference to LRU: one large entry does not evict many small ones, but
/// unused small ones do not stay for ever.
#[test]
fn gds_prefers_small_entries_and_lets_them_age() {
    let survivors = |policy| {
        let table = Table::new(policy, 1_000);
        let insert = |key, weight| {
            table.insert(
                Arc::new(Item { key, weight, seat: Seat::default() }),
                |item| item.key == key,
                |_| false,
            );
        };
        for key in 0..10 {
            insert(key, 50);
        }
        for key in 10..15 {
            insert(key, 450);
        }
        let after_a_flood =
            (0..10).filter(|&key| table.find(key / 2, |item| item.key == key, |_| ()).is_some()).count();
        for key in 15..50 {
            insert(key, 450);
        }
        let at_last =
            (0..10).filter(|&key| table.find(key / 2, |item| item.key == key, |_| ()).is_some()).count();
        (after_a_flood, at_last)
    };
    assert_eq!(survivors(Policy::Lru), (0, 0));
    let (after_a_flood, at_last) = survivors(Policy::Gds);
    assert_eq!((after_a_flood, at_last), (10, 0));
}

#[test]
fn insert_can_prefer_what_is_there() {
    let table = Table::new(Policy::Lru, 10);
    let item = |weight| Arc::new(Item { key: 1, weight, seat: Seat::default() });
    let first = table.insert(item(1), |item| item.key == 1, |_| unreachable!("the table was empty"));
    let kept = table.insert(item(2), |item| item.key == 1, |_| true);
    assert!(Arc::ptr_eq(&first, &kept));
    let replaced = table.insert(item(2), |item| item.key == 1, |_| false);
    assert!(!Arc::ptr_eq(&first, &replaced) && !first.seat.is_taken() && replaced.seat.is_taken());
    assert_eq!((table.len(), table.weight()), (1, 2));
}
