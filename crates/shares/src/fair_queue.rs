//! A queue in which clients take turns.

use std::collections::VecDeque;

use crate::client_key::ClientKey;

/// A queue: of each client first come, first served, and of several clients one after the other. Who asks a thousand times waits
/// for itself. What has no client takes turns as one.
#[derive(Debug)]
pub struct FairQueue<T> {
    /// Whose turn is next stands first. None is empty.
    lanes: VecDeque<Lane<T>>,
    len: usize,
}

#[derive(Debug)]
struct Lane<T> {
    client: Option<ClientKey>,
    items: VecDeque<T>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { lanes: VecDeque::new(), len: 0 }
    }
}

impl<T> FairQueue<T> {
    /// Adds an item behind all others of its client.
    pub fn push(&mut self, client: Option<ClientKey>, item: T) {
        self.len += 1;
        match self.lanes.iter_mut().find(|lane| lane.client == client) {
            Some(lane) => lane.items.push_back(item),
            None => self.lanes.push_back(Lane { client, items: VecDeque::from([item]) }),
        }
    }

    /// Puts an item back that has had its turn: it is the next again.
    pub fn put_back(&mut self, client: Option<ClientKey>, item: T) {
        self.len += 1;
        let known = self.lanes.iter().position(|lane| lane.client == client);
        let mut lane = known
            .and_then(|at| self.lanes.remove(at))
            .unwrap_or_else(|| Lane { client, items: VecDeque::new() });
        lane.items.push_front(item);
        self.lanes.push_front(lane);
    }

    /// The next item of the clients that `may_go`.
    pub fn peek(&self, may_go: impl Fn(Option<ClientKey>) -> bool) -> Option<&T> {
        self.lanes.iter().find(|lane| may_go(lane.client)).and_then(|lane| lane.items.front())
    }

    /// Takes the next item of the clients that `may_go`.
    pub fn pop(&mut self, may_go: impl Fn(Option<ClientKey>) -> bool) -> Option<T> {
        let at = self.lanes.iter().position(|lane| may_go(lane.client))?;
        let mut lane = self.lanes.remove(at)?;
        let item = lane.items.pop_front()?;
        self.len -= 1;
        if !lane.items.is_empty() {
            self.lanes.push_back(lane);
        }
        Some(item)
    }

    /// Takes back the item of a client that was added last.
    pub fn take_back(&mut self, client: Option<ClientKey>) -> Option<T> {
        let at = self.lanes.iter().position(|lane| lane.client == client)?;
        let item = self.lanes[at].items.pop_back()?;
        self.len -= 1;
        if self.lanes[at].items.is_empty() {
            self.lanes.remove(at);
        }
        Some(item)
    }

    /// Takes out the first item that `is_wanted`.
    pub fn take(&mut self, is_wanted: impl Fn(&T) -> bool) -> Option<T> {
        let mut found = None;
        for lane in &mut self.lanes {
            if let Some(at) = lane.items.iter().position(&is_wanted) {
                found = lane.items.remove(at);
                break;
            }
        }
        self.len -= usize::from(found.is_some());
        self.lanes.retain(|lane| !lane.items.is_empty());
        found
    }

    /// Keeps the items that are `wanted`.
    pub fn retain(&mut self, wanted: impl Fn(&T) -> bool) {
        self.lanes.iter_mut().for_each(|lane| lane.items.retain(&wanted));
        self.lanes.retain(|lane| !lane.items.is_empty());
        self.len = self.lanes.iter().map(|lane| lane.items.len()).sum();
    }

    /// All items.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.lanes.iter().flat_map(|lane| &lane.items)
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// How many of them a client has.
    pub fn len_of(&self, client: Option<ClientKey>) -> usize {
        self.lanes.iter().find(|lane| lane.client == client).map_or(0, |lane| lane.items.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> Option<ClientKey> {
        Some(ClientKey::of([192, 0, 2, last].into()))
    }

    fn all(queue: &mut FairQueue<u32>) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop(|_| true)).collect()
    }

    #[test]
    fn clients_take_turns_and_each_keeps_its_order() {
        let mut queue = FairQueue::default();
        (10..14).for_each(|item| queue.push(client(1), item));
        (20..22).for_each(|item| queue.push(client(2), item));
        queue.push(None, 30);
        assert_eq!((queue.len(), queue.len_of(client(1)), queue.len_of(client(3))), (7, 4, 0));
        assert_eq!(all(&mut queue), [10, 20, 30, 11, 21, 12, 13]);
        assert!(queue.is_empty() && queue.lanes.is_empty());
    }

    #[test]
    fn who_may_not_go_holds_up_no_other() {
        let mut queue = FairQueue::default();
        [(1, 10), (1, 11), (2, 20)].into_iter().for_each(|(last, item)| queue.push(client(last), item));
        let is_second = |one| one == client(2);
        assert_eq!(queue.peek(is_second), Some(&20));
        assert_eq!((queue.pop(is_second), queue.pop(is_second)), (Some(20), None));
        let first = queue.pop(|_| true).unwrap();
        queue.push(client(2), 21);
        queue.put_back(client(1), first);
        assert_eq!(queue.take_back(client(1)), Some(11));
        assert_eq!(queue.take(|item| *item == 21), Some(21));
        assert_eq!((all(&mut queue), queue.take(|_| true)), (vec![10], None));
    }

    #[test]
    fn what_is_not_wanted_any_more_goes() {
        let mut queue = FairQueue::default();
        [(1, 10), (1, 11), (2, 20)].into_iter().for_each(|(last, item)| queue.push(client(last), item));
        queue.retain(|item| *item == 11);
        assert_eq!((queue.len(), queue.lanes.len(), all(&mut queue)), (1, 1, vec![11]));
    }
}
