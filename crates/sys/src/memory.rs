//! Memory that the allocator holds.

/// Returns freed memory to the system, also from the middle of the heap.
///
/// glibc's allocator keeps memory that was freed below memory in use: a cache of many small buffers that shrinks by
/// nine tenths leaves nearly all of its memory with the process. This call scans all arenas and returns whole pages.
/// It takes some milliseconds per 100 MB, during which no thread can allocate, so use it only when much has been
/// freed and will not be needed soon. No effect with other allocators.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim takes the allocator's own locks and touches nothing but free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Has all threads that start from now on allocate from two heaps, not from one each.
///
/// glibc gives each thread a heap of its own, up to eight per CPU. Helpers that each allocate a little that stays, among much
/// that does not, spread it over as many heaps, none of which can shrink: a process with 16 of them was 5 MB larger. For
/// threads that allocate seldom; others would wait for each other. No effect with other allocators.
pub fn share_heaps() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt sets a number under the allocator's lock.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
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

    /// Frees all but every hundredth buffer and the last one, so that the end of the heap is in use.
    #[test]
    fn memory_freed_between_used_buffers_goes_back() {
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
