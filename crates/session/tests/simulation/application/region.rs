//! The region that an application shares with the server: written as a ring, without a mapping.

use std::os::fd::OwnedFd;

use baton_fcgi::RegionSlice;
use baton_fcgi::offer::Ring;

use crate::choices::Choices;

#[derive(Debug)]
pub(super) struct Region {
    file: OwnedFd,
    size: usize,
    /// Where the next byte goes.
    at: usize,
    /// Bytes from there that may be written.
    free: usize,
}

impl Region {
    pub(super) fn new(file: OwnedFd) -> Self {
        Self { file, size: 0, at: 0, free: 0 }
    }

    /// A request offers the region.
    pub(super) fn handle_offer(&mut self, ring: Ring) {
        (self.size, self.at, self.free) = (ring.size as usize, ring.at as usize, ring.free as usize);
    }

    /// The server needs so many bytes no longer.
    pub(super) fn handle_freed(&mut self, bytes: u32) {
        self.free += bytes as usize;
        assert!(self.free <= self.size, "{} of {} bytes may be written", self.free, self.size);
    }

    /// Writes a part of the bytes, as much as there is room for at most; removes it from them.
    pub(super) fn write(&mut self, bytes: &mut Vec<u8>, choices: &mut Choices) -> Option<RegionSlice> {
        let room = bytes.len().min(self.free).min(self.size - self.at);
        if room == 0 {
            return None;
        }
        let len = choices.size(room);
        let written = rustix::io::pwrite(&self.file, &bytes[..len], self.at as u64);
        assert_eq!(written, Ok(len), "a memory file takes what is within it");
        bytes.drain(..len);
        let slice = RegionSlice { offset: self.at as u32, len: len as u32 };
        (self.at, self.free) = ((self.at + len) % self.size, self.free - len);
        Some(slice)
    }

    /// A slice that the application may not announce.
    pub(super) fn forbidden(&self, choices: &mut Choices) -> RegionSlice {
        let (at, free) = (self.at as u32, self.free as u32);
        choices.one(&[
            // More than is free, or beyond the end.
            RegionSlice { offset: at, len: free + 1 },
            // Not where the last one ended.
            RegionSlice { offset: at + 1, len: 1 },
            RegionSlice { offset: self.size as u32, len: 1 },
            RegionSlice { offset: u32::MAX, len: u32::MAX },
        ])
    }
}
