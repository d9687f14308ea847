//! Whether the server has read a request: the kernel's word on its end of the connection.
//!
//! Timeouts of requests that the server has not read do not count against it. Both ends are on one host in most
//! measurements, and there the kernel tells (`sock_diag(7)`): how many bytes wait to be read, and whether the connection
//! has been accepted at all.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, getsockname, netlink, recv, send,
    socket_with,
};

/// A socket to ask the kernel.
#[derive(Debug)]
pub(super) struct UnreadProbe {
    netlink: OwnedFd,
}

impl UnreadProbe {
    /// `None` if this kernel does not answer such questions.
    pub(super) fn open() -> Option<Self> {
        let netlink = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        );
        Some(Self { netlink: netlink.ok()? })
    }

    /// Whether the server's end of this connection is not accepted, or has bytes that the server has not read. `false` as
    /// well if the kernel does not say: then the timeout counts against the server.
    pub(super) fn is_unread(&self, client: &OwnedFd, server: SocketAddr) -> bool {
        self.ask(client, server).unwrap_or(false)
    }

    fn ask(&self, client: &OwnedFd, server: SocketAddr) -> Option<bool> {
        let client = SocketAddr::try_from(getsockname(client).ok()?).ok()?;
        send(&self.netlink, &question(server, client), SendFlags::empty()).ok()?;
        let mut answer = [0; 1024];
        let (_, length) = recv(&self.netlink, &mut answer[..], RecvFlags::empty()).ok()?;
        let answer = &answer[..length];
        let number = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
        // No such connection: an error, and not a message of this kind. Its listener is found in its place.
        let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
        if kind != SOCK_DIAG_BY_FAMILY {
            return None;
        }
        let state = *answer.get(HEADER + 1)?;
        let (waiting, inode) = (number(HEADER + QUEUE_AT)?, number(HEADER + INODE_AT)?);
        Some(state == LISTEN || inode == 0 || waiting > 0)
    }
}

/// A `struct inet_diag_req_v2` for the connection whose own end is `own`, behind a header.
fn question(own: SocketAddr, other: SocketAddr) -> [u8; HEADER + 56] {
    let mut bytes = [0; HEADER + 56];
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    let body = &mut bytes[HEADER..];
    body[0] = if own.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }.as_raw() as u8;
    body[1] = TCP;
    body[4..8].fill(0xff);
    let id = &mut body[8..];
    id[..2].copy_from_slice(&own.port().to_be_bytes());
    id[2..4].copy_from_slice(&other.port().to_be_bytes());
    put_address(&mut id[4..20], own.ip());
    put_address(&mut id[20..36], other.ip());
    // No cookie: whichever it is.
    id[40..48].fill(0xff);
    bytes
}

fn put_address(place: &mut [u8], address: IpAddr) {
    match address {
        IpAddr::V4(address) => place[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => place.copy_from_slice(&address.octets()),
    }
}

/// Bytes of a `struct nlmsghdr`.
const HEADER: usize = 16;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const TCP: u8 = 6;
/// The state of a socket that listens.
const LISTEN: u8 = 10;
/// `idiag_rqueue` and `idiag_inode` in a `struct inet_diag_msg`.
const QUEUE_AT: usize = 56;
const INODE_AT: usize = 68;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_request_is_unread_until_the_server_reads_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        let socket = OwnedFd::from(client.try_clone().unwrap());
        let probe = UnreadProbe::open().unwrap();
        let Some(not_accepted) = probe.ask(&socket, address) else {
            eprintln!(
                "LEFT OUT of a_request_is_unread_until_the_server_reads_it: this kernel has no inet_diag"
            );
            return;
        };
        assert!(not_accepted);
        let (mut server, _) = listener.accept().unwrap();
        assert!(!probe.is_unread(&socket, address));
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert!(probe.is_unread(&socket, address));
        let mut request = [0; 64];
        assert_eq!(server.read(&mut request).unwrap(), 18);
        assert!(!probe.is_unread(&socket, address));
    }
}
