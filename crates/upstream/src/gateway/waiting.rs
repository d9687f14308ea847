//! Lets requests wait for the cluster.

use super::Gateway;
use crate::cluster_queue::AGAIN_MS;
use crate::peers::TurnSought;
use crate::{FailureReason, RequestId};

impl Gateway {
    /// A request has to wait for the cluster.
    pub(super) fn wait_for_cluster(&mut self, request_id: RequestId, sought: TurnSought, now_ms: u64) {
        if !self.waiting.push(request_id, sought, now_ms) {
            self.fail(request_id, FailureReason::QueueFull, false);
        }
    }

    /// Lets requests go on that the cluster can take by now, and fails those that have waited for too long.
    pub(super) fn advance_waiting(&mut self, now_ms: u64) {
        if self.waiting.due_ms() == u64::MAX {
            return;
        }
        while let Some(request_id) = self.waiting.take_overdue(now_ms) {
            self.fail(request_id, FailureReason::QueueTimeout, false);
        }
        while let Some((request_id, turn)) = self.waiting.take_admitted(now_ms) {
            match turn {
                Some(turn) => self.go_to_node(request_id, turn, now_ms),
                None => self.fail(request_id, FailureReason::Drained, false),
            }
        }
        self.waiting.due_ms = now_ms + AGAIN_MS;
    }
}
