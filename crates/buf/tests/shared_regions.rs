//! Regions that another process writes to: sending, copying and ending loans.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use baton_buf::{Aggregate, Buffer, FileSlice, Loan, Sender, gather};
use baton_pool::Region;
use proptest::prelude::*;

/// A region, and the file by which the other process writes to it.
fn region(bytes: usize) -> (Arc<Region>, File) {
    let (region, descriptor) = Region::create(bytes).unwrap();
    (Arc::new(region), File::from(descriptor))
}

#[test]
fn a_region_can_neither_shrink_nor_grow() {
    let (region, file) = region(8192);
    assert!(file.set_len(4096).is_err());
    assert!(file.set_len(16384).is_err());
    assert!(file.write_at(b"x", 8192).is_err(), "writing beyond the end would grow the file");
    let mut bytes = Vec::new();
    region.copy_to(8190, 2, &mut bytes);
    assert_eq!(bytes, [0, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Copies of any range are exact.
    #[test]
    fn copies_are_exact(offset in 0_usize..40, len in 0_usize..100, before in 0_usize..20) {
        let (region, file) = region(4096);
        let bytes: Vec<u8> = (0..=255).collect();
        file.write_at(&bytes, 0).unwrap();
        let mut copy = vec![9; before];
        region.copy_to(offset, len, &mut copy);
        prop_assert_eq!(&copy[..before], &vec![9; before][..]);
        prop_assert_eq!(&copy[before..], &bytes[offset..offset + len]);
    }
}

/// Goal: slices of loans, memory and each other's neighbours leave in order with one call, up to the first range of a
/// file; parts of one loan among them.
#[test]
fn one_call_sends_all_that_is_in_memory() {
    let (region, file) = region(4096);
    file.write_at(b"shared bytes", 100).unwrap();
    let loan = Loan::new(region, 100, 12);
    let mut first = loan.slice();
    let second = first.split_off(6);
    let mut sender = Sender::default();
    sender.queue.push(Buffer::new(b"head ".to_vec()));
    sender.queue.push(first);
    sender.queue.push(Buffer::new(b" between".to_vec()));
    sender.queue.push(second);
    sender.queue.push(FileSlice::new(Arc::new(OwnedFd::from(file).into()), 0, 10));
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    sender.send_memory(&ours.as_fd(), false, &[]).unwrap();
    assert_eq!(sender.queue.len(), 10);
    let mut received = vec![0; sender.sent() as usize];
    theirs.read_exact(&mut received).unwrap();
    assert_eq!(received, b"head shared between bytes");
}

#[test]
fn more_pieces_and_loans_than_one_call_takes_are_cut() {
    let (region, file) = region(4096);
    file.write_at(b"abcdefghijklmnopqrstuvwxyz", 0).unwrap();
    let mut pieces = Aggregate::new();
    for at in 0..26 {
        pieces.push(Loan::new(Arc::clone(&region), at, 1).slice());
    }
    let spool = tempfile::tempfile().unwrap();
    let mut written = 0;
    while !pieces.is_empty() {
        let count = gather::write_at(&spool, pieces.pieces(), written).unwrap() as u64;
        assert!(count > 0);
        written += count;
        pieces.advance(count);
    }
    let mut bytes = [0; 26];
    spool.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"abcdefghijklmnopqrstuvwxyz");
}

/// Goal: a slow client keeps its bytes and loses its claim on the region. Method: the bytes are moved out, and then
/// overwritten by their owner.
#[test]
fn what_is_moved_out_stays_what_it_was() {
    let (region, file) = region(4096);
    file.write_at(b"old bytes", 0).unwrap();
    let mut loan = Loan::new(Arc::clone(&region), 0, 9);
    let mut slice = loan.slice();
    slice.advance(4);
    assert!(!loan.is_over(), "a slice refers to it");
    loan.move_out();
    assert!(loan.is_over());
    file.write_at(b"NEW BYTES", 0).unwrap();
    let mut copy = Vec::new();
    slice.copy_prefix_to(100, &mut copy);
    assert_eq!(copy, b"bytes");
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let mut sender = Sender::default();
    sender.queue.push(slice);
    sender.send_memory(&ours.as_fd(), false, &[]).unwrap();
    let mut received = [0; 5];
    theirs.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"bytes");
}

#[test]
fn a_loan_is_over_when_nothing_refers_to_it() {
    let (region, _file) = region(4096);
    let mut loan = Loan::new(region, 0, 10);
    let mut slice = loan.slice();
    let rest = slice.split_off(5);
    drop(slice);
    assert!(!loan.is_over());
    drop(rest);
    assert!(loan.is_over());
}
