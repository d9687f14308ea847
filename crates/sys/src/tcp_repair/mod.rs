//! TCP connections that leave this host, and arrive on another, without a packet (`TCP_REPAIR`).
//!
//! ```text
//!   host that has the client            host that gets it
//!   hold the client's packets
//!   freeze, dump, end      ── bytes ──▶ TcpState::from_bytes, restore
//!                          ◀── there ──
//!   forward the packets                 thaw
//! ```
//!
//! Packets must be held back (`flow_table`) before [`dump`]: a frozen socket still acknowledges what arrives, which
//! would be lost. TCP repeats what was held. All of this needs `CAP_NET_ADMIN`.
//!
//! A crate without I/O carries [`TcpState::to_bytes`] unread: only the process that makes these calls looks into it.

mod state;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use crate::check;
use crate::socket_option::{get, set, set_bytes};

pub use state::{QUEUE_BYTES_MAX, STATE_BYTES_MAX, TcpState, Window, WindowScales};

/// Why a connection stays where it is.
#[derive(Debug)]
pub enum CannotMove {
    /// The socket is no TCP connection of one path: a Unix socket, UDP, MPTCP.
    NotTcp,
    /// The connection is being set up or taken down, or one end has closed its half: the state's number in the kernel.
    NotEstablished(u8),
    /// The kernel seals its records (kTLS), or does something else that another host would have to go on with.
    Layered,
    /// An address that means something on this host's link only.
    LinkLocal,
    /// Bytes that were written have not been sent: a response is on its way.
    Unsent(usize),
    /// More than [`QUEUE_BYTES_MAX`] bytes were not acknowledged by the client.
    Unacked(usize),
    /// More than [`QUEUE_BYTES_MAX`] bytes of the client were not read.
    Unread(usize),
    /// A packet of the client arrived meanwhile: they were not held back.
    Changed,
    /// A call failed.
    Call(io::Error),
}

impl fmt::Display for CannotMove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotTcp => f.write_str("not a plain TCP socket"),
            Self::NotEstablished(state) => write!(f, "not established, but in state {state}"),
            Self::Layered => f.write_str("the kernel seals its records"),
            Self::LinkLocal => f.write_str("a link-local address has no meaning on another host"),
            Self::Unsent(bytes) => write!(f, "{bytes} bytes have not been sent"),
            Self::Unacked(bytes) => {
                write!(f, "{bytes} bytes have not been acknowledged, more than {QUEUE_BYTES_MAX}")
            }
            Self::Unread(bytes) => write!(f, "{bytes} bytes have not been read, more than {QUEUE_BYTES_MAX}"),
            Self::Changed => f.write_str("packets arrived while it was read"),
            Self::Call(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CannotMove {}

impl From<io::Error> for CannotMove {
    fn from(error: io::Error) -> Self {
        Self::Call(error)
    }
}

impl From<rustix::io::Errno> for CannotMove {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Call(error.into())
    }
}

/// Whether this process may freeze sockets of its network namespace.
///
/// # Errors
/// `EPERM`: it lacks `CAP_NET_ADMIN`. `ENOPROTOOPT`: the kernel was built without `CONFIG_CHECKPOINT_RESTORE`.
pub fn self_test() -> io::Result<()> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    freeze(&socket)
}

/// Puts a socket into repair: it sends no data, and closing it is silent. It still takes what arrives.
///
/// # Errors
/// `EPERM`: this process lacks `CAP_NET_ADMIN`, or the socket listens. `EOPNOTSUPP`: no plain TCP.
pub fn freeze(socket: impl AsFd) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_REPAIR, &REPAIR_ON)
}

/// Takes a socket out of repair: the connection lives on this host. Nothing is sent for that; the kernel repeats unacked
/// bytes by its timer.
///
/// # Errors
/// `EPERM`: this process lacks `CAP_NET_ADMIN`.
pub fn thaw(socket: impl AsFd) -> io::Result<()> {
    set(&socket, libc::IPPROTO_TCP, libc::TCP_REPAIR, &REPAIR_OFF_WITHOUT_PROBE)?;
    // The kernel forgets it here; without it no server could bind the port anew while the connection lives.
    Ok(sockopt::set_socket_reuseaddr(socket, true)?)
}

