//! The failures of a peer within a window, and whether they are the peer's or a request's.
//!
//! A client chooses what it asks for, so a head that never comes may be one page's fault. Such failures count against the peer
//! if two clients have met them on two paths, and if they are at least half of what has come of its requests since the first
//! failure. A peer that cannot be reached is so for all clients.

use std::hash::{DefaultHasher, Hash, Hasher};

use baton_shares::ClientKey;

/// The client of a request and its path, as hashes that all processes of a server compute alike.
///
/// The hashes need no secret. Clients that share one count as one client, so that a client which seeks such an address only
/// makes its own failures count for less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    client: u64,
    path: u64,
}

/// What a failure is evidence of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Evidence {
    /// The peer cannot be reached, whatever is asked for.
    Unreachable,
    /// This request has failed. Others may not.
    Request(Asker),
}

/// What has come of a peer's requests since the first failure, as long as the window lasts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FailureWindow {
    since_ms: u64,
    unreachable: u32,
    /// Failures that a request may have caused.
    by_request: u32,
    /// Good answers.
    answers: u32,
    /// The first of these requests.
    client: u64,
    path: u64,
    /// Whether later ones came from another client, and were for another path.
    has_other_client: bool,
    has_other_path: bool,
}

impl Asker {
    /// `client`: `None` for one of a Unix socket. The query is left out: clients can make up any number of them.
    pub(crate) fn new(client: Option<ClientKey>, target: &[u8]) -> Self {
        let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
        Self { client: hash(client), path: hash(path) }
    }

    /// The client of this request, asking for another target.
    pub(crate) fn for_target(self, target: &[u8]) -> Self {
        Self { client: self.client, ..Self::new(None, target) }
    }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl FailureWindow {
    /// As the processes of a server share it.
    pub(super) fn from_words(
        [since_ms, unreachable, by_request, answers, client, path, others]: [u64; 7],
    ) -> Self {
        Self {
            since_ms,
            unreachable: unreachable as u32,
            by_request: by_request as u32,
            answers: answers as u32,
            client,
            path,
            has_other_client: others & OTHER_CLIENT != 0,
            has_other_path: others & OTHER_PATH != 0,
        }
    }

    /// The window, as words that the processes of a server share.
    pub(super) fn to_words(self) -> [u64; 7] {
        let others = if self.has_other_client { OTHER_CLIENT } else { 0 }
            | if self.has_other_path { OTHER_PATH } else { 0 };
        let [unreachable, by_request, answers] =
            [self.unreachable, self.by_request, self.answers].map(u64::from);
        [self.since_ms, unreachable, by_request, answers, self.client, self.path, others]
    }

    /// A failure, which opens a window if none is open.
    pub(super) fn note_failure(&mut self, evidence: Evidence, window_ms: u64, now_ms: u64) {
        if !self.is_open(window_ms, now_ms) {
            *self = Self { since_ms: now_ms, ..Self::default() };
        }
        match evidence {
            Evidence::Unreachable => self.unreachable = self.unreachable.saturating_add(1),
            Evidence::Request(Asker { client, path }) => {
                if self.by_request == 0 {
                    (self.client, self.path) = (client, path);
                }
                self.by_request = self.by_request.saturating_add(1);
                self.has_other_client |= client != self.client;
                self.has_other_path |= path != self.path;
            }
        }
    }

    /// A good answer. Returns when the window began that it counts in, if one is open.
    pub(super) fn note_answer(&mut self, window_ms: u64, now_ms: u64) -> Option<u64> {
        let is_open = self.is_open(window_ms, now_ms);
        self.answers = self.answers.saturating_add(u32::from(is_open));
        is_open.then_some(self.since_ms)
    }

    /// An answer that counts in the window of `since_ms` turns out to be broken.
    pub(super) fn take_back_answer(&mut self, since_ms: u64) {
        if since_ms == self.since_ms {
            self.answers = self.answers.saturating_sub(1);
        }
    }

    /// Whether the peer could not be reached so often.
    pub(super) fn is_unreachable(&self, failures: u32) -> bool {
        self.unreachable >= failures
    }

    /// Whether so many failures, of different clients and paths, make up at least half of what has come of the requests.
    pub(super) fn is_failing(&self, failures: u32) -> bool {
        let failed = self.unreachable.saturating_add(self.by_request);
        self.has_other_client && self.has_other_path && failed >= failures && failed >= self.answers
    }

    fn is_open(&self, window_ms: u64, now_ms: u64) -> bool {
        (self.unreachable > 0 || self.by_request > 0) && now_ms.saturating_sub(self.since_ms) < window_ms
    }
}

/// Bits of a word.
const OTHER_CLIENT: u64 = 1;
const OTHER_PATH: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_MS: u64 = 10_000;

    fn asker(client: &str, target: &str) -> Asker {
        Asker::new(Some(ClientKey::of(client.parse().unwrap())), target.as_bytes())
    }

    fn failing(askers: &[(&str, &str)], answers: usize) -> bool {
        let mut window = FailureWindow::default();
        for (client, target) in askers {
            window.note_failure(Evidence::Request(asker(client, target)), WINDOW_MS, 100);
        }
        (0..answers).for_each(|_| _ = window.note_answer(WINDOW_MS, 200));
        FailureWindow::from_words(window.to_words()).is_failing(3)
    }

    #[test]
    fn a_client_is_an_address_or_a_network() {
        assert_eq!(asker("192.0.2.1", "/a"), asker("::ffff:192.0.2.1", "/a?b"));
        assert_eq!(asker("2001:db8::1", "/a"), asker("2001:db8::ffff:2", "/a"));
        assert_ne!(asker("2001:db8::1", "/a"), asker("2001:db8:0:1::1", "/a"));
        assert_ne!(asker("192.0.2.1", "/a"), asker("192.0.2.2", "/a"));
        assert_eq!(asker("192.0.2.1", "/a").for_target(b"/b?c"), asker("192.0.2.1", "/b"));
        assert_ne!(Asker::new(None, b"/a"), asker("192.0.2.1", "/a"));
    }

    #[test]
    fn it_takes_two_clients_two_paths_and_half_of_the_answers() {
        let (one, other) = ("192.0.2.1", "192.0.2.2");
        for (askers, answers, is_failing) in [
            (&[(one, "/a"), (one, "/b"), (one, "/c"), (one, "/d")][..], 0, false),
            (&[(one, "/a"), (other, "/a"), (one, "/a?b")][..], 0, false),
            (&[(one, "/a"), (other, "/b")][..], 0, false),
            (&[(one, "/a"), (one, "/b"), (other, "/a")][..], 3, true),
            (&[(one, "/a"), (one, "/b"), (other, "/a")][..], 4, false),
        ] {
            assert_eq!(failing(askers, answers), is_failing, "{askers:?}, {answers} answers");
        }
    }

    #[test]
    fn a_window_begins_with_a_failure_and_ends() {
        let mut window = FailureWindow::default();
        assert_eq!(window.note_answer(WINDOW_MS, 50), None);
        window.note_failure(Evidence::Unreachable, WINDOW_MS, 100);
        assert_eq!(window.note_answer(WINDOW_MS, 10_099), Some(100));
        assert_eq!(window.note_answer(WINDOW_MS, 10_100), None);
        window.take_back_answer(99);
        assert_eq!(window.answers, 1, "it counts in another window");
        window.take_back_answer(100);
        assert_eq!(window.answers, 0);
        window.note_failure(Evidence::Unreachable, WINDOW_MS, 10_100);
        assert!(window.is_unreachable(1) && !window.is_unreachable(2), "those before are forgotten");
    }
}
