//! How many heaps threads use: in a process of its own, since a heap that is there stays.
#![cfg(target_env = "gnu")]

use std::collections::HashSet;
use std::sync::Barrier;

const THREADS: usize = 12;

/// Goal: threads do not get a heap each. Method: heaps lie at multiples of 64 MiB, where the addresses of what threads
/// allocate at the same time tell them apart.
#[test]
fn threads_share_heaps() {
    baton_sys::memory::share_heaps();
    let all_have = Barrier::new(THREADS);
    let heaps: HashSet<usize> = std::thread::scope(|scope| {
        let allocate = || {
            let buffer = vec![1_u8; 1000];
            all_have.wait();
            buffer.as_ptr() as usize >> 26
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(allocate)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(heaps.len() <= 3, "{} heaps: one of the test besides", heaps.len());
}
