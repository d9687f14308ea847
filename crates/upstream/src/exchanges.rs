//! The requests of one loop whose last event is not taken yet, and those of them with events to take.

use std::collections::{HashMap, VecDeque};

use baton_shares::ClientKey;
use foldhash::fast::RandomState;

use crate::exchange::{Exchange, ExchangeState};
use crate::{Protocol, RequestId};

/// The exchanges of one loop.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    by_id: HashMap<RequestId, Exchange, RandomState>,
    /// Requests with events to take. Each is in it once; one that was forgotten meanwhile is skipped.
    announced: VecDeque<RequestId>,
    /// Memory of heads and parameters, for reuse.
    spare: Vec<Vec<u8>>,
}

impl Exchanges {
    /// Adds a request.
    pub(crate) fn insert(&mut self, request_id: RequestId, exchange: Exchange) {
        let former = self.by_id.insert(request_id, exchange);
        debug_assert!(former.is_none(), "a name is used again too early");
    }

    pub(crate) fn get(&self, request_id: RequestId) -> Option<&Exchange> {
        self.by_id.get(&request_id)
    }

    pub(crate) fn get_mut(&mut self, request_id: RequestId) -> Option<&mut Exchange> {
        self.by_id.get_mut(&request_id)
    }

    /// Forgets a request.
    pub(crate) fn remove(&mut self, request_id: RequestId) -> Option<Exchange> {
        self.by_id.remove(&request_id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (RequestId, &Exchange)> {
        self.by_id.iter().map(|(request_id, exchange)| (*request_id, exchange))
    }

    /// Tells the caller that a request has events to take, if it has.
    pub(crate) fn announce(&mut self, request_id: RequestId) {
        if let Some(exchange) = self.by_id.get_mut(&request_id)
            && exchange.has_news()
            && !std::mem::replace(&mut exchange.is_announced, true)
        {
            self.announced.push_back(request_id);
        }
    }

    /// The next request with events to take, each once until something changes again.
    pub(crate) fn poll_announced(&mut self) -> Option<RequestId> {
        loop {
            let request_id = self.announced.pop_front()?;
            let exchange = self.by_id.get_mut(&request_id);
            if exchange.is_some_and(|exchange| std::mem::take(&mut exchange.is_announced)) {
                return Some(request_id);
            }
        }
    }

    /// Whose share a request takes.
    pub(crate) fn client_of(&self, request_id: RequestId) -> Option<ClientKey> {
        self.get(request_id)?.request.as_ref()?.client
    }

    /// Finishes a request: what answers it will send no more.
    pub(crate) fn finish(&mut self, request_id: RequestId) {
        let Some(exchange) = self.get_mut(request_id) else { return };
        exchange.state = ExchangeState::Finished;
        (exchange.turn, exchange.at_origin, exchange.place) = (None, None, None);
        if let Some(request) = exchange.request.take() {
            if request.application.settings().protocol == Protocol::Http1 {
                exchange.response.handle_trail(request.application, exchange.trail.told());
            }
            self.keep_memory(request.text);
        }
        self.announce(request_id);
    }

    /// Empty memory for a head, used before if there is any.
    pub(crate) fn spare_memory(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes the memory of parameters or of a head back.
    pub(crate) fn keep_memory(&mut self, mut memory: Vec<u8>) {
        if self.spare.len() < SPARE_MAX && (1..=SPARE_BYTES_MAX).contains(&memory.capacity()) {
            memory.clear();
            self.spare.push(memory);
        }
    }

    /// Every request that is announced is in the list.
    pub(crate) fn check_invariants(&self) {
        for (request_id, exchange) in self.iter() {
            assert!(
                !exchange.is_announced || self.announced.contains(&request_id),
                "{request_id:?} has events that the loop is not told of"
            );
        }
        assert!(self.spare.len() <= SPARE_MAX, "{} pieces of spare memory", self.spare.len());
    }
}

/// Pieces of memory kept for heads and parameters, and the most of each.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, Application, Endpoint, FailureReason, Settings};

    fn exchanges(ids: std::ops::Range<u64>) -> Exchanges {
        let settings = Settings::new("test", Endpoint::Shared(Address::Abstract(Vec::new())));
        let application = Application::new(settings).unwrap();
        let mut exchanges = Exchanges::default();
        for id in ids {
            exchanges.insert(RequestId::new(id), Exchange::answered(&application, None, 0, Vec::new(), 0));
        }
        exchanges
    }

    fn fail(exchanges: &mut Exchanges, id: u64) {
        let exchange = exchanges.get_mut(RequestId::new(id)).unwrap();
        exchange.response.fail(FailureReason::Ended, false);
    }

    #[test]
    fn a_request_is_announced_once_and_only_with_news() {
        let mut exchanges = exchanges(1..4);
        for id in [1, 2] {
            fail(&mut exchanges, id);
        }
        for id in [3, 2, 1, 2] {
            exchanges.announce(RequestId::new(id));
            exchanges.check_invariants();
        }
        let polled: Vec<_> = std::iter::from_fn(|| exchanges.poll_announced()).collect();
        assert_eq!(polled, [2, 1].map(RequestId::new), "in order, and none without news");
        exchanges.announce(RequestId::new(1));
        assert_eq!(exchanges.poll_announced(), Some(RequestId::new(1)), "it still has what was not taken");
    }

    #[test]
    fn a_request_that_was_forgotten_is_not_announced() {
        let mut exchanges = exchanges(1..3);
        for id in [1, 2] {
            fail(&mut exchanges, id);
            exchanges.announce(RequestId::new(id));
        }
        assert!(exchanges.remove(RequestId::new(1)).is_some());
        assert_eq!(exchanges.poll_announced(), Some(RequestId::new(2)));
        assert_eq!(exchanges.poll_announced(), None);
    }

    #[test]
    fn spare_memory_is_bounded() {
        let mut exchanges = Exchanges::default();
        exchanges.keep_memory(Vec::new());
        exchanges.keep_memory(Vec::with_capacity(SPARE_BYTES_MAX + 1));
        assert_eq!(exchanges.spare_memory().capacity(), 0, "neither is worth keeping");
        for _ in 0..=SPARE_MAX {
            exchanges.keep_memory(b"text".to_vec());
        }
        exchanges.check_invariants();
        let memory = exchanges.spare_memory();
        assert!(memory.is_empty() && memory.capacity() >= 4);
    }
}
