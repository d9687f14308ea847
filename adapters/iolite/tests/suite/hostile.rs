//! Peers that do not keep the rules.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use baton_iolite::wire::{MARKER_BYTES, Marker, Reference, ToReader, WriterNumber, returned_to_bytes};
use baton_iolite::{Aggregate, Allocator, Reader, Writer, look};
use baton_sys::passing;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

const NUMBER: WriterNumber = [7; 16];

/// The two ends of a pipe, and the address of its channel.
fn pipe() -> (OwnedFd, OwnedFd, SocketAddrUnix) {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let stat = rustix::fs::fstat(&reader).unwrap();
    let name = format!("baton-iolite/{:x}/{:x}", stat.st_dev, stat.st_ino);
    (reader, writer, SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap())
}

fn socket() -> OwnedFd {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

/// A memory file, of which the size is sealed or not.
fn memory(bytes: u64, is_sealed: bool) -> OwnedFd {
    let file = rustix::fs::memfd_create("hostile", MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&file, bytes).unwrap();
    if is_sealed {
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).unwrap();
    }
    file
}

pub(crate) fn bytes_of(mut aggregate: Aggregate) -> Vec<u8> {
    look(&mut aggregate, &Allocator::new().unwrap()).unwrap();
    let mut bytes = Vec::new();
    for piece in aggregate.pieces() {
        let baton_buf::Piece::Memory(slice) = piece else { panic!("{piece:?} is not mapped") };
        bytes.extend_from_slice(slice);
    }
    bytes
}

fn reference(memory: u32, offset: u64, len: u32) -> Reference {
    Reference { id: 0, memory, offset, len }
}

/// What a reader says when a writer shows `shown`, and writes one reference.
fn told(shown: &[(Vec<u8>, Option<OwnedFd>)], reference: Reference) -> std::io::Result<Vec<u8>> {
    let (from, to, channel) = pipe();
    let mut reader = Reader::new(from, &Allocator::new().unwrap()).unwrap();
    let link = socket();
    rustix::net::connect(&link, &channel).unwrap();
    passing::send(&link, &ToReader::Hello(NUMBER).to_bytes(), &[]).unwrap();
    for (message, file) in shown {
        let files: Vec<BorrowedFd<'_>> = file.iter().map(AsFd::as_fd).collect();
        passing::send(&link, message, &files).unwrap();
    }
    let marker = Marker { writer: NUMBER, references: vec![reference] };
    rustix::io::write(&to, &marker.to_bytes()).unwrap();
    let first = reader.read(1 << 20).map(bytes_of);
    if first.is_err() {
        assert!(reader.read(1 << 20).is_err(), "what follows cannot be told");
    }
    first
}

fn pool(bytes: u64) -> Vec<u8> {
    ToReader::Pool(bytes).to_bytes().to_vec()
}

/// Goal: a reader never looks beyond a memory, at one that may shrink, or at one that it was not shown. Method: each lie
/// beside the truth.
#[test]
fn lies_of_writers_are_errors() {
    let sealed = |bytes| Some(memory(bytes, true));
    let truth = told(&[(pool(65536), sealed(65536))], reference(0, 65000, 536));
    assert_eq!(truth.unwrap(), vec![0; 536]);
    let lies = [
        ("beyond the pool", vec![(pool(65536), sealed(65536))], reference(0, 65000, 537)),
        ("a pool that is smaller", vec![(pool(65536), sealed(65535))], reference(0, 0, 9000)),
        ("a pool that may shrink", vec![(pool(65536), Some(memory(65536, false)))], reference(0, 0, 9000)),
        ("a pool without memory", vec![(pool(0), sealed(65536))], reference(0, 0, 1)),
        ("a pool of all memory", vec![(pool(u64::MAX), sealed(65536))], reference(0, 0, 1)),
        ("no descriptor", vec![(pool(65536), None)], reference(0, 0, 9000)),
        ("nothing is shown", vec![], reference(0, 0, 9000)),
        ("another memory", vec![(pool(65536), sealed(65536))], reference(1, 0, 9000)),
        ("a second greeting", vec![(ToReader::Hello(NUMBER).to_bytes().to_vec(), None)], reference(0, 0, 1)),
        ("no message", vec![(b"pool".to_vec(), sealed(65536))], reference(0, 0, 1)),
        ("a large message", vec![(vec![0; 500], None)], reference(0, 0, 1)),
        ("beyond a file", vec![(ToReader::File.to_bytes().to_vec(), sealed(100))], reference(0, 0, 101)),
        ("a pipe as a file", vec![(ToReader::File.to_bytes().to_vec(), Some(pipe().0))], reference(0, 0, 1)),
    ];
    for (lie, shown, reference) in lies {
        let error = told(&shown, reference).expect_err(lie);
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::PROTO.raw_os_error()), "{lie}: {error}");
    }
}

