//! What a reader of references makes of a writer that says anything.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use baton_iolite::wire::{self, Found, MARKER_BYTES, TO_READER_BYTES, ToReader};
use baton_iolite::{Aggregate, Allocator, Reader, look};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketType};

/// Messages on the channel, a byte each in front that says which descriptor comes along, and behind them what is in the
/// pipe. The reader gives bytes that are there, or an error; and without a channel it gives the bytes of the pipe.
pub fn writer(input: &[u8]) {
    let Some((&count, mut rest)) = input.split_first() else { return };
    let mut messages = Vec::new();
    while messages.len() < usize::from(count % 8)
        && let Some((message, behind)) = rest.split_at_checked(1 + TO_READER_BYTES)
    {
        messages.push(message);
        rest = behind;
    }
    let stream = &rest[..rest.len().min(STREAM_BYTES_MAX)];
    found(stream);
    // Without a greeting no marker is known.
    let strange = read(&[], stream).expect("bytes are no error");
    assert!(strange == stream, "bytes of strangers have changed");
    let _ = read(&messages, stream);
}

/// Whatever is found is there, and a marker is written as it was read.
fn found(stream: &[u8]) {
    for is_cut in [false, true] {
        let mut rest = stream;
        while !rest.is_empty() {
            let count = match wire::next(rest, is_cut) {
                Found::Bytes(count) => count,
                Found::Marker(marker) => {
                    let written = marker.to_bytes();
                    let used = written.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
                    assert!(written[..used] == rest[..used], "another marker");
                    MARKER_BYTES
                }
                Found::Part => break,
            };
            assert!(count > 0 && count <= rest.len());
            rest = &rest[count..];
        }
    }
}

fn read(messages: &[&[u8]], stream: &[u8]) -> std::io::Result<Vec<u8>> {
    let (from, to) = rustix::pipe::pipe()?;
    let stat = rustix::fs::fstat(&from)?;
    let name = format!("baton-iolite/{:x}/{:x}", stat.st_dev, stat.st_ino);
    let allocator = Allocator::new()?;
    let mut reader = Reader::new(from, &allocator)?;
    let link = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?;
    if !messages.is_empty() {
        rustix::net::connect(&link, &rustix::net::SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    }
    for message in messages {
        send(&link, &message[1..], message[0])?;
    }
    rustix::io::write(&to, stream)?;
    drop(to);
    let mut bytes = Vec::new();
    loop {
        let mut read: Aggregate = reader.read(READ_BYTES_MAX)?;
        if read.is_empty() {
            return Ok(bytes);
        }
        assert!(read.len() <= READ_BYTES_MAX as u64);
        look(&mut read, &allocator)?;
        for piece in read.pieces() {
            let baton_buf::Piece::Memory(slice) = piece else { panic!("{piece:?} is not mapped") };
            bytes.extend_from_slice(slice);
        }
    }
}

/// Sends a message, with a sealed memory, one that is not sealed, or nothing.
fn send(link: &OwnedFd, message: &[u8], which: u8) -> std::io::Result<()> {
    let file = rustix::fs::memfd_create("fuzz", MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&file, MEMORY_BYTES)?;
    if which & 1 == 0 {
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK)?;
    }
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files: [BorrowedFd<'_>; 1] = [file.as_fd()];
    if which & 2 == 0 {
        control.push(SendAncillaryMessage::ScmRights(&files));
    }
    // Else libFuzzer would have to guess a length of 8 bytes.
    let exact = ToReader::Pool(MEMORY_BYTES).to_bytes();
    let message = if which & 4 == 0 { message } else { &exact };
    rustix::net::sendmsg(link, &[std::io::IoSlice::new(message)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

const MEMORY_BYTES: u64 = 4096;
const READ_BYTES_MAX: usize = 5000;

/// What a pipe takes at once.
const STREAM_BYTES_MAX: usize = 32 << 10;
