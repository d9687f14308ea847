//! How much the peer of a connection has read or acknowledged.

use std::cell::Cell;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;

use crate::check;

/// Bytes written to a Unix socket that its peer has not read. While there are any, the peer may not have accepted the
/// connection.
///
/// # Errors
/// `EINVAL` if it is no stream socket.
pub fn unread_by_peer(socket: impl AsFd) -> io::Result<usize> {
    let mut unread: libc::c_int = 0;
    // SAFETY: the call writes one int, which lives until it returns.
    check(unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut unread) })?;
    Ok(usize::try_from(unread).unwrap_or(0))
}

/// What [`unread_by_peer`] says of one message of so many bytes, none of which has been read: the memory that it takes. The
/// last answer is remembered.
///
/// # Errors
/// `EMFILE`, `ENOMEM`; `EAGAIN` if it is longer than a socket takes.
pub fn unread_of(len: usize) -> io::Result<usize> {
    thread_local! {
        static LAST: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    }
    let (last, unread) = LAST.get();
    if len == last {
        return Ok(unread);
    }
    let (ours, _theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    if (&ours).write(&vec![0; len])? < len {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let unread = unread_by_peer(&ours)?;
    LAST.set((len, unread));
    Ok(unread)
}

/// Bytes that the peer of a TCP connection has acknowledged since its beginning.
///
/// # Errors
/// `EOPNOTSUPP` if the socket is not TCP; `Unsupported` if the kernel does not count them (before Linux 4.1).
pub fn bytes_acknowledged(socket: impl AsFd) -> io::Result<u64> {
    let mut info = [0_u8; TCP_INFO_BYTES];
    let mut length = TCP_INFO_BYTES as libc::socklen_t;
    // SAFETY: pointer and length describe `info`; the kernel writes nothing beyond.
    check(unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    })?;
    let counter = info[..length as usize].get(BYTES_ACKED_AT..).and_then(<[u8]>::first_chunk);
    counter.copied().map(u64::from_ne_bytes).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// All bytes ever written to a TCP connection, by any holder of the socket, whether they have arrived or not.
///
/// # Errors
/// As [`bytes_acknowledged`].
pub fn bytes_written(socket: impl AsFd) -> io::Result<u64> {
    loop {
        // Retry if the count changed: bytes acknowledged between the calls would count twice. On TCP, unread means
        // unacknowledged.
        let under_way = unread_by_peer(&socket)?;
        let acknowledged = bytes_acknowledged(&socket)?;
        if unread_by_peer(&socket)? == under_way {
            return Ok(acknowledged + under_way as u64);
        }
    }
}

/// Where `tcpi_bytes_acked` is in the kernel's `struct tcp_info`, which only grows at its end. libc's structure is
/// shorter.
const BYTES_ACKED_AT: usize = 120;
const TCP_INFO_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_the_peer_has_read_is_known() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        assert_eq!(unread_by_peer(&ours).unwrap(), 0);
        ours.write_all(b"hello").unwrap();
        assert!(unread_by_peer(&ours).unwrap() > 0);
        theirs.read_exact(&mut [0; 5]).unwrap();
        assert_eq!(unread_by_peer(&ours).unwrap(), 0);
    }

    /// Goal: it is seen which of two messages has been read. Method: the first one, and then a part of the second.
    #[test]
    fn a_message_that_was_read_is_told_from_the_next() {
        for len in [8, 100, 5_000, 30_000] {
            let (mut ours, mut theirs) = UnixStream::pair().unwrap();
            ours.write_all(&[0; 700]).unwrap();
            ours.write_all(&vec![0; len]).unwrap();
            assert!(unread_by_peer(&ours).unwrap() > unread_of(len).unwrap());
            theirs.read_exact(&mut [0; 699]).unwrap();
            assert!(unread_by_peer(&ours).unwrap() > unread_of(len).unwrap());
            theirs.read_exact(&mut [0; 2]).unwrap();
            assert_eq!(unread_by_peer(&ours).unwrap(), unread_of(len).unwrap());
        }
    }

    /// Goal: each byte counts once, as soon as it is written. Method: write more than the peer's socket holds, so
    /// that some bytes are acknowledged, some in flight, and some unsent.
    #[test]
    fn written_bytes_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        assert_eq!(bytes_written(&server).unwrap(), 0);
        server.write_all(b"x").unwrap();
        assert_eq!(bytes_written(&server).unwrap(), 1);
        server.set_nonblocking(true).unwrap();
        let mut total = 1;
        while let Ok(count) = server.write(&[7; 10_000]) {
            total += count;
            assert_eq!(bytes_written(&server).unwrap(), total as u64);
        }
        client.read_exact(&mut vec![0; total]).unwrap();
        assert_eq!(bytes_written(&server).unwrap(), total as u64);
        assert!(bytes_written(UnixStream::pair().unwrap().0).is_err());
    }

    #[test]
    fn what_the_peer_has_acknowledged_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let before = bytes_acknowledged(&server).unwrap();
        server.write_all(&[7; 1000]).unwrap();
        client.read_exact(&mut [0; 1000]).unwrap();
        client.write_all(b"x").unwrap(); // The acknowledgement rides on it.
        server.read_exact(&mut [0; 1]).unwrap();
        assert_eq!(bytes_acknowledged(&server).unwrap() - before, 1000);
        assert!(bytes_acknowledged(UnixStream::pair().unwrap().0).is_err());
    }
}
