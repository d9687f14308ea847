//! Where a cache takes chance and time from.

/// What a cache otherwise asks the kernel for. Simulations bring their own.
#[derive(Clone, Copy, Debug)]
pub struct Sources {
    /// With which URIs are hashed.
    pub secret: [u8; 16],
    /// How often the folder was opened, this time included.
    pub starts: u64,
    /// Tells the contents of this process from those of others in the same folder.
    pub process: u64,
    /// For the policies of the indexes.
    pub seed: u64,
    /// Seconds since 1970.
    pub unix_s: fn() -> u64,
}
