//! How requests are told apart within a connection.

/// Names a request within its connection, in the order in which the protocol has taken them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamId(u64);

impl StreamId {
    /// The stream with this number.
    pub fn of(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.0
    }
}
