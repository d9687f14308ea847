//! Memory that the allocator holds.

/// Gives memory that has been freed back to the system, wherever it lies.
///
/// The allocator of glibc keeps what was freed below something that is still in use: a cache of many small buffers that
/// shrinks by nine tenths leaves nearly all of its memory with the process. This looks through all of its arenas and
/// gives back whole pages. It takes some milliseconds per 100 MB, during which nobody allocates; so it is for the rare
/// occasion on which much has been freed and will not be needed soon. Other allocators are left to themselves.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim takes the allocator's own locks and touches nothing but free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    fn resident_bytes() -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
        pages * rustix::param::page_size()
    }

    /// Buffers are freed of which every hundredth stays, the last among them, so that no end of the heap is free.
    #[test]
    fn what_was_freed_between_things_in_use_goes_back() {
        const BUFFER_BYTES: usize = 8 << 10;
        const BUFFERS: usize = 8_001;
        let buffers: Vec<Vec<u8>> = (0..BUFFERS).map(|_| vec![1; BUFFER_BYTES]).collect();
        let kept: Vec<Vec<u8>> = buffers
            .into_iter()
            .enumerate()
            .filter(|(index, _)| index % 100 == 0)
            .map(|(_, buffer)| buffer)
            .collect();
        let before = resident_bytes();
        give_back();
        let returned = before.saturating_sub(resident_bytes());
        assert!(
            returned > BUFFERS * BUFFER_BYTES / 2,
            "{returned} bytes returned, {} buffers kept",
            kept.len()
        );
    }
}
