//! The files that clients ask for.

pub(super) const FILES: usize = 300;

pub(super) fn path_of(number: usize) -> String {
    format!("/{number}.html")
}

/// Between one and 64 KB.
pub(super) fn bytes_of(number: usize) -> u64 {
    (1 + (number as u64 * 37) % 64) << 10
}
