//! Places of a table that one process has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::quality::RandomState;

use crate::client_key::ClientKey;
use crate::room::{Full, has_room};

/// Places that clients have. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Shares(Arc<Mutex<Counts>>);

/// A place that a client has until it drops this.
#[derive(Debug)]
pub struct Permit {
    shares: Shares,
    client: Option<ClientKey>,
}

#[derive(Debug, Default)]
struct Counts {
    taken: u64,
    of: HashMap<ClientKey, u64, RandomState>,
}

impl Shares {
    /// A place for a client in a table of `max`. `None`: it has no share, as a proxy that many clients stand behind.
    ///
    /// # Errors
    /// What is full.
    pub fn take(&self, client: Option<ClientKey>, max: usize) -> Result<Permit, Full> {
        let mut counts = self.lock();
        has_room(counts.held(client), counts.taken, 1, max as u64)?;
        counts.add(client);
        Ok(Permit { shares: self.clone(), client })
    }

    /// A place regardless of any bound: another process has admitted the client.
    pub fn enter(&self, client: Option<ClientKey>) -> Permit {
        self.lock().add(client);
        Permit { shares: self.clone(), client }
    }

    /// Whether a client could [`take`](Self::take) a place.
    ///
    /// # Errors
    /// What is full.
    pub fn room(&self, client: Option<ClientKey>, max: usize) -> Result<(), Full> {
        let counts = self.lock();
        has_room(counts.held(client), counts.taken, 1, max as u64)
    }

    /// Places that are taken.
    pub fn taken(&self) -> usize {
        self.lock().taken as usize
    }

    /// Places that are taken, of which each client counts for `of_client_max` at most.
    pub fn taken_by_many(&self, of_client_max: usize) -> usize {
        let counts = self.lock();
        let beyond = counts.of.values().map(|held| held.saturating_sub(of_client_max as u64));
        (counts.taken - beyond.sum::<u64>()) as usize
    }

    /// The client that has most places.
    pub fn greediest(&self) -> Option<ClientKey> {
        self.lock().of.iter().max_by_key(|(_, held)| **held).map(|(client, _)| *client)
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn held(&self, client: Option<ClientKey>) -> Option<u64> {
        client.map(|client| self.of.get(&client).copied().unwrap_or(0))
    }

    fn add(&mut self, client: Option<ClientKey>) {
        self.taken += 1;
        if let Some(client) = client {
            *self.of.entry(client).or_default() += 1;
        }
    }

    fn subtract(&mut self, client: Option<ClientKey>) {
        self.taken -= 1;
        if let Some(client) = client
            && let Some(held) = self.of.get_mut(&client)
        {
            *held -= 1;
            if *held == 0 {
                self.of.remove(&client);
            }
        }
    }
}

impl Permit {
    /// Whose it is.
    pub fn client(&self) -> Option<ClientKey> {
        self.client
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shares.lock().subtract(self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> Option<ClientKey> {
        Some(ClientKey::of([192, 0, 2, last].into()))
    }

    #[test]
    fn who_has_most_leaves_places_to_others() {
        let shares = Shares::default();
        let mut greedy: Vec<_> = std::iter::from_fn(|| shares.take(client(1), 8).ok()).collect();
        assert_eq!((greedy.len(), shares.take(client(1), 8).unwrap_err()), (6, Full::Share));
        let modest: Vec<_> = std::iter::from_fn(|| shares.take(client(2), 8).ok()).collect();
        assert_eq!((modest.len(), shares.room(client(2), 8)), (2, Err(Full::Table)));
        assert_eq!(shares.greediest(), client(1));
        let of_none = shares.enter(None);
        assert_eq!([9, 6, 3, 1].map(|most| shares.taken_by_many(most)), [9, 9, 6, 3]);
        drop(of_none);
        greedy.pop();
        assert_eq!(shares.room(client(1), 8), Err(Full::Share), "it is for others");
        assert!(shares.room(client(3), 8).is_ok() && shares.room(None, 8).is_ok());
        drop((greedy, modest));
        assert_eq!((shares.taken(), shares.greediest()), (0, None));
    }
}
