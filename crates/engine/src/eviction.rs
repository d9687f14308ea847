//! Which connections end first when others need their places.

use baton_session::session::Spare;
use baton_shares::ClientKey;

use crate::clients::{Clients, Connection, Token};

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

    /// Leaves those in `into` that end first: those that are idle, then those whose request is not complete. Of each kind, those
    /// that have waited the longest; those that wait since a moment ago may be about to go on.
    pub(crate) fn choose<C: Connection>(
        clients: &Clients<C>,
        among: Among,
        now_ms: u64,
        into: &mut Vec<Token>,
    ) {
        let has_waited = |since_ms: u64| now_ms.saturating_sub(since_ms) >= PATIENCE_MS;
        let mut spare: Vec<(u8, Spare, u64, Token)> = clients
            .iter()
            .filter(|(_, _, since_ms)| has_waited(*since_ms))
            .filter_map(|(token, entry, since_ms)| {
                Some((among.rank(entry.place.client())?, entry.client.spare()?, since_ms, token))
            })
            .collect();
        spare.sort_unstable_by_key(|(rank, spare, since_ms, _)| (*rank, *spare, *since_ms));
        into.clear();
        into.extend(spare.into_iter().map(|(.., token)| token).take(AT_A_TIME));
    }
}

/// Whose connections may end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Among {
    /// Connections of the client that wants another beyond its share.
    /// It makes room for itself, and no other notices.
    Only(Option<ClientKey>),
    /// Connections of all clients, of one before the others.
    All { first: Option<ClientKey> },
}

impl Among {
    /// Whose go first; `None`: they stay.
    fn rank(self, client: Option<ClientKey>) -> Option<u8> {
        match self {
            Self::Only(one) => (client == one).then_some(0),
            Self::All { first } => Some(u8::from(first.is_none() || client != first)),
        }
    }
}

/// How long the new places last at least: a search through all clients takes some hundred microseconds.
const INTERVAL_MS: u64 = 50;

/// So that a client that waits for a place is soon among those that get one.
const AT_A_TIME: usize = 64;

/// What a client has at least for the next step of a handshake or a request.
const PATIENCE_MS: u64 = 1_000;

#[cfg(test)]
mod tests {
    use baton_shares::Shares;

    use super::*;

    impl Connection for Option<Spare> {
        fn deadline_ms(&self) -> u64 {
            u64::MAX
        }

        fn spare(&self) -> Option<Spare> {
            *self
        }

        fn passport_version(&self) -> Option<u32> {
            None
        }

        fn may_go_back(&self) -> bool {
            false
        }
    }

    /// Goal: who wants more than its share ends no connection of another client, even if its own are all busy.
    #[test]
    fn only_a_full_table_takes_from_others() {
        let key = |last| Some(ClientKey::of([192, 0, 2, last].into()));
        let (shares, mut clients) = (Shares::default(), Clients::default());
        let mut enter = |last, spare, now_ms| clients.insert(spare, shares.enter(key(last)), now_ms);
        let (idle, unfinished) = (Some(Spare::Idle), Some(Spare::Unfinished));
        let (half, kept) = (enter(1, unfinished, 0), enter(1, idle, 7));
        let (_busy, _new) = (enter(1, None, 0), enter(1, idle, 1_500));
        let other = enter(2, idle, 0);
        let mut chosen = Vec::new();
        let mut choose = |among| {
            Eviction::choose(&clients, among, 2_000, &mut chosen);
            chosen.clone()
        };
        assert_eq!(choose(Among::Only(key(1))), [kept, half]);
        assert_eq!(choose(Among::Only(key(3))), []);
        assert_eq!(choose(Among::All { first: key(1) }), [kept, half, other]);
        assert_eq!(choose(Among::All { first: key(2) }), [other, kept, half]);
    }
}
