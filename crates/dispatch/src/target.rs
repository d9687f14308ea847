//! A policy's view of a request.

/// The target of a request, as a policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Which target: [`crate::target_hash`] of the URL path, computed once by the caller.
    pub hash: u64,
    /// Expected size of the answer, in bytes, if known in advance.
    pub bytes_hint: Option<u64>,
    /// Whether an application generates the answer, so that caching does not help.
    pub dynamic: bool,
}

impl Target {
    /// A static target of unknown size.
    pub const fn new(hash: u64) -> Self {
        Self { hash, bytes_hint: None, dynamic: false }
    }
}