/// Reads the state of a frozen connection, which stays frozen.
///
/// # Errors
/// [`CannotMove`]: [`thaw`] it then, and go on with it here.
pub fn dump(socket: impl AsFd) -> Result<TcpState, CannotMove> {
    let socket = socket.as_fd();
    // No other kind of socket can be frozen, but may be shown to this function.
    let info = info(socket).map_err(|_| CannotMove::NotTcp)?;
    let (state, options, scales) = (info[TCP_INFO_STATE], info[TCP_INFO_OPTIONS], info[TCP_INFO_SCALES]);
    if state != ESTABLISHED {
        return Err(CannotMove::NotEstablished(state));
    }
    if get(socket, libc::IPPROTO_TCP, libc::TCP_ULP, [0_u8; 16])?[0] != 0 {
        return Err(CannotMove::Layered);
    }
    let local = portable(rustix::net::getsockname(socket)?.try_into()?)?;
    let peer = rustix::net::getpeername(socket)?.ok_or(CannotMove::NotTcp)?;
    let peer = portable(peer.try_into()?)?;

    let (received_up_to, sent_up_to) = (queue_end(socket, RECEIVE_QUEUE)?, queue_end(socket, SEND_QUEUE)?);
    let unread_bytes = rustix::io::ioctl_fionread(socket)? as usize;
    if unread_bytes > QUEUE_BYTES_MAX {
        return Err(CannotMove::Unread(unread_bytes));
    }
    let unsent_bytes = u32::from_ne_bytes(info[TCP_INFO_UNSENT].try_into().unwrap_or_default());
    if unsent_bytes > 0 {
        return Err(CannotMove::Unsent(unsent_bytes as usize));
    }
    let unacked_bytes = unacked_bytes(socket)?;
    if unacked_bytes > QUEUE_BYTES_MAX {
        return Err(CannotMove::Unacked(unacked_bytes));
    }

    let mss = get(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, 0_u32)?;
    let timestamp = match options & OPTION_TIMESTAMPS {
        0 => None,
        _ => Some(get(socket, libc::IPPROTO_TCP, libc::TCP_TIMESTAMP, 0_u32)?),
    };
    let [snd_wl1, snd_wnd, max_window, rcv_wnd, rcv_wup] =
        get(socket, libc::IPPROTO_TCP, libc::TCP_REPAIR_WINDOW, [0_u32; 5])?;
    let unread = queue_bytes(socket, RECEIVE_QUEUE, unread_bytes)?;
    let unacked = queue_bytes(socket, SEND_QUEUE, unacked_bytes)?;
    // A frozen socket sends nothing: what has changed was received, or acknowledged.
    let after = self::info(socket)?;
    if after[TCP_INFO_STATE] != state || after[TCP_INFO_RECEIVED] != info[TCP_INFO_RECEIVED] {
        return Err(CannotMove::Changed);
    }
    Ok(TcpState {
        local,
        peer,
        mss,
        window_scales: window_scales(scales),
        selective_acks: options & OPTION_SELECTIVE_ACKS != 0,
        timestamp,
        window: Window { snd_wl1, snd_wnd, max_window, rcv_wnd, rcv_wup },
        received_up_to,
        unread,
        sent_up_to,
        unacked,
        no_delay: sockopt::tcp_nodelay(socket)?,
    })
}

/// Ends a frozen connection on this host without a packet, for each process that has a descriptor of it. Its addresses are
/// free at once.
///
/// # Errors
/// Those of `connect(2)` with no address; none is known for a TCP socket.
pub fn end(socket: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::connect_unspec(socket)?)
}

/// Makes the connection on this host, frozen: [`thaw`] brings it to life, and dropping it instead is silent.
/// Reads and writes do not block.
///
/// # Errors
/// `EADDRNOTAVAIL`: this host lacks the local address, or has this connection already. `ENETUNREACH`: it has no route to
/// the peer. `EPERM`: this process lacks `CAP_NET_ADMIN`. `EACCES`: it lacks `CAP_NET_BIND_SERVICE`, for a port below 1024.
/// `EINVAL`: the state is nonsense. `ENOMEM`, `EAGAIN`: the queues do not fit into a new socket's buffers.
pub fn restore(state: &TcpState) -> io::Result<OwnedFd> {
    let family = if state.local.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    freeze(&socket)?;
    let ends = [
        (RECEIVE_QUEUE, state.received_up_to, &state.unread),
        (SEND_QUEUE, state.sent_up_to, &state.unacked),
    ];
    // Only a closed socket takes sequence numbers. Filling the queues moves them on.
    for (queue, up_to, bytes) in ends {
        set(&socket, libc::IPPROTO_TCP, libc::TCP_REPAIR_QUEUE, &queue)?;
        let first = up_to.wrapping_sub(bytes.len() as u32);
        set(&socket, libc::IPPROTO_TCP, libc::TCP_QUEUE_SEQ, &first)?;
    }
    rustix::net::bind(&socket, &state.local)?;
    rustix::net::connect(&socket, &state.peer)?;

    // Only an established one takes options: pairs of a number of RFC 9293 or 7323 and a value.
    // Scales are set even if they are 0: the kernel has chosen one for a connection of its own.
    let WindowScales { send, receive } = state.window_scales;
    let scales = u32::from(send) | u32::from(receive) << 16;
    let mut options = vec![[TCPOPT_MAXSEG, state.mss], [TCPOPT_WINDOW, scales]];
    if state.selective_acks {
        options.push([TCPOPT_SACK_PERMITTED, 0]);
    }
    if state.timestamp.is_some() {
        options.push([TCPOPT_TIMESTAMP, 0]);
    }
    let options: Vec<u8> = options.as_flattened().iter().flat_map(|number| number.to_ne_bytes()).collect();
    set_bytes(&socket, libc::IPPROTO_TCP, libc::TCP_REPAIR_OPTIONS, &options)?;
    if let Some(timestamp) = state.timestamp {
        set(&socket, libc::IPPROTO_TCP, libc::TCP_TIMESTAMP, &timestamp)?;
    }
    for (queue, _, bytes) in ends.into_iter().filter(|(_, _, bytes)| !bytes.is_empty()) {
        set(&socket, libc::IPPROTO_TCP, libc::TCP_REPAIR_QUEUE, &queue)?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let taken = rustix::net::send(&socket, rest, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
            rest = &rest[taken..];
        }
    }
    let Window { snd_wl1, snd_wnd, max_window, rcv_wnd, rcv_wup } = state.window;
    let window = [snd_wl1, snd_wnd, max_window, rcv_wnd, rcv_wup];
    set(&socket, libc::IPPROTO_TCP, libc::TCP_REPAIR_WINDOW, &window)?;
    sockopt::set_tcp_nodelay(&socket, state.no_delay)?;
    Ok(socket)
}

