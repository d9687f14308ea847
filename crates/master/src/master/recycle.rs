//! New workers in the place of old ones, while clients are served: a process that has run for months starts afresh.
//!
//! The next worker of a slot serves before the old one is told to leave, so that none of its sockets is without an accepting
//! process. The old one gives its clients to the others, the next one among them.

use std::os::fd::AsFd;
use std::time::Instant;

use serde_json::json;

use super::Master;
use crate::control::Answer;
use crate::phase::Phase;
use crate::upgrade::LINGER;

impl Master {
    /// Replaces all workers that serve.
    pub(super) fn recycle(&mut self, now: Instant) -> Answer {
        if self.phase != Phase::Serving {
            return Answer::error("the server does not serve");
        }
        if self.reloads.is_under_way() {
            return Answer::error("a reload is under way");
        }
        if self.upgrade.successor().is_some() {
            return Answer::error("another server takes the place of this one: its workers are new");
        }
        if self.workers.are_being_replaced() {
            return Answer::error("the workers are being replaced already");
        }
        let workers = self.workers.replace(now);
        self.update_failover();
        Answer::Ok(json!({ "replaced": workers }))
    }

    /// A worker serves: the one that it replaces leaves, if there is one.
    pub(super) fn release_replaced(&mut self, index: usize, now: Instant) {
        let (order, until) = self.drain_order(LINGER, now);
        let way = self.siblings.as_ref().map(|siblings| siblings.way.as_fd());
        self.workers.release(index, &order, &Vec::from_iter(way), until);
    }
}
