//! Which connections end first when others need their places.

use baton_shares::ClientKey;

use crate::clients::{Clients, Connection, Spare, Token};

/// Ends connections when there are too many, at intervals.
#[derive(Debug, Default)]
pub(crate) struct Eviction {
    next_ms: u64,
}

impl Eviction {
    /// Whether it is time to end some.
    pub(crate) fn take_due(&mut self, now_ms: u64) -> bool {
        let is_due = now_ms >= self.next_ms;
        if is_due {
            self.next_ms = now_ms + INTERVAL_MS;
        }
        is_due
    }

    /// Leaves those in `into` that end first: of who has most, those that are idle, then those whose request is not complete;
    /// then those of others. Of each kind, those that have waited the longest; those that wait since a moment ago may be about to
    /// go on.
    pub(crate) fn choose<C: Connection>(
        clients: &Clients<C>,
        greediest: Option<ClientKey>,
        now_ms: u64,
        into: &mut Vec<Token>,
    ) {
        let has_waited = |since_ms: u64| now_ms.saturating_sub(since_ms) >= PATIENCE_MS;
        let mut spare: Vec<(bool, Spare, u64, Token)> = clients
            .iter()
            .filter(|(_, _, since_ms)| has_waited(*since_ms))
            .filter_map(|(token, entry, since_ms)| {
                let is_of_another = greediest.is_none() || entry.place.client() != greediest;
                Some((is_of_another, entry.client.spare()?, since_ms, token))
            })
            .collect();
        spare.sort_unstable_by_key(|(is_of_another, spare, since_ms, _)| (*is_of_another, *spare, *since_ms));
        into.clear();
        into.extend(spare.into_iter().map(|(.., token)| token).take(AT_A_TIME));
    }
}

/// How long the new places last at least: a search through all clients takes some hundred microseconds.
const INTERVAL_MS: u64 = 50;

/// So that a client that waits for a place is soon among those that get one.
const AT_A_TIME: usize = 64;

/// What a client has at least for the next step of a handshake or a request.
const PATIENCE_MS: u64 = 1_000;