/// Goal: bytes that look like a marker, of a writer that has not connected, are bytes.
#[test]
fn markers_of_strangers_are_bytes() {
    let (from, to, _) = pipe();
    let mut reader = Reader::new(from, &Allocator::new().unwrap()).unwrap();
    let marker = Marker { writer: NUMBER, references: vec![reference(0, 0, 1)] }.to_bytes();
    for written in [&marker[..], &marker[..100], &marker[..15]] {
        rustix::io::write(&to, written).unwrap();
        assert!(bytes_of(reader.read(1 << 20).unwrap()) == written, "{} bytes", written.len());
    }
    drop(to);
    assert!(reader.read(1).unwrap().is_empty());
}

pub(crate) fn filled(allocator: &Allocator, byte: u8) -> Aggregate {
    let mut blank = allocator.create(65536);
    blank.parts().for_each(|part| part.fill(byte));
    blank.freeze()
}

/// Goal: whatever a reader returns, and however it ends, the writer goes on, and bytes that are looked at by another reader stay.
/// Method: the hostile reader listens beside a pipe of its own, and shares the pool with an honest one.
#[test]
fn lies_of_readers_harm_no_other_reader() {
    let lies: [&[u8]; 5] =
        [b"abc", &[1; 255], &[], &returned_to_bytes(&[u32::MAX; 64]), &returned_to_bytes(&[0, 0, 0])];
    for (lie, is_end) in lies.iter().flat_map(|lie| [(lie, false), (lie, true)]) {
        let allocator = Allocator::new().unwrap();
        let (honest_from, honest_to) = rustix::pipe::pipe().unwrap();
        let mut honest = Reader::new(honest_from, &allocator).unwrap();
        let mut to_honest = Writer::new(honest_to);
        to_honest.write(&filled(&allocator, b'h')).unwrap();
        let kept = honest.read(1 << 20).unwrap();

        let (from, to, name) = pipe();
        let channel = socket();
        rustix::net::bind(&channel, &name).unwrap();
        rustix::net::listen(&channel, 1).unwrap();
        let mut writer = Writer::new(to);
        let mut written = 0;
        let mut accepted = None;
        // Twice what the pool holds. A writer that waits for its reader would block here.
        for _ in 0..256 {
            written += writer.write(&filled(&allocator, b'x')).unwrap();
            let link = accepted.get_or_insert_with(|| rustix::net::accept(&channel).unwrap());
            let _ = rustix::net::send(link.as_fd(), lie, rustix::net::SendFlags::NOSIGNAL);
            if is_end {
                accepted = Some(socket());
            }
            let mut sink = vec![0; 1 << 17];
            while rustix::io::ioctl_fionread(&from).unwrap() > 0 {
                rustix::io::read(&from, &mut sink[..]).unwrap();
            }
        }
        assert_eq!(written, 256 * 65536);
        assert!(bytes_of(kept) == [b'h'; 65536]);
        to_honest.write(&filled(&allocator, b'i')).unwrap();
        assert!(bytes_of(honest.read(1 << 20).unwrap()) == [b'i'; 65536]);
    }
}

/// Goal: a reader cannot write to what it is lent.
#[test]
fn what_is_lent_cannot_be_written() {
    let (from, to, name) = pipe();
    let channel = socket();
    rustix::net::bind(&channel, &name).unwrap();
    rustix::net::listen(&channel, 1).unwrap();
    let allocator = Allocator::new().unwrap();
    Writer::new(to).write(&filled(&allocator, b'x')).unwrap();
    let link = rustix::net::accept(&channel).unwrap();
    let mut message = [0; 64];
    passing::receive(&link, &mut message).unwrap();
    let (_, mut files) = passing::receive(&link, &mut message).unwrap();
    let file = std::fs::File::from(files.pop().unwrap());
    assert!((&file).write(b"y").is_err());
    let mut beginning = [0; 2];
    (&file).read_exact(&mut beginning).unwrap();
    assert_eq!(&beginning, b"xx");
    assert!(baton_pool::Writable::map(&file, file.metadata().unwrap().size() as usize).is_err());
    let mut marker = [0; MARKER_BYTES];
    assert_eq!(rustix::io::read(&from, &mut marker).unwrap(), MARKER_BYTES);
    assert_eq!(Marker::from_bytes(&marker).unwrap().references, [reference(0, 0, 65536)]);
}

/// Goal: references of another user are refused. Method: as root, one end changes its user; the listening socket keeps it.
#[test]
fn other_users_have_bytes() {
    if !rustix::process::geteuid().is_root() {
        println!("LEFT OUT of other_users_have_bytes: only root can be two users");
        return;
    }
    let chain =
        "stage produce 0 2000000 65536 | setpriv --reuid=65534 --clear-groups $(command -v stage) check";
    let line = crate::program::shell(&format!("chmod 755 $(dirname $(command -v stage)); {chain}"));
    let (all, read) = line.trim().split_once(' ').unwrap();
    assert_eq!(all, "2000000");
    assert!(read.parse::<u64>().unwrap() >= 2_000_000, "{read} bytes were read");
}
