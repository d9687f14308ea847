//! Stores with known contents.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use baton_buf::Piece;
use baton_store::{BlockId, Blocking, DiskState, Key, NotDurable, Reuse, Store, StoreSettings};

/// Bounds that tests reach.
pub(crate) fn settings(folder: &Path) -> StoreSettings {
    StoreSettings {
        folder: Some(folder.to_owned()),
        bytes_max: 4 << 20,
        objects_max: 1000,
        memory_bytes_max: 1 << 20,
        block_bytes_max: 64 << 10,
        queue_bytes_max: 8 << 20,
        reserve_bytes: 0,
    }
}

/// Opens a store and waits until its journal has been read.
pub(crate) fn open(settings: StoreSettings) -> Store {
    let store = Store::open(settings).unwrap();
    sync(&store).unwrap();
    assert_eq!(store.stats().disk, DiskState::Working);
    store
}

/// Waits until all is durable, or known not to be.
pub(crate) fn sync(store: &Store) -> Result<(), NotDurable> {
    let (done, is_done) = mpsc::channel();
    store.sync(move |durable| done.send(durable).unwrap());
    is_done.recv().expect("each sync is answered")
}

pub(crate) fn id(key: u128, generation: u32, number: u32) -> BlockId {
    BlockId { key: Key::from(key), generation, number }
}

/// What a block has to contain.
pub(crate) fn content(id: &BlockId, len: usize) -> Vec<u8> {
    let key = u128::from(id.key) as u64;
    let mut random =
        fastrand::Rng::with_seed(key << 20 ^ u64::from(id.generation) << 10 ^ u64::from(id.number));
    std::iter::repeat_with(|| random.u8(..)).take(len).collect()
}

/// What the record of an object has to contain.
pub(crate) fn record(key: u128, generation: u32) -> Vec<u8> {
    format!("record of {key}, generation {generation}").into_bytes()
}

pub(crate) fn put_object(store: &Store, key: u128, generation: u32) {
    store.put_object(Key::from(key), generation, 1, record(key, generation)).unwrap();
}

pub(crate) fn put_block(store: &Store, id: &BlockId, len: usize) {
    store.put_block(id, content(id, len).into(), Reuse::Likely).unwrap();
}

/// A block's bytes, read as a client would get them.
pub(crate) fn get(store: &Store, id: &BlockId) -> Option<Vec<u8>> {
    store.block(id, Blocking::Allowed).unwrap().map(|piece| bytes_of(&piece))
}

pub(crate) fn get_record(store: &Store, key: u128) -> Option<(u32, Vec<u8>)> {
    let object = store.object(&Key::from(key), Blocking::Allowed).unwrap()?;
    Some((object.generation, object.record.to_vec()))
}

pub(crate) fn bytes_of(piece: &Piece) -> Vec<u8> {
    match piece {
        Piece::Memory(slice) => slice.to_vec(),
        Piece::File(slice) => {
            let mut bytes = vec![0; slice.len() as usize];
            let read = rustix::io::pread(slice.file(), &mut bytes[..], slice.offset()).unwrap();
            bytes.truncate(read);
            bytes
        }
        Piece::Shared(_) | Piece::Piped(_) => unreachable!("a store has no {piece:?}"),
    }
}

/// An object that only makes the journal grow, and its kind.
pub(crate) const PADDING: u128 = u128::MAX;
pub(crate) const PADDING_KIND: u8 = 9;

/// Asserts that all that is served is what was put for that name, and returns how many objects and blocks there are,
/// but for the padding.
pub(crate) fn check_all(store: &Store) -> (usize, usize) {
    let (mut objects, mut blocks) = (0, 0);
    for object in store.objects().filter(|object| object.kind != PADDING_KIND) {
        let key = u128::from(object.key);
        assert_eq!(object.record.to_vec(), record(key, object.generation));
        objects += 1;
        for (number, len) in object.blocks {
            let id = id(key, object.generation, number);
            if let Some(bytes) = get(store, &id) {
                assert_eq!(bytes, content(&id, len as usize), "{id:?}");
                blocks += 1;
            }
        }
    }
    (objects, blocks)
}

/// Waits until something is so, for at most a minute.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
