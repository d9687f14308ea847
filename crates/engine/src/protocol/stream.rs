//! How requests are told apart within a connection.

/// Names a request within its connection, in the order in which the protocol has taken them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamId(pub(super) u64);
