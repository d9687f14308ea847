//! Options of listening TCP sockets.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::check;

/// Wakes the acceptor only when the first data of a connection has arrived, or after about `seconds`.
///
/// # Errors
/// `ENOPROTOOPT` or `EOPNOTSUPP` if the socket is not TCP.
pub fn set_defer_accept(socket: impl AsFd, seconds: i32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, &seconds)
}

/// Spreads the connections that arrive at a group of `SO_REUSEPORT` listeners by the CPU on which they arrive: the
/// n-th listener that joined the group gets those of CPU n. Setting it on one member affects the group.
///
/// # Errors
/// `EINVAL` if the socket is not bound with `SO_REUSEPORT`.
pub fn steer_by_cpu(socket: impl AsFd) -> io::Result<()> {
    const LOAD_WORD_ABSOLUTE: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const RETURN_ACCUMULATOR: u16 = (libc::BPF_RET | libc::BPF_A) as u16;
    const CURRENT_CPU: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_CPU) as u32;
    let mut instructions = [
        libc::sock_filter { code: LOAD_WORD_ABSOLUTE, jt: 0, jf: 0, k: CURRENT_CPU },
        libc::sock_filter { code: RETURN_ACCUMULATOR, jt: 0, jf: 0, k: 0 },
    ];
    let program = libc::sock_fprog { len: instructions.len() as u16, filter: instructions.as_mut_ptr() };
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF, &program)
}

fn set_option<T>(socket: impl AsFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: pointer and length describe `value`, which the kernel only reads (and, for a filter program, the
    // instructions it points to, which outlive the call).
    check(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })
    .map(drop)
}
