//! A client gets the bytes of its block, whatever happens to the slot meanwhile.

use std::io::Read as _;
use std::net::{TcpListener, TcpStream};

use baton_buf::{FileSlice, Piece};
use baton_store::{Blocking, NotStored, Reuse, Store, StoreSettings};

use crate::common::*;

const LEN: usize = 64 << 10;

/// A store with room for one block, the block as a range of a file, and a client.
fn one_slot() -> (tempfile::TempDir, Store, FileSlice, (TcpStream, TcpStream)) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(StoreSettings { bytes_max: LEN as u64, ..settings(folder.path()) });
    put_object(&store, 1, 1);
    put_block(&store, &id(1, 1, 0), LEN);
    sync(&store).unwrap();
    let Some(Piece::File(slice)) = store.block(&id(1, 1, 0), Blocking::Allowed).unwrap() else {
        panic!("a block on the disk is a range of a file");
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (folder, store, slice, (client, listener.accept().unwrap().0))
}

fn send(slice: &FileSlice, socket: &TcpStream) {
    let mut offset = slice.offset();
    let end = offset + slice.len();
    while offset < end {
        let rest = (end - offset) as usize;
        rustix::fs::sendfile(socket, slice.file(), Some(&mut offset), rest).unwrap();
    }
}

/// The kernel sends files by reference: what a socket has taken is in the page cache until the client has it.
#[test]
fn a_slot_that_is_written_again_does_not_change_what_was_sent() {
    let (_folder, store, slice, (mut client, server)) = one_slot();
    send(&slice, &server);
    drop(slice);
    store.evict_block(&id(1, 1, 0));
    put_block(&store, &id(1, 1, 1), LEN);
    sync(&store).unwrap();
    assert_eq!(get(&store, &id(1, 1, 1)), Some(content(&id(1, 1, 1), LEN)), "the only slot has a new block");
    let mut received = vec![0; LEN];
    client.read_exact(&mut received).unwrap();
    assert!(received == content(&id(1, 1, 0), LEN), "the client got bytes of another block");
}

#[test]
fn a_slot_is_free_once_the_last_slice_of_it_is_dropped() {
    let (_folder, store, slice, (mut client, server)) = one_slot();
    store.evict_block(&id(1, 1, 0));
    let put = || store.put_block(&id(1, 1, 1), content(&id(1, 1, 1), LEN).into(), Reuse::Unlikely);
    assert_eq!(put(), Err(NotStored::DiskFull));
    let another = slice.clone();
    drop(slice);
    assert_eq!(put(), Err(NotStored::DiskFull));
    send(&another, &server);
    drop(another);
    assert_eq!(put(), Ok(()));
    sync(&store).unwrap();
    let mut received = vec![0; LEN];
    client.read_exact(&mut received).unwrap();
    assert!(received == content(&id(1, 1, 0), LEN));
}

/// The open file of a slot remembers what is in memory: those who ask for the same block share it.
#[test]
fn clients_of_a_block_share_its_open_file() {
    let (_folder, store, slice, _) = one_slot();
    let Some(Piece::File(again)) = store.block(&id(1, 1, 0), Blocking::Never).unwrap() else { panic!() };
    assert!(std::ptr::eq(slice.file(), again.file()));
}

/// What streamed by once makes room in memory. Beside the sources, on a disk: folders for temporary files may be in memory.
#[test]
fn blocks_that_are_unlikely_to_be_read_again_leave_the_memory() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let store =
        open(StoreSettings { bytes_max: 64 << 20, queue_bytes_max: 64 << 20, ..settings(folder.path()) });
    put_object(&store, 1, 1);
    for number in 0..400 {
        store.put_block(&id(1, 1, number), vec![1; LEN].into(), Reuse::Unlikely).unwrap();
    }
    sync(&store).unwrap();
    let is_in_core = |number| {
        let Some(Piece::File(slice)) = store.block(&id(1, 1, number), Blocking::Allowed).unwrap() else {
            panic!()
        };
        baton_sys::residency::is_in_core(slice.file(), slice.offset(), slice.len()).unwrap()
    };
    assert!(!is_in_core(0), "the first block left long ago");
    assert!(is_in_core(399), "the last one may still be on its way");
}
