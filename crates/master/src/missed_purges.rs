//! Purges that have not reached a worker, and how purges are cut into messages.

use baton_cache::PurgeOrder;

/// Purges for the worker of a slot: it is down, or takes no messages at the moment.
#[derive(Clone, Debug, Default)]
pub(super) struct MissedPurges {
    /// What to purge.
    pub(super) orders: Vec<PurgeOrder>,
    /// What is complete then.
    pub(super) tickets: Vec<u64>,
}

impl MissedPurges {
    /// Adds some. Beyond a bound they become a purge of everything: a cache may forget, but never lie.
    pub(super) fn add(&mut self, orders: &[PurgeOrder], ticket: Option<u64>) {
        self.orders.extend_from_slice(orders);
        self.tickets.extend(ticket);
        if self.orders.len() > ORDERS_MAX {
            self.orders = vec![PurgeOrder::Everything];
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }
}

/// Cuts orders into messages, each shorter than [`MESSAGE_BYTES_MAX`](crate::channel::MESSAGE_BYTES_MAX).
pub(super) fn messages(orders: &[PurgeOrder]) -> impl Iterator<Item = &[PurgeOrder]> {
    let mut rest = orders;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |order: &&PurgeOrder| {
            // In JSON a byte of text has two, or six if it is one of the few that need a number.
            bytes += 2 * order.text_len() + JSON_BYTES;
            bytes <= MESSAGE_TEXT_MAX
        };
        // A single one fits always.
        let count = rest.iter().take_while(fits).count().max(1).min(rest.len());
        let (message, behind) = rest.split_at(count);
        rest = behind;
        (!message.is_empty()).then_some(message)
    })
}

/// Purges that one worker may have missed.
const ORDERS_MAX: usize = 10_000;

/// What an order takes in JSON beside its text.
const JSON_BYTES: usize = 64;

/// Half of a message.
const MESSAGE_TEXT_MAX: usize = 32 << 10;

#[cfg(test)]
mod tests {
    use baton_cache::PurgeOrder;

    use super::*;
    use crate::channel::{MESSAGE_BYTES_MAX, ToWorker};

    #[test]
    fn orders_fit_into_messages_and_none_is_lost() {
        let longest = PurgeOrder::Uri("\"".repeat(PurgeOrder::TEXT_BYTES_MAX));
        let short = |number: usize| PurgeOrder::Tag(number.to_string());
        for orders in [
            Vec::new(),
            (0..10_000).map(short).collect(),
            vec![longest.clone(), short(1), longest.clone(), longest],
        ] {
            let sent: Vec<_> = messages(&orders).collect();
            assert_eq!(sent.concat(), orders);
            for message in sent {
                let message = ToWorker::Purge { orders: message.to_vec(), tickets: vec![u64::MAX; 99] };
                assert!(serde_json::to_vec(&message).unwrap().len() <= MESSAGE_BYTES_MAX);
            }
        }
    }

    #[test]
    fn too_many_become_a_purge_of_everything() {
        let mut missed = MissedPurges::default();
        assert!(missed.is_empty());
        (0..=ORDERS_MAX as u64).for_each(|number| missed.add(&[PurgeOrder::Tag("a".into())], Some(number)));
        assert_eq!((missed.orders.len(), missed.tickets.len()), (1, ORDERS_MAX + 1));
    }
}
