//! Memory that another process writes to.
//!
//! Such memory can change at any instant, and Rust assumes that the bytes behind a `&[u8]` do not, so this module
//! never hands out references. It copies bytes out, or gives their address to the kernel.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use rustix::fs::SealFlags;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::mapping::{Mapping, memory_file, seal};

/// A memory file, mapped read-only, that one other process may write to.
#[derive(Debug)]
pub struct Region(Mapping);

impl Region {
    /// A new region of `bytes` bytes, all zero, and the descriptor by which another process maps it.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`, and `EINVAL` if `bytes` is zero.
    pub fn create(bytes: usize) -> Result<(Self, OwnedFd), Errno> {
        let file = memory_file("baton-region", bytes)?;
        seal(&file, SealFlags::empty())?;
        let memory = Mapping::new(&file, bytes, ProtFlags::READ, MapFlags::SHARED)?;
        Ok((Self(memory), file))
    }

    /// Its size in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Always false: a region has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// Appends a copy of the bytes `offset..offset + len` as they are now.
    ///
    /// # Panics
    /// If they exceed the region.
    pub fn copy_to(&self, offset: usize, len: usize, out: &mut Vec<u8>) {
        let start = self.address(offset, len);
        out.reserve(len);
        let target = out.spare_capacity_mut().as_mut_ptr().cast::<u8>();
        let before = start.align_offset(WORD_BYTES).min(len);
        let behind = before + (len - before) / WORD_BYTES * WORD_BYTES;
        let copy_byte = |at: usize| {
            // SAFETY: `at` is below `len`: inside the mapping, as `address` found, and inside the memory reserved.
            unsafe { target.add(at).write((*start.add(at).cast::<AtomicU8>()).load(Ordering::Relaxed)) };
        };
        (0..before).for_each(copy_byte);
        for at in (before..behind).step_by(WORD_BYTES) {
            // SAFETY: as above; the source is aligned, since the first of its words is.
            unsafe {
                let word = (*start.add(at).cast::<AtomicU64>()).load(Ordering::Relaxed);
                target.add(at).cast::<u64>().write_unaligned(word);
            }
        }
        (behind..len).for_each(copy_byte);
        // SAFETY: each of the `len` bytes has been written, by one of the three loops.
        unsafe { out.set_len(out.len() + len) };
    }

    /// Where the bytes `offset..offset + len` are, for the kernel.
    ///
    /// # Panics
    /// If they exceed the region.
    pub fn address(&self, offset: usize, len: usize) -> *const u8 {
        self.0.address(offset, len)
    }
}

const WORD_BYTES: usize = size_of::<u64>();

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: copies read and write no byte beside their range, however it lies to the words of the region. Method: Miri
    /// (`make miri`) judges each access; it has no memory that processes share, so this region is private.
    #[test]
    fn copies_keep_to_their_range() {
        let memory = Mapping::private(PAGE);
        let bytes: Vec<u8> = (0..PAGE).map(|at| at as u8).collect();
        // SAFETY: the mapping has so many bytes, and nothing else refers to it yet.
        unsafe { memory.address(0, PAGE).copy_from_nonoverlapping(bytes.as_ptr(), PAGE) };
        let region = Region(memory);
        for offset in (0..9).chain(PAGE - 9..=PAGE) {
            for len in [0, 1, 7, 8, 9, 18].into_iter().filter(|len| offset + len <= PAGE) {
                let mut copy = b"before".to_vec();
                region.copy_to(offset, len, &mut copy);
                assert_eq!(copy, [&b"before"[..], &bytes[offset..offset + len]].concat());
            }
        }
    }

    const PAGE: usize = 4096;
}
