//! Wakeups: the processes that this loop shares with other loops have changed.

use rustix::event::epoll::{self, EventData, EventFlags};

use super::Gateway;
use super::assignment::is_unaccepted;
use crate::FailureReason;
use crate::connections::ConnectionId;
use crate::pool::Pool;

impl Gateway {
    /// Watches the waker of a pool, if its processes are in a table.
    pub(super) fn watch_waker(&self, index: usize) {
        let leases = self.pools.get(index).and_then(|pool| pool.leases.as_ref());
        if let Some(waker) = leases.and_then(|leases| leases.waker.as_ref()) {
            let data = EventData::new_u64(ConnectionId::for_waker(index).to_data());
            // Fails only out of memory. Then requests find free processes late, by their deadlines.
            let _ = epoll::add(&self.epoll, waker, data, EventFlags::IN | EventFlags::ET);
        }
    }

    /// Stops watching it.
    pub(super) fn unwatch_waker(&self, pool: &Pool) {
        if let Some(waker) = pool.leases.as_ref().and_then(|leases| leases.waker.as_ref()) {
            // Explicitly: other processes hold the descriptor, so closing it would not remove it.
            let _ = epoll::delete(&self.epoll, waker);
        }
    }

    /// The processes of an application have changed, or other loops wait for one.
    pub(super) fn handle_wakeup(&mut self, index: usize, now_ms: u64) {
        let Some(pool) = self.pools.get_mut(index) else { return };
        let mut unwanted = pool.idle_connections().to_vec();
        unwanted.retain(|id| {
            self.connections.get_mut(*id).is_some_and(|connection| pool.is_wanted_elsewhere(connection.lane))
        });
        unwanted.into_iter().for_each(|id| self.close(id));
        self.requeue_from_ended(index, now_ms);
        self.advance_queue(index, now_ms);
        if let Some(leases) = self.pools.get(index).and_then(|pool| pool.leases.as_ref()) {
            leases.call_for_more();
        }
    }

    /// Requeues requests stuck in the backlogs of dead processes. A child of such a process may hold its socket open and
    /// never accept.
    fn requeue_from_ended(&mut self, index: usize, now_ms: u64) {
        let Some(leases) = self.pools.get(index).and_then(|pool| pool.leases.as_ref()) else {
            return;
        };
        let its = self.connections.iter().filter(|(_, connection)| connection.pool == index);
        let ended = its.filter(|(_, connection)| leases.has_ended(connection.lane));
        for id in ended.map(|(id, _)| id).collect::<Vec<_>>() {
            if !is_unaccepted(&mut self.connections, id) {
                continue;
            }
            let Some(connection) = self.connections.get_mut(id) else { continue };
            let Some(request_id) = connection.serving().map(|serving| serving.request_id) else { continue };
            if self.exchanges.get(request_id).is_some_and(|exchange| !exchange.is_partly_gone) {
                self.close(id);
                self.put_back(request_id, index, now_ms);
            } else {
                self.fail_on_connection(id, request_id, FailureReason::Ended, now_ms);
            }
        }
    }
}
