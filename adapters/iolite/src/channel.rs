//! How the two ends of a pipe or Unix socket find each other: the reader's socket has a name that both know.
//!
//! A pipe has one identity, which both ends see. The ends of a Unix socket have one each: the writer asks the kernel which one
//! its peer has.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::FileType;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::UNREAD_BYTES_MAX;

/// The channel of readers: waits for writers. `None`: `descriptor` is no pipe and no Unix socket, or has a reader.
pub(crate) fn listen(descriptor: BorrowedFd<'_>) -> Option<OwnedFd> {
    let name = match kind(descriptor)? {
        (FileType::Fifo, device, file) => name(device, file)?,
        (_, _, file) => socket_name(file)?,
    };
    let socket = socket().ok()?;
    rustix::net::bind(&socket, &name).ok()?;
    rustix::net::listen(&socket, WRITERS_WAITING_MAX).ok()?;
    Some(socket)
}

/// The next writer that waits. Those of other users are refused.
///
/// # Errors
/// `EAGAIN`: none waits; `EMFILE`.
pub(crate) fn accept(channel: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    loop {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let writer = rustix::net::accept_with(channel, flags)?;
        if is_ours(&writer) {
            return Ok(writer);
        }
    }
}

/// How many bytes of writers a pipe or socket holds at most.
pub(crate) fn capacity(descriptor: BorrowedFd<'_>) -> u64 {
    rustix::pipe::fcntl_getpipe_size(descriptor).map_or(UNREAD_BYTES_MAX, |bytes| bytes as u64)
}

/// Whether references can ever go by this descriptor: it is a pipe or a Unix socket.
pub(crate) fn is_possible(descriptor: BorrowedFd<'_>) -> bool {
    kind(descriptor).is_some()
}

/// Connects with the reader of the other end. `None`: it does not listen, or is another user's.
pub(crate) fn connect(descriptor: BorrowedFd<'_>) -> Option<OwnedFd> {
    let name = match kind(descriptor)? {
        (FileType::Fifo, device, file) => name(device, file)?,
        (_, _, file) => socket_name(u64::from(peer_of(u32::try_from(file).ok()?).ok()?))?,
    };
    let socket = socket().ok()?;
    rustix::net::connect(&socket, &name).ok()?;
    is_ours(&socket).then_some(socket)
}

/// What a descriptor is, with the numbers of its device and file; `None`: neither a pipe nor a Unix stream socket.
fn kind(descriptor: BorrowedFd<'_>) -> Option<(FileType, u64, u64)> {
    let stat = rustix::fs::fstat(descriptor).ok()?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    let is_one = match kind {
        FileType::Fifo => true,
        FileType::Socket => {
            sockopt::socket_domain(descriptor) == Ok(AddressFamily::UNIX)
                && sockopt::socket_type(descriptor) == Ok(SocketType::STREAM)
        }
        _ => false,
    };
    is_one.then_some((kind, stat.st_dev, stat.st_ino))
}

fn name(device: u64, file: u64) -> Option<SocketAddrUnix> {
    SocketAddrUnix::new_abstract_name(format!("baton-iolite/{device:x}/{file:x}").as_bytes()).ok()
}

/// Sockets are numbered in one row, whatever their device.
fn socket_name(file: u64) -> Option<SocketAddrUnix> {
    name(0, file)
}

fn socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Whether the other end is a process of this user: one that could change this process's memory by other means, too.
fn is_ours(socket: &OwnedFd) -> bool {
    sockopt::socket_peercred(socket).is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

/// The file number of the peer of a Unix socket, by the kernel's diagnosis of sockets (`sock_diag(7)`).
fn peer_of(file: u32) -> io::Result<u32> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    let question = [
        [QUESTION_BYTES, SOCK_DIAG_BY_FAMILY | NLM_F_REQUEST << 16, 0, 0],
        [u32::from(AddressFamily::UNIX.as_raw()), u32::MAX, file, UDIAG_SHOW_PEER],
        [u32::MAX, u32::MAX, 0, 0],
    ];
    let question: Vec<u8> =
        question.as_flattened().iter().flat_map(|word| word.to_ne_bytes()).take(40).collect();
    rustix::net::sendto(&socket, &question, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0; 256];
    let (count, _) = rustix::net::recv(socket.as_fd(), &mut answer, RecvFlags::DONTWAIT)?;
    peer_in(&answer[..count]).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The peer's number in the kernel's answer: the first attribute behind the head and the description of the socket.
fn peer_in(answer: &[u8]) -> Option<u32> {
    let word = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let is_description = word(4)? & 0xffff == SOCK_DIAG_BY_FAMILY;
    let is_peer = word(32)? >> 16 == UNIX_DIAG_PEER;
    if is_description && is_peer { word(36) } else { None }
}

/// Writers whose connection is not accepted yet. One more writes bytes until then.
const WRITERS_WAITING_MAX: i32 = 16;

const QUESTION_BYTES: u32 = 40;
const SOCK_DIAG_BY_FAMILY: u32 = 20;
const NLM_F_REQUEST: u32 = 1;
const UDIAG_SHOW_PEER: u32 = 4;
const UNIX_DIAG_PEER: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_pipes_and_sockets_find_each_other() {
        let (reader, writer) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .unwrap();
        let pipe = rustix::pipe::pipe().unwrap();
        for (reader, writer) in [(reader, writer), pipe] {
            assert!(connect(writer.as_fd()).is_none(), "nothing listens");
            let channel = listen(reader.as_fd()).unwrap();
            assert!(listen(reader.as_fd()).is_none(), "one reader");
            assert!(accept(&channel).is_err(), "nothing has connected");
            let _link = connect(writer.as_fd()).unwrap();
            assert!(accept(&channel).is_ok());
            drop(channel);
            assert!(connect(writer.as_fd()).is_none(), "nothing listens any more");
        }
        assert!(listen(std::fs::File::open("/dev/null").unwrap().as_fd()).is_none());
    }
}
