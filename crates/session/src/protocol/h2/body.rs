//! The body of a stream's request: what has arrived, and who wants it.

use baton_http::{BodyFraming, RequestHead};

/// The body of a request on a stream.
#[derive(Debug)]
pub(crate) struct StreamBody {
    pub(super) state: BodyState,
    /// What has arrived and is not wanted yet. The window bounds it.
    pub(crate) arrived: Vec<u8>,
    /// The client has sent all of it.
    pub(crate) is_complete: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyState {
    /// It is neither wanted nor unwanted yet. `declared`: its length in bytes, if the head says it. `awaited`: the client
    /// waits for `100 Continue`.
    Ahead { declared: Option<u64>, awaited: bool },
    /// An application gets it. So many bytes may still come.
    Wanted { left: u64 },
    /// An application was to get it, and its declared length is above the limit.
    TooLong,
    /// No answer depends on it.
    Unwanted,
    /// The session passes it on while it arrives.
    Lent(Left),
}

/// How much of a body is still to be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// So many bytes.
    Length(u64),
    /// What comes until the stream's end, at most so many bytes.
    UntilEnd(u64),
    /// What comes until the stream's end: another protocol's.
    Tunnel,
}

impl StreamBody {
    /// `None`: the head could not be read, and no body is wanted.
    ///
    /// A declared length of zero ends the body: some proxies (HAProxy 2.6) send the frame that would say so with the next
    /// thing that they have to send, or never.
    pub(crate) fn of(head: Option<&RequestHead<'_>>, ends: bool) -> Self {
        let ends = ends || head.is_some_and(|head| head.framing == BodyFraming::Length(0));
        let state = match head.filter(|_| !ends) {
            None => BodyState::Unwanted,
            Some(head) => {
                let declared = match head.framing {
                    BodyFraming::Length(length) => Some(length),
                    _ => None,
                };
                BodyState::Ahead { declared, awaited: head.expects_continue }
            }
        };
        Self { state, arrived: Vec::new(), is_complete: ends }
    }

    /// Whether an application gets it, and waits for it to be complete or long enough.
    pub(crate) fn is_wanted(&self) -> bool {
        matches!(self.state, BodyState::Wanted { .. } | BodyState::TooLong)
    }

    /// Whether its application waits for the client to send more of it.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_wanted() && !self.is_complete
    }

    /// Whether it is known to be longer than the limit before it has arrived.
    pub(crate) fn is_too_long(&self) -> bool {
        self.state == BodyState::TooLong
    }

    /// Whether what arrives is dropped.
    pub(crate) fn is_unwanted(&self) -> bool {
        self.state == BodyState::Unwanted
    }

    /// Whether more of it is to be passed on.
    pub(crate) fn is_lent(&self) -> bool {
        matches!(self.state, BodyState::Lent(left) if left != Left::Length(0))
    }

    /// Whether it is another protocol's.
    pub(crate) fn is_tunnel(&self) -> bool {
        self.state == BodyState::Lent(Left::Tunnel)
    }

    /// Counts bytes that are kept or passed on. `false`: they are more than there may be.
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        match &mut self.state {
            BodyState::Wanted { left } | BodyState::Lent(Left::UntilEnd(left)) => {
                left.checked_sub(bytes).map(|rest| *left = rest).is_some()
            }
            BodyState::Lent(Left::Length(left)) => {
                *left = left.saturating_sub(bytes);
                true
            }
            BodyState::TooLong => false,
            _ => true,
        }
    }

    /// The session passes on what is still to come.
    pub(crate) fn lend(&mut self) {
        if let BodyState::Wanted { left } = self.state {
            self.state = BodyState::Lent(Left::UntilEnd(left));
        }
    }

    /// So many bytes are to be passed on.
    pub(crate) fn lend_length(&mut self, bytes: u64) {
        debug_assert!(matches!(self.state, BodyState::Lent(_)), "a body that is not passed on");
        self.state = BodyState::Lent(Left::Length(bytes));
    }

    /// What comes from now on is another protocol's, and passed on.
    pub(crate) fn open_tunnel(&mut self) {
        self.state = BodyState::Lent(Left::Tunnel);
    }

    /// No answer depends on the rest. Returns what has arrived and was not used.
    pub(super) fn drop_rest(&mut self) -> Vec<u8> {
        self.state = BodyState::Unwanted;
        std::mem::take(&mut self.arrived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of a body went on while the application worked, and a slow application's client was told 408.
    #[test]
    fn nothing_is_awaited_behind_the_end() {
        let state = BodyState::Wanted { left: 10 };
        let mut body = StreamBody { state, arrived: Vec::new(), is_complete: false };
        assert!(body.is_awaited());
        body.is_complete = true;
        assert!(body.is_wanted() && !body.is_awaited());
    }
}
