//! When something is to be done about a request that the application is answering.

use super::Connection;
use super::phase::Deadlines;
use crate::codec::OfferedTransport;
use crate::passfd::LOOKS;

/// Changes of deadlines. [`Connections::update`](crate::connections::Connections::update) makes them, and keeps the earliest.
impl Connection {
    /// The request has been sent.
    pub(crate) fn start_deadlines(&mut self, offered: OfferedTransport, now_ms: u64) {
        let settings = self.application.settings();
        let head_until_ms = settings.head_timeout_ms.map_or(u64::MAX, |head_ms| now_ms + head_ms);
        let looks = if offered == OfferedTransport::PassFd { u64::from(LOOKS) } else { 1 };
        let until_ms = head_until_ms.min(now_ms + settings.timeout_ms.div_ceil(looks));
        self.set_deadlines(|deadlines| {
            *deadlines = Deadlines { until_ms, head_until_ms, grace_until_ms: u64::MAX };
        });
    }

    /// There was progress: restarts the application's timeout, or stops it while the gateway waits for the client.
    pub(crate) fn extend_deadline(&mut self, now_ms: u64) {
        let looks = if self.passed().is_some() { u64::from(LOOKS) } else { 1 };
        let (is_tunnel, awaits_client) = (self.is_tunnel(), self.awaits_client());
        let settings = self.application.settings();
        let tunnel_until_ms = now_ms + settings.tunnel_idle_timeout_ms;
        let moved_until_ms = now_ms + settings.timeout_ms.div_ceil(looks);
        self.set_deadlines(|deadlines| {
            deadlines.until_ms = if is_tunnel {
                tunnel_until_ms
            } else if awaits_client {
                u64::MAX
            } else if deadlines.awaits_head() {
                deadlines.head_until_ms
            } else {
                moved_until_ms
            };
        });
    }

    /// The client is the one to act: the application may wait as long as it takes.
    pub(crate) fn stop_deadline(&mut self) {
        self.set_deadlines(|deadlines| deadlines.until_ms = u64::MAX);
    }

    /// Some of the request's body was passed on: the head of the response may take its whole time from now on.
    pub(crate) fn restart_head_deadline(&mut self, now_ms: u64) {
        let head_ms = self.application.settings().head_timeout_ms;
        self.set_deadlines(|deadlines| {
            if deadlines.awaits_head() {
                deadlines.head_until_ms = head_ms.map_or(u64::MAX, |head_ms| now_ms + head_ms);
            }
        });
    }

    /// The head of the response has come.
    pub(crate) fn end_head_deadline(&mut self) {
        self.set_deadlines(|deadlines| deadlines.head_until_ms = u64::MAX);
    }

    /// The client has until then to take something, unless it has less time already.
    pub(crate) fn give_grace(&mut self, until_ms: u64) {
        self.set_deadlines(|deadlines| deadlines.grace_until_ms = deadlines.grace_until_ms.min(until_ms));
    }

    /// The client has taken something, or will not. Returns whether it had a grace period.
    pub(crate) fn end_grace(&mut self) -> bool {
        let mut had_one = false;
        self.set_deadlines(|deadlines| {
            had_one = std::mem::replace(&mut deadlines.grace_until_ms, u64::MAX) != u64::MAX;
        });
        had_one
    }

    /// Whether the client's grace period is over.
    pub(crate) fn is_grace_over(&self, now_ms: u64) -> bool {
        self.serving().is_some_and(|serving| serving.deadlines.grace_until_ms <= now_ms)
    }

    fn set_deadlines(&mut self, set: impl FnOnce(&mut Deadlines)) {
        if let Some(serving) = self.serving_mut() {
            set(&mut serving.deadlines);
        }
    }
}
