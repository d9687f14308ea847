//! What a policy may know of a request.

/// The target of a request: what is asked for, as far as a policy looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Which target: [`crate::target_hash`] of the URL path, computed once by the caller.
    pub hash: u64,
    /// How large the answer is expected to be, in bytes, where that is known before it is made.
    pub bytes_hint: Option<u64>,
    /// Whether an application makes the answer, so that no cached file helps with it.
    pub dynamic: bool,
}

impl Target {
    /// A static target of unknown size.
    pub const fn new(hash: u64) -> Self {
        Self { hash, bytes_hint: None, dynamic: false }
    }
}
