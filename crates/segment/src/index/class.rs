//! Classes: the objects of one policy and grouping, and their segments that are here.
//!
//! A policy orders the segments of its class and knows of no other. Which class gives way when there is no room, their
//! [shares](super::shares) say. An index of one class has no use for shares, and keeps no account of what went.

use super::shares::{ClassId, Shares};
use crate::layout::Layout;
use crate::policy::{Aim, CachePolicy, Ghosts, Policy, SegmentPlace};
use crate::units::Units;

/// Objects of one policy and grouping.
#[derive(Debug)]
pub(super) struct Class {
    policy: CachePolicy,
    pub(super) layout: Layout,
    pub(super) machine: Box<dyn Policy>,
    pub(super) units: Units,
    /// Of the blocks that are here.
    pub(super) bytes: u64,
    /// Those that are purged and still read included.
    pub(super) objects: usize,
    gone: Ghosts,
}

/// All classes of an index; at least one.
#[derive(Debug)]
pub(super) struct Classes {
    all: Vec<Class>,
    shares: Shares,
    aim: Aim,
    bytes_max: u64,
    seed: u64,
}

impl Classes {
    /// One class.
    pub(super) fn new(layout: Layout, policy: CachePolicy, aim: Aim, bytes_max: u64, seed: u64) -> Self {
        let mut classes = Self { all: Vec::new(), shares: Shares::default(), aim, bytes_max, seed };
        classes.add(layout, policy);
        classes
    }

    fn add(&mut self, layout: Layout, policy: CachePolicy) {
        let seed = self.seed.wrapping_add(self.all.len() as u64);
        self.all.push(Class {
            policy,
            layout: layout.grouped(policy.grouping),
            machine: policy.name.machine(self.aim, seed),
            units: Units::default(),
            bytes: 0,
            objects: 0,
            gone: Ghosts::default(),
        });
        self.shares.add();
        self.tell_room();
    }

    /// The class of a policy, a new one if there is none. Of policies beyond 256 it is the last class: no configuration has
    /// so many.
    pub(super) fn of_policy(&mut self, policy: CachePolicy) -> ClassId {
        let known = self.all.iter().position(|class| class.policy == policy);
        let number = known.unwrap_or_else(|| {
            if self.all.len() <= ClassId::MAX.into() {
                self.add(self.all[0].layout, policy);
            }
            self.all.len() - 1
        });
        number as ClassId
    }

    /// The policy of a class.
    pub(super) fn policy_of(&self, class: ClassId) -> CachePolicy {
        self[class].policy
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Class> {
        self.all.iter()
    }

    pub(super) fn set_bytes_max(&mut self, bytes_max: u64) {
        self.bytes_max = bytes_max;
        self.tell_room();
    }

    /// A segment has gone, or was not let in. Each class remembers as many bytes as the cache has room for, so that what they are
    /// asked for again compares.
    pub(super) fn note_gone(&mut self, class: ClassId, place: &SegmentPlace) {
        if self.all.len() > 1 {
            let bytes_max = self.bytes_max;
            self[class].gone.add(place, bytes_max);
        }
    }

    /// A reader wants a segment that is not here. If it went lately, its class deserves more room.
    pub(super) fn note_missed(&mut self, class: ClassId, place: &SegmentPlace) {
        if self.all.len() == 1 || !self[class].gone.contains(place) {
            return;
        }
        self.shares.gain(class, place.bytes as f64 / self.bytes_max as f64);
        self.tell_room();
    }

    /// The class that has most beyond its share, `own` being about to have so many bytes more.
    pub(super) fn fullest(&mut self, own: ClassId, more: u64) -> ClassId {
        if self.all.len() == 1 {
            return own;
        }
        let bytes =
            |(class, one): (usize, &Class)| one.bytes + if class == usize::from(own) { more } else { 0 };
        if self.shares.settle(self.all.iter().enumerate().map(bytes)) {
            self.tell_room();
        }
        self.shares.fullest(self.all.iter().enumerate().map(bytes), self.bytes_max)
    }

    /// The class with most objects beyond its share of so many, of those that have something to give up. By its bytes, a class
    /// of short objects would never give way to another object.
    pub(super) fn most_numerous(&self, objects_max: usize) -> ClassId {
        let objects =
            self.all.iter().map(|class| if class.units.is_empty() { 0 } else { class.objects as u64 });
        self.shares.fullest(objects, objects_max as u64)
    }

    fn tell_room(&mut self) {
        for (class, share) in self.all.iter_mut().zip(self.shares.iter()) {
            class.machine.handle_room((self.bytes_max as f64 * share) as u64);
        }
    }

    /// Heap bytes in use.
    pub(super) fn heap_bytes(&self) -> usize {
        let of_class =
            |class: &Class| class.units.heap_bytes() + class.machine.heap_bytes() + class.gone.heap_bytes();
        self.all.iter().map(of_class).sum()
    }
}

impl std::ops::Index<ClassId> for Classes {
    type Output = Class;

    fn index(&self, class: ClassId) -> &Class {
        &self.all[usize::from(class)]
    }
}

impl std::ops::IndexMut<ClassId> for Classes {
    fn index_mut(&mut self, class: ClassId) -> &mut Class {
        &mut self.all[usize::from(class)]
    }
}
