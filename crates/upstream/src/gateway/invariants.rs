//! What holds in a gateway between any two calls. Simulations check it after every event.

use super::Gateway;
use crate::RequestId;
use crate::connection::Connection;
use crate::connections::ConnectionId;
use crate::exchange::{Exchange, ExchangeState};
use crate::pool::Pool;

impl Gateway {
    /// Compares what pools, connections and exchanges say of each other.
    ///
    /// # Panics
    /// They differ.
    pub fn check_invariants(&self) {
        self.exchanges.check_invariants();
        for (id, connection) in self.connections.iter() {
            self.check_connection(id, connection);
        }
        for (request_id, exchange) in self.exchanges.iter() {
            self.check_exchange(request_id, exchange);
        }
        for index in self.pools.indices() {
            if let Some(pool) = self.pools.get(index) {
                self.check_pool(index, pool);
            }
        }
        let is_queued = |exchange: &Exchange| exchange.state == ExchangeState::Queued;
        let queued = self.exchanges.iter().filter(|(_, exchange)| is_queued(exchange)).count();
        let waiting: usize = self.pools.iter().map(Pool::waiting).sum();
        assert_eq!(queued, waiting + self.waiting.len(), "requests wait in no queue, or in two");
    }

    fn check_connection(&self, id: ConnectionId, connection: &Connection) {
        assert!(self.pools.get(connection.pool).is_some(), "{id:?} has no pool");
        let due_ms = connection.phase().due_ms();
        let known_ms = self.connections.due_ms();
        assert!(known_ms <= due_ms, "{id:?} is due at {due_ms}, the connections at {known_ms}");
        if let Some(request_id) = connection.phase().request_id() {
            let exchange = self.exchanges.get(request_id);
            let state = exchange.map(|exchange| exchange.state);
            assert_eq!(state, Some(ExchangeState::Assigned(id)), "{id:?} is in use for {request_id:?}");
        }
        let is_in_queue = self.connections.is_in_queue(id);
        assert!(!connection.is_requeued || is_in_queue, "{id:?} is to be read, and is not");
    }

    fn check_exchange(&self, request_id: RequestId, exchange: &Exchange) {
        let Exchange { request, place, turn, at_origin, .. } = exchange;
        match exchange.state {
            ExchangeState::Queued => {
                assert!(request.is_some(), "{request_id:?} waits, and there is nothing to send");
                assert!(place.is_none(), "{request_id:?} has no connection, and takes a share of them");
            }
            ExchangeState::Assigned(id) => {
                let connection = self.connections.get(id);
                let served = connection.and_then(|connection| connection.phase().request_id());
                assert_eq!(served, Some(request_id), "{id:?} serves another request");
                assert!(request.is_some() && place.is_some(), "{request_id:?} is under way");
            }
            ExchangeState::Finished => {
                let is_free = request.is_none() && place.is_none() && turn.is_none() && at_origin.is_none();
                assert!(is_free, "{request_id:?} is answered, and holds what others need");
                assert!(exchange.response.has_event(), "{request_id:?} is answered, and never ends");
            }
        }
    }

    fn check_pool(&self, index: usize, pool: &Pool) {
        let name = pool.application.name();
        let is_told = pool.next_in_queue_ms().is_none_or(|due_ms| self.pools.due_ms() <= due_ms);
        assert!(is_told, "a request waits for {name} longer than it may");
        let count = |of: &dyn Fn(&Connection) -> bool| {
            self.connections.iter().filter(|(_, one)| one.pool == index && of(one)).count()
        };
        assert_eq!(pool.open(), count(&|one| !one.counts_as_tunnel), "open connections of {name}");
        assert_eq!(pool.answered(), count(&Connection::is_counted), "processes of {name}");
        let is_idle = |one: &Connection| one.phase().request_id().is_none();
        assert_eq!(pool.idle(), count(&is_idle), "idle connections of {name}");
        for id in pool.idle_connections() {
            assert!(self.connections.get(*id).is_some_and(is_idle), "{id:?} of {name} is in use");
        }
    }
}
