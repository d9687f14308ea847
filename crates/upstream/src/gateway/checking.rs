//! Checks peers by requests of our own, over the pools that clients' requests use. Each check is made by one of the loops of
//! all processes, whichever is first when it is due.

use std::sync::Arc;

use baton_buf::Aggregate;
use baton_http::origin::RequestKind;

use super::Gateway;
use crate::exchange::ExchangeState;
use crate::loop_checks::Check;
use crate::peers::{Cause, Peers};
use crate::{FailureReason, Request, RequestId, ResponseEvent};

/// What came of a check.
#[derive(Debug)]
enum Answer {
    /// Why it speaks against the peer, if it does.
    Verdict(Option<Cause>),
    /// Our own bounds kept it from the peer.
    Nothing,
}

impl Gateway {
    /// Whether a request is a check, of which the caller knows nothing: no client has this number.
    pub(super) fn is_check(request_id: RequestId) -> bool {
        request_id.number() as u32 == u32::MAX
    }

    /// Checks these peers from now on, if they are to be checked, as long as some plan has them.
    pub fn watch(&mut self, peers: &Arc<Peers>) {
        if peers.check().is_some() {
            self.checks.watch(peers);
        }
    }

    /// Takes the answers to checks, and makes those that are due.
    pub(super) fn handle_checks(&mut self, now_ms: u64) {
        if self.checks.due_ms() == u64::MAX {
            return;
        }
        for check in std::mem::take(&mut self.checks.under_way) {
            match self.answer_to(&check, now_ms) {
                Some(Answer::Verdict(failed)) => {
                    self.checks.due_ms = now_ms;
                    self.peer_events.push(check.peers.handle_check(check.peer, failed, now_ms));
                }
                Some(Answer::Nothing) => {}
                None => self.checks.under_way.push(check),
            }
        }
        if now_ms >= self.checks.due_ms {
            self.begin_checks(now_ms);
        }
    }

    fn begin_checks(&mut self, now_ms: u64) {
        let mut due_ms = u64::MAX;
        for known in std::mem::take(&mut self.checks.watched) {
            let Some(peers) = known.upgrade() else { continue };
            while let Some(peer) = peers.take_due_check(now_ms) {
                self.begin_check(&peers, peer, now_ms);
            }
            due_ms = due_ms.min(peers.next_check_ms());
            self.checks.watched.push(known);
        }
        let ends = self.checks.under_way.iter().map(|check| check.until_ms);
        self.checks.due_ms = ends.min().map_or(due_ms, |end_ms| due_ms.min(end_ms));
    }

    fn begin_check(&mut self, peers: &Arc<Peers>, peer: usize, now_ms: u64) {
        let Some(settings) = peers.check() else { return };
        self.checks.number = self.checks.number.wrapping_add(1);
        let request_id = RequestId::new(u64::from(self.checks.number) << 32 | u64::from(u32::MAX));
        let until_ms = now_ms.saturating_add(settings.timeout_ms);
        let request = Request {
            application: Arc::clone(peers.application(peer)),
            peers: None,
            turn: None,
            text: peers.check_text(peer).to_vec(),
            asked: RequestKind::Usual,
            body: Aggregate::default(),
            rest: None,
            idempotent: true,
            pass: None,
            takes_pipes: false,
            ends: None,
            client: None,
        };
        self.begin(request_id, request, now_ms);
        self.checks.under_way.push(Check { request_id, peers: Arc::clone(peers), peer, until_ms });
    }

    /// The answer to a check, if there is one by now.
    fn answer_to(&mut self, check: &Check, now_ms: u64) -> Option<Answer> {
        while let Some(event) = self.take(check.request_id) {
            let failed = match event {
                ResponseEvent::Head(head, _) | ResponseEvent::Switch(head) => {
                    let status = head.status().code();
                    let is_well = check.peers.check().is_some_and(|settings| settings.accepts(status));
                    (!is_well).then_some(Cause::Status(status))
                }
                ResponseEvent::Failed(failure) if !failure.why.is_fault_of_peer() => {
                    return Some(Answer::Nothing);
                }
                ResponseEvent::Failed(failure) => Some(Cause::Failure(failure.why)),
                _ => continue,
            };
            // The body says nothing more. If it has come already, its connection is kept.
            self.abandon(check.request_id, now_ms);
            return Some(Answer::Verdict(failed));
        }
        if now_ms < check.until_ms {
            return None;
        }
        let was_sent =
            self.exchanges.get(check.request_id).is_some_and(|one| one.state != ExchangeState::Queued);
        self.abandon(check.request_id, now_ms);
        Some(match was_sent {
            true => Answer::Verdict(Some(Cause::Failure(FailureReason::HeadTimedOut))),
            false => Answer::Nothing,
        })
    }
}
