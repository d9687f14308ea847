//! The algebra of aggregates: any splits, joins and advances give the same bytes as on a `Vec<u8>`.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use baton_buf::{Aggregate, Buffer, FileSlice, Loan, OpenFile, Piece, Pool, SharedSlice};
use baton_pool::Region;
use proptest::prelude::*;

/// The bytes of an aggregate, files read.
fn flatten(aggregate: &Aggregate) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in aggregate.pieces() {
        match piece {
            Piece::Memory(slice) => bytes.extend_from_slice(slice),
            Piece::Shared(slice) => slice.copy_prefix_to(slice.len(), &mut bytes),
            Piece::Piped(_) => panic!("nothing is piped here"),
            Piece::File(slice) => {
                let file = File::from(slice.file().as_fd().try_clone_to_owned().unwrap());
                let mut part = vec![0; slice.len() as usize];
                file.read_exact_at(&mut part, slice.offset()).unwrap();
                bytes.extend(part);
            }
        }
    }
    assert_eq!(bytes.len() as u64, aggregate.len());
    bytes
}

fn file_of(bytes: &[u8]) -> Arc<OpenFile> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Arc::new(OwnedFd::from(file).into())
}

/// What another process wrote to a region, from `start` on.
fn shared(bytes: &[u8], start: usize) -> SharedSlice {
    let (region, file) = Region::create(4096).unwrap();
    File::from(file).write_all_at(bytes, 0).unwrap();
    Loan::new(Arc::new(region), start, bytes.len() - start).slice()
}

/// An aggregate of the given pieces, alternating between memory, files and regions, and its bytes. Miri has no regions.
fn build(pieces: &[Vec<u8>]) -> (Aggregate, Vec<u8>) {
    let mut aggregate = Aggregate::new();
    for (index, bytes) in pieces.iter().enumerate() {
        let padded = [b"pad".as_slice(), bytes].concat();
        match index % 3 {
            0 => aggregate.push(Buffer::new(bytes.clone())),
            1 => aggregate.push(FileSlice::new(file_of(&padded), 3, bytes.len() as u64)),
            _ if cfg!(miri) => aggregate.push(Buffer::new(bytes.clone())),
            _ => aggregate.push(shared(&padded, 3)),
        }
    }
    (aggregate, pieces.concat())
}

fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..6)
}

proptest! {
    // Miri is a thousand times slower.
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 64 }))]

    #[test]
    fn split_then_append_is_identity(pieces in pieces(), at in 0_u64..260) {
        let (mut aggregate, bytes) = build(&pieces);
        let rest = aggregate.split_off(at);
        let cut = (at as usize).min(bytes.len());
        prop_assert_eq!(flatten(&aggregate), &bytes[..cut]);
        prop_assert_eq!(flatten(&rest), &bytes[cut..]);
        aggregate.append(rest);
        prop_assert_eq!(flatten(&aggregate), bytes);
    }

    #[test]
    fn taking_from_the_front_is_splitting(pieces in pieces(), most in 1_u64..40) {
        let (mut aggregate, bytes) = build(&pieces);
        let mut taken = Aggregate::new();
        while let Some(piece) = aggregate.take_front(most) {
            prop_assert!(!piece.is_empty() && piece.len() <= most);
            taken.push(piece);
            prop_assert_eq!(aggregate.len() + taken.len(), bytes.len() as u64);
        }
        prop_assert_eq!(flatten(&taken), bytes);
    }

    #[test]
    fn advance_drops_a_prefix(pieces in pieces(), by in 0_usize..260) {
        let (mut aggregate, bytes) = build(&pieces);
        let by = by.min(bytes.len());
        aggregate.advance(by as u64);
        prop_assert_eq!(flatten(&aggregate), &bytes[by..]);
    }

    #[test]
    fn prepend_puts_bytes_first(pieces in pieces(), head in proptest::collection::vec(any::<u8>(), 0..40)) {
        let (mut aggregate, bytes) = build(&pieces);
        aggregate.prepend(Buffer::new(head.clone()));
        prop_assert_eq!(flatten(&aggregate), [head, bytes].concat());
    }
}

/// A buffer may be changed in place only while it has one owner.
#[test]
fn in_place_change_needs_one_owner() {
    let mut buffer = Buffer::new(b"Date: then".to_vec());
    buffer.get_mut().expect("one owner")[6..].copy_from_slice(b"now!");
    let shared = buffer.clone();
    assert!(buffer.get_mut().is_none());
    drop(shared);
    assert!(buffer.get_mut().is_some());
    assert_eq!(&*buffer, b"Date: now!");
}

/// A pool reuses memory, but never memory that is still referenced.
#[test]
fn pool_recycles_only_unreferenced_memory() {
    let mut pool = Pool::new(4, 1024);
    let mut first = pool.take();
    first.extend_from_slice(b"first");
    let address = first.as_ptr();
    let first = pool.freeze(first);

    let mut second = pool.take();
    second.extend_from_slice(b"second");
    assert_ne!(second.as_ptr(), address, "the first buffer is still referred to");
    assert_eq!(&*first, b"first");

    drop(first);
    let again = pool.take();
    assert_eq!(again.as_ptr(), address, "the first buffer's memory comes back");
    assert!(again.is_empty());
}
