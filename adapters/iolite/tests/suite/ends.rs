//! Ends that do not block, that come and go, and that read and write.

use std::io::{Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use baton_iolite::wire::MARKER_BYTES;
use baton_iolite::{Aggregate, Allocator, Reader, Writer};

use crate::hostile::{bytes_of, filled};

/// A pipe with a reader that listens, and a writer.
pub(crate) fn ends(allocator: &Allocator) -> (Reader<OwnedFd>, Writer<OwnedFd>) {
    let (from, to) = rustix::pipe::pipe().unwrap();
    (Reader::new(from, allocator).unwrap(), Writer::new(to))
}

/// Goal: bytes that a reader looks at stay when their writer is closed. Method: the pool is used up and written again.
#[test]
fn what_is_lent_outlives_its_writer() {
    let allocator = Allocator::new().unwrap();
    let (mut reader, mut writer) = ends(&allocator);
    writer.write(&filled(&allocator, b'k')).unwrap();
    drop(writer);
    let kept = reader.read(1 << 20).unwrap();
    let others: Vec<Aggregate> = (0..200).map(|_| filled(&allocator, b'o')).collect();
    assert!(bytes_of(kept) == [b'k'; 65536]);
    drop(others);
}

/// Goal: what is returned after its writer was closed is free again. Method: more than the pool holds goes by reference, each through
/// a writer of its own.
#[test]
fn what_is_returned_late_is_free() {
    let allocator = Allocator::new().unwrap();
    for round in 0..300 {
        let (mut reader, mut writer) = ends(&allocator);
        let bytes = filled(&allocator, b'r');
        assert_eq!(writer.write(&bytes).unwrap(), 65536);
        let in_pipe = rustix::io::ioctl_fionread(writer.descriptor()).unwrap();
        assert_eq!(in_pipe, MARKER_BYTES as u64, "round {round}: the pool has run out");
        drop(writer);
        drop(reader.read(1 << 20).unwrap());
    }
}

/// Goal: a writer that does not block writes what the pipe takes, and the rest later; nothing is lent for what was not written.
#[test]
fn a_full_pipe_is_no_error() {
    let allocator = Allocator::new().unwrap();
    let (mut reader, mut writer) = ends(&allocator);
    let flags = rustix::fs::OFlags::NONBLOCK;
    rustix::fs::fcntl_setfl(writer.descriptor(), flags).unwrap();
    let mut all = Aggregate::new();
    (0..40).for_each(|number| all.append(filled(&allocator, number)));
    let written = writer.write(&all).unwrap();
    assert_eq!(written, 32 * 65536, "a pipe of 64 KiB holds 32 markers");
    let error = writer.write(&all.split_off(written)).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    let mut number = 0;
    while number < 32 {
        let read = bytes_of(reader.read(65536).unwrap());
        assert!(read == [number; 65536], "piece {number}");
        number += 1;
    }
}

/// Goal: markers of a writer that has ended are understood, behind those of one that has come since. Method: a file is not lent,
/// so its writer's channel ends with it.
#[test]
fn markers_outlive_their_writer() {
    let allocator = Allocator::new().unwrap();
    let (from, to) = rustix::pipe::pipe().unwrap();
    let mut reader = Reader::new(from, &allocator).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[b'f'; 40_000]).unwrap();
    file.rewind().unwrap();
    let mut ranges = Reader::new(&file, &allocator).unwrap();
    let [first, second] = [0, 1].map(|_| ranges.read(20_000).unwrap());
    let mut ending = Writer::new(to.as_fd());
    ending.write(&first).unwrap();
    assert!(bytes_of(reader.read(1 << 20).unwrap()) == [b'f'; 20_000]);
    Writer::new(to.as_fd()).write(&filled(&allocator, b'o')).unwrap();
    ending.write(&second).unwrap();
    drop(ending);
    assert_eq!(rustix::io::ioctl_fionread(&to).unwrap(), 2 * MARKER_BYTES as u64);
    let both = bytes_of(reader.read(1 << 20).unwrap());
    assert!(both == [&[b'o'; 65536][..], &[b'f'; 20_000]].concat());
}

/// Goal: a socket carries references both ways at a time.
#[test]
fn a_socket_has_two_directions() {
    let allocator = Allocator::new().unwrap();
    let (one, other) = UnixStream::pair().unwrap();
    let mut readers = [&one, &other].map(|end| Reader::new(end.as_fd(), &allocator).unwrap());
    let mut writers = [&other, &one].map(|end| Writer::new(end.as_fd()));
    for round in 0..50 {
        for (reader, writer) in readers.iter_mut().zip(&mut writers) {
            writer.write(&filled(&allocator, round)).unwrap();
            let waiting = rustix::io::ioctl_fionread(writer.descriptor()).unwrap();
            assert_eq!(waiting, 0, "nothing comes back");
            assert!(bytes_of(reader.read(1 << 20).unwrap()) == [round; 65536]);
        }
    }
}
