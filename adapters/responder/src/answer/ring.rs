//! Output through the shared region (`docs/handover-protocol.md`, section 5): the next position, and announcements.

use std::os::fd::OwnedFd;

use baton_fcgi::RegionSlice;
use baton_pool::Writable;

/// Output of this size is announced even if more follows, so that the server can send it meanwhile. A quarter of the
/// region, so that the application has room to continue until the server frees it.
const ANNOUNCED_BYTES_MIN: usize = 64 << 10;

/// The region of a connection and the turn of a request in it.
#[derive(Debug, Default)]
pub(super) struct Ring {
    region: Option<Writable>,
    /// The position of the next byte.
    at: usize,
    /// Bytes that may be written from there on, around the end if need be.
    free: usize,
    /// Bytes after `at` that are written but not announced.
    unannounced: usize,
}

impl Ring {
    /// A request begins that may use the region. Returns false if it cannot be used.
    pub(super) fn begin(&mut self, file: Option<OwnedFd>, bytes: usize, at: usize, free: usize) -> bool {
        if let Some(file) = file {
            self.region = Writable::map(file, bytes).ok();
        }
        (self.at, self.free, self.unannounced) = (at, free, 0);
        self.region.as_ref().is_some_and(|region| region.len() == bytes && at < bytes && free <= bytes)
    }

    /// Memory for output: empty if some must be announced or freed first.
    pub(super) fn space(&mut self) -> &mut [u8] {
        let threshold = self.threshold();
        let Some(region) = &mut self.region else { return &mut [] };
        let bytes = self.free.min(region.len() - self.at).min(threshold.saturating_sub(self.unannounced));
        region.window(self.at..self.at + bytes)
    }

    /// So many bytes of [`space`](Self::space) have been written.
    pub(super) fn commit(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.free);
        self.at += bytes;
        if self.at == self.bytes() {
            self.at = 0;
        }
        self.free -= bytes;
        self.unannounced += bytes;
    }

    /// Bytes that may be written without waiting for the server.
    pub(super) fn free(&self) -> usize {
        self.free
    }

    /// Bytes that have been written and not been announced.
    pub(super) fn unannounced(&self) -> usize {
        self.unannounced
    }

    /// The server has sent so many bytes.
    pub(super) fn freed(&mut self, bytes: u32) {
        let most = self.bytes() - self.unannounced;
        self.free = self.free.saturating_add(bytes as usize).min(most);
    }

    /// Whether there is enough output to announce although more follows.
    pub(super) fn has_much_to_announce(&self) -> bool {
        self.unannounced >= self.threshold()
    }

    /// The output since the last announcement, in order.
    pub(super) fn announce(&mut self) -> impl Iterator<Item = RegionSlice> + use<> {
        let bytes = self.bytes();
        let len = std::mem::take(&mut self.unannounced);
        // The last output may have wrapped around the end of the region.
        let before_start = len.min(self.at);
        let before_end = len - before_start;
        [(bytes - before_end, before_end), (self.at - before_start, before_start)]
            .into_iter()
            .filter(|&(_, len)| len > 0)
            .map(|(offset, len)| RegionSlice { offset: narrow(offset), len: narrow(len) })
    }

    fn bytes(&self) -> usize {
        self.region.as_ref().map_or(0, Writable::len)
    }

    fn threshold(&self) -> usize {
        (self.bytes() / 4).max(ANNOUNCED_BYTES_MIN)
    }
}

/// No region is mapped whose offsets do not fit.
fn narrow(bytes: usize) -> u32 {
    debug_assert!(bytes <= u32::MAX as usize);
    bytes as u32
}
