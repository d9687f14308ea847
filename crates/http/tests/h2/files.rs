//! Bodies that are ranges of files: they stay ranges, and one that is not in memory holds up its own stream only.

use std::io::Write;
use std::sync::Arc;

use crate::client::{Pair, get, window_update};
use baton_buf::{Aggregate, FileSlice, OpenFile, Piece, Slice};

/// A file of 100,000 bytes.
fn file() -> Arc<OpenFile> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(&[b'f'; 100_000]).expect("room");
    Arc::new(OpenFile::new(file.into()))
}

/// The pieces that leave now. `is_ready` gets the beginning and the length of a range.
fn pieces(pair: &mut Pair, mut is_ready: impl FnMut(u32, u64, u64) -> bool) -> Vec<Piece> {
    let mut out = Aggregate::new();
    pair.server.poll_transmit(&mut out, 1 << 20, &mut pair.packer, &mut |_| (), &mut |stream, range| {
        is_ready(stream.number(), range.offset(), range.len())
    });
    out.pieces().cloned().collect()
}

fn ranges(pieces: &[Piece]) -> Vec<(u64, u64)> {
    let range = |piece: &Piece| match piece {
        Piece::File(file) => Some((file.offset(), file.len())),
        _ => None,
    };
    pieces.iter().filter_map(range).collect()
}

fn body(parts: impl IntoIterator<Item = Piece>) -> Aggregate {
    let mut body = Aggregate::new();
    parts.into_iter().for_each(|part| body.push(part));
    body
}

#[test]
fn a_range_of_a_file_stays_one_in_each_frame() {
    let mut pair = Pair::open();
    let [stream] = pair.begin(&[get(1)])[..] else { panic!() };
    pair.server.respond(stream, vec![0x88].into(), false);
    let head = Slice::from(vec![b'm'; 384]);
    pair.server.push(stream, body([head.into(), FileSlice::new(file(), 500, 40_000).into()]));
    pair.server.end(stream);
    pair.server.finish(stream);
    let pieces = pieces(&mut pair, |_, _, _| true);
    assert_eq!(ranges(&pieces), [(500, 16_000), (16_500, 16_384), (32_884, 7_616)]);
    let between: Vec<_> = pieces.iter().map(Piece::len).filter(|len| *len < 500).collect();
    assert_eq!(between, [9 + 1 + 9 + 384, 9, 9], "heads of frames, and what is small");
    assert!(pair.server.is_idle());
}

#[test]
fn a_range_that_is_not_in_memory_waits_alone() {
    let mut pair = Pair::open();
    let [cold, warm] = pair.begin(&[get(1), get(3)])[..] else { panic!() };
    for stream in [cold, warm] {
        pair.server.respond(stream, vec![0x88].into(), false);
        pair.server.push(stream, body([FileSlice::new(file(), 0, 20_000).into()]));
        pair.server.end(stream);
        pair.server.finish(stream);
    }
    let first = pieces(&mut pair, |stream, offset, _| stream == 3 || offset > 0);
    assert_eq!(ranges(&first), [(0, 16_384), (16_384, 3_616)], "the other stream goes on");
    assert_eq!(pair.server.queued(cold), 20_000);
    assert!(!pair.server.wants_to_send() && !pair.server.is_idle());
    pair.receive(&window_update(1, 1)).unwrap();
    assert!(!pair.server.wants_to_send(), "a window does not load pages");
    pair.server.handle_ready(cold);
    assert_eq!(ranges(&pieces(&mut pair, |_, offset, _| offset == 0)), [(0, 16_384)]);
    pair.server.handle_ready(cold);
    assert_eq!(ranges(&pieces(&mut pair, |_, _, _| true)), [(16_384, 3_616)]);
    assert!(pair.server.is_idle());
}

#[test]
fn what_is_in_front_of_a_cold_range_leaves() {
    let mut pair = Pair::open();
    let [stream] = pair.begin(&[get(1)])[..] else { panic!() };
    pair.push(stream, b"warm");
    pair.server.push(stream, body([FileSlice::new(file(), 0, 10).into()]));
    let mut asked = Vec::new();
    let out = pieces(&mut pair, |_, offset, len| {
        asked.push((offset, len));
        false
    });
    assert_eq!((asked, out.len(), out[0].len()), (vec![(0, 10)], 1, 9 + 4));
    pair.receive(&crate::client::cancel(1)).unwrap();
    pair.server.handle_ready(stream);
    assert!(!pair.server.wants_to_send(), "the client is gone");
}
