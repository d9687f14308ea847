//! What holds of chunks and of what is lent, whatever a peer says; and what the kernel refuses to a peer.

use std::os::fd::{AsFd as _, AsRawFd as _};

use baton_pool::{CHUNK_BYTES, Chunk, ChunkPool, View, Writable};
use proptest::prelude::*;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MprotectFlags};

#[derive(Clone, Debug)]
enum Step {
    Take(u8),
    Split(usize, usize),
    Drop(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<u8>().prop_map(Step::Take),
        (any::<usize>(), 0..=CHUNK_BYTES).prop_map(|(which, at)| Step::Split(which, at)),
        any::<usize>().prop_map(Step::Drop),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Goal: no two parts share a byte, and a chunk comes back with its last part. Method: each part is filled with a
    /// mark of its own; a peer's view must show all marks.
    #[test]
    fn parts_are_disjoint_and_chunks_come_back(steps in proptest::collection::vec(step(), 0..60)) {
        let pool = ChunkPool::create(3).unwrap();
        let view = View::of_pool(&pool, pool.len()).unwrap();
        let mut parts: Vec<(Chunk, u8)> = Vec::new();
        for step in steps {
            match step {
                Step::Take(mark) => {
                    let held: std::collections::BTreeSet<_> = parts.iter().map(|(part, _)| part.offset() / CHUNK_BYTES).collect();
                    match pool.take() {
                        Some(mut part) => {
                            prop_assert!(!held.contains(&(part.offset() / CHUNK_BYTES)));
                            part.fill(mark);
                            parts.push((part, mark));
                        }
                        None => prop_assert_eq!(held.len(), 3),
                    }
                }
                Step::Split(which, at) if !parts.is_empty() => {
                    let index = which % parts.len();
                    let (part, mark) = &mut parts[index];
                    let mark = mark.wrapping_add(1);
                    let mut rest = part.split_off(at.min(part.len()));
                    rest.fill(mark);
                    // A part of no bytes lies where the next chunk begins.
                    if !rest.is_empty() {
                        parts.push((rest, mark));
                    }
                    if parts[index].0.is_empty() {
                        parts.swap_remove(index);
                    }
                }
                Step::Drop(which) if !parts.is_empty() => {
                    parts.swap_remove(which % parts.len());
                }
                _ => {}
            }
            for (part, mark) in &parts {
                prop_assert!(part.iter().all(|byte| byte == mark));
                prop_assert!(view.bytes(part.offset()..part.offset() + part.len()) == &**part);
            }
        }
        drop(parts);
        let all: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
        prop_assert_eq!(all.len(), 3);
    }
}

/// Goal: of a file only what nothing can take away or change is mapped.
#[test]
fn a_view_of_a_file_needs_seals() {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("file", flags).unwrap();
    rustix::fs::ftruncate(&file, 8192).unwrap();
    for seal in [SealFlags::SHRINK, SealFlags::WRITE] {
        assert_eq!(View::of_sealed_file(&file, 4096, 4096).unwrap_err(), Errno::INVAL);
        rustix::fs::fcntl_add_seals(&file, seal).unwrap();
    }
    assert_eq!(View::of_sealed_file(&file, 4096, 4096).unwrap().bytes(0..4096), [0; 4096]);
    for (offset, bytes) in [(4096, 4097), (8192, 1), (4096, 0), (1, 1), (u64::MAX, 2)] {
        assert_eq!(
            View::of_sealed_file(&file, offset, bytes).unwrap_err(),
            Errno::INVAL,
            "{offset}, {bytes}"
        );
    }
    let program = std::fs::File::open("/proc/self/exe").unwrap();
    assert_eq!(View::of_sealed_file(&program, 0, 4096).unwrap_err(), Errno::INVAL);
}

/// Goal: the kernel refuses every way to write to a pool, or to change its size, to a peer that has its descriptor.
#[test]
fn a_peer_can_neither_write_nor_resize() {
    let pool = ChunkPool::create(1).unwrap();
    let mut chunk = pool.take().unwrap();
    chunk.fill(7);
    let theirs = pool.as_fd().try_clone_to_owned().unwrap();
    assert_eq!(Writable::map(&theirs, pool.len()).unwrap_err(), Errno::PERM);
    assert_eq!(rustix::io::pwrite(&theirs, b"x", 0), Err(Errno::PERM));
    assert_eq!(rustix::fs::ftruncate(&theirs, 0), Err(Errno::PERM));
    assert_eq!(rustix::fs::ftruncate(&theirs, 1 << 30), Err(Errno::PERM));
    let punch = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    assert_eq!(rustix::fs::fallocate(&theirs, punch, 0, 4096), Err(Errno::PERM));
    // Opened anew it cannot be written either.
    let name = format!("/proc/self/fd/{}", theirs.as_raw_fd());
    let again = std::fs::OpenOptions::new().read(true).write(true).open(name).unwrap();
    assert_eq!(rustix::io::pwrite(&again, b"x", 0), Err(Errno::PERM));
    assert_eq!(Writable::map(&again, pool.len()).unwrap_err(), Errno::PERM);
    // Nor is what it has mapped made writable, or thrown away.
    let view = View::of_pool(&theirs, pool.len()).unwrap();
    let mapped = view.bytes(0..pool.len()).as_ptr().cast_mut().cast();
    // SAFETY: the kernel refuses; otherwise the test fails, and nothing is written.
    let made_writable = unsafe { rustix::mm::mprotect(mapped, pool.len(), MprotectFlags::WRITE) };
    assert_eq!(made_writable, Err(Errno::ACCESS));
    // SAFETY: as above.
    let removed = unsafe { rustix::mm::madvise(mapped, pool.len(), Advice::LinuxRemove) };
    assert_eq!(removed, Err(Errno::ACCESS));
    assert!(chunk.iter().all(|byte| *byte == 7));
}

/// Goal: a file that may shrink under its reader is refused as a pool.
#[test]
fn a_pool_that_may_shrink_is_refused() {
    let file = rustix::fs::memfd_create("loose", MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&file, 4096).unwrap();
    assert_eq!(View::of_pool(&file, 4096).unwrap_err(), Errno::INVAL);
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
    assert_eq!(View::of_pool(&file, 4097).unwrap_err(), Errno::INVAL);
    assert_eq!(View::of_pool(&file, 4096).unwrap().len(), 4096);
}
