//! The laws of a session that waits for its client: it has nothing left to do, and does not wait for ever.

use baton_session::protocol::StreamId;

use super::Http2Client;
use super::inbound::NO_ERROR;
use super::state::Farewell;
use super::stream::Stream;
use crate::client::{InputWait, Leaving};
use crate::memory::Left;

impl Http2Client {
    /// The server has written all that it has. What it has read it has dealt with.
    pub(super) fn check_settled(&mut self, wait: &InputWait<'_>) {
        let &InputWait { who, deadline_ms, limits, .. } = wait;
        // The end of input stays where it is, while answers are completed.
        let is_told = !self.end.has_input() || self.end.has_readiness();
        assert!(is_told || self.left == Some(Leaving::HalfClose), "client {who}: there is input");
        let works = wait.has_job || wait.delegated.names().next().is_some();
        assert!(works || deadline_ms != u64::MAX, "client {who}: it waits for ever");
        let longest_ms = [
            limits.head_timeout_ms,
            limits.body_timeout_ms,
            limits.idle_timeout_ms,
            limits.send_timeout_ms,
            limits.linger_timeout_ms,
        ];
        let longest_ms = longest_ms.into_iter().max().unwrap_or(0);
        let is_bounded = works || deadline_ms <= wait.now_ms + longest_ms;
        assert!(is_bounded, "client {who}: {deadline_ms} is too late");
        // A client that is gone does not see what the server sends, or that it ends.
        let is_gone = matches!(self.left, Some(Leaving::Close | Leaving::Reset));
        if is_gone || !self.is_preface_read || self.has_failed() || self.end.server_left() != Left::Not {
            return;
        }
        assert!(self.has_heard, "client {who}: no SETTINGS");
        let has_farewell = self.farewell.is_some();
        let is_noticed =
            self.violation.is_none_or(|violation| !violation.is_read(self.bytes_read, has_farewell));
        assert!(is_noticed, "client {who}: {:?} has no consequence", self.violation);
        assert!(self.pings.iter().all(|ping| !ping.is_read), "client {who}: a PING is not answered");
        assert!(self.are_malformed_reset(), "client {who}: a malformed request has no consequence");
        let is_acknowledged = self.settings.iter().all(|sent| sent.read_behind.is_none());
        assert!(is_acknowledged, "client {who}: SETTINGS are not acknowledged");
        if !self.farewell.as_ref().is_some_and(Farewell::is_final) {
            self.highest_settled = self.highest_read;
        }
        self.silence(self.bytes_read);
        let is_all_read = self.outbox.len() == 0 && self.bytes_read == self.outbox.sent();
        let is_over = self.streams.values().all(Stream::is_over);
        let is_at_rest = is_all_read && is_over && !works && self.farewell.is_none() && !self.end.is_sealed();
        assert!(
            !is_at_rest || wait.is_idle,
            "client {who}: it waits for nothing, and something is kept for it"
        );
        for (&id, stream) in &self.streams {
            let is_delegated = wait.delegated.of_stream(StreamId::of(id.into())).is_some();
            if !stream.is_read || stream.is_over() || wait.has_job || is_delegated || self.is_ignored(id) {
                continue;
            }
            let request = &self.requests[stream.request];
            let rest = request.body().len() - stream.body_sent;
            assert!(rest == 0 || stream.credit > 0, "client {who}, {id}: no window for {rest} bytes");
            let is_stalled = stream.window <= 0 || self.window <= 0;
            let awaits_body = request.expected.is_applications && !stream.is_end_read;
            match stream.response {
                Some(_) => assert!(is_stalled, "client {who}, {id}: the rest of an answer does not come"),
                None => assert!(awaits_body, "client {who}, {id}: a request is there and not answered"),
            }
        }
    }

    /// The session has ended: by itself only if all that it took is answered.
    pub(super) fn check_unanswered(&self, who: usize, by_itself: bool) {
        if !by_itself || self.left.is_some() || !self.is_preface_read {
            return;
        }
        let farewell = self.farewell.as_ref().unwrap_or_else(|| panic!("client {who} was not told"));
        for (id, stream) in &self.streams {
            let is_taken = stream.is_read && *id <= farewell.last && farewell.code == NO_ERROR;
            assert!(!is_taken || stream.is_over(), "client {who}, {id}: it was taken, and not answered");
        }
    }
}