/// The address as another host understands it.
fn portable(address: SocketAddr) -> Result<SocketAddr, CannotMove> {
    match address {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => Err(CannotMove::LinkLocal),
        address => Ok(SocketAddr::new(address.ip().to_canonical(), address.port())),
    }
}

/// From the two bit fields of a byte in `struct tcp_info`.
fn window_scales(byte: u8) -> WindowScales {
    let (first, second) = match cfg!(target_endian = "little") {
        true => (byte & 15, byte >> 4),
        false => (byte >> 4, byte & 15),
    };
    WindowScales { send: first, receive: second }
}

/// The bytes of a queue, which has so many.
fn queue_bytes(socket: impl AsFd, queue: i32, length: usize) -> Result<Vec<u8>, CannotMove> {
    let mut bytes = vec![0; length];
    if length > 0 {
        set(&socket, libc::IPPROTO_TCP, libc::TCP_REPAIR_QUEUE, &queue)?;
        let (read, _) = rustix::net::recv(&socket, &mut bytes[..], RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
        if read != length {
            return Err(CannotMove::Changed);
        }
    }
    Ok(bytes)
}

fn info(socket: impl AsFd) -> io::Result<[u8; TCP_INFO_BYTES]> {
    get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, [0_u8; TCP_INFO_BYTES])
}

/// Chooses a queue, and asks for the sequence number behind it.
fn queue_end(socket: impl AsFd, queue: i32) -> io::Result<u32> {
    set(&socket, libc::IPPROTO_TCP, libc::TCP_REPAIR_QUEUE, &queue)?;
    get(&socket, libc::IPPROTO_TCP, libc::TCP_QUEUE_SEQ, 0_u32)
}

fn unacked_bytes(socket: impl AsFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request stores one int.
    check(unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ as _, &raw mut bytes) })?;
    Ok(bytes.max(0) as usize)
}

// Of linux/tcp.h; the libc crate lacks them.
const REPAIR_ON: i32 = 1;
/// Ends repair as 0 does, but without its window probe.
const REPAIR_OFF_WITHOUT_PROBE: i32 = -1;
const RECEIVE_QUEUE: i32 = 1;
const SEND_QUEUE: i32 = 2;
const TCP_INFO_STATE: usize = 0;
const TCP_INFO_OPTIONS: usize = 5;
const TCP_INFO_SCALES: usize = 6;
/// Two numbers of 64 bits: bytes that were acknowledged, and bytes that were received.
const TCP_INFO_RECEIVED: Range<usize> = 120..136;
/// A number of 32 bits.
const TCP_INFO_UNSENT: Range<usize> = 144..148;
/// The part of `struct tcp_info` that is read.
const TCP_INFO_BYTES: usize = 148;
const ESTABLISHED: u8 = 1;
const OPTION_TIMESTAMPS: u8 = 1;
const OPTION_SELECTIVE_ACKS: u8 = 2;
const TCPOPT_MAXSEG: u32 = 2;
const TCPOPT_WINDOW: u32 = 3;
const TCPOPT_SACK_PERMITTED: u32 = 4;
const TCPOPT_TIMESTAMP: u32 = 8;

#[cfg(test)]
mod tests;
