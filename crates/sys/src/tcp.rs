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
/// n-th listener that joined the group gets those of `cpus[n]`. Those of other CPUs are spread by a hash, as without this.
/// Setting it on one member affects the group.
///
/// # Errors
/// `EINVAL` if the socket is not bound with `SO_REUSEPORT`, or there are some thousands of CPUs.
pub fn steer_by_cpu(socket: impl AsFd, cpus: &[usize]) -> io::Result<()> {
    const LOAD_WORD_ABSOLUTE: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    const CURRENT_CPU: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_CPU) as u32;
    /// An index that no listener has makes the kernel fall back to its hash.
    const BY_HASH: u32 = u32::MAX;
    let instruction = |code, jump_if_not, k| libc::sock_filter { code, jt: 0, jf: jump_if_not, k };
    let mut instructions = vec![instruction(LOAD_WORD_ABSOLUTE, 0, CURRENT_CPU)];
    for (listener, &cpu) in cpus.iter().enumerate() {
        instructions.push(instruction(JUMP_IF_EQUAL, 1, cpu as u32));
        instructions.push(instruction(RETURN, 0, listener as u32));
    }
    instructions.push(instruction(RETURN, 0, BY_HASH));
    let len = u16::try_from(instructions.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let program = libc::sock_fprog { len, filter: instructions.as_mut_ptr() };
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF, &program)
}

/// Ends what [`steer_by_cpu`] began: a hash spreads the connections of the whole group. The program belongs to the
/// sockets, so it outlives the process that attached it.
///
/// # Errors
/// `ENOENT` if no program is attached, `EINVAL` if the socket is not bound with `SO_REUSEPORT`, `ENOPROTOOPT` before
/// Linux 5.3.
pub fn stop_steering(socket: impl AsFd) -> io::Result<()> {
    /// By `asm-generic/socket.h`; the libc crate lacks it.
    const SO_DETACH_REUSEPORT_BPF: i32 = 68;
    set_option(socket, libc::SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, &0_i32)
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

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use super::*;
    use crate::process::{allowed_cpus, pin_to_cpu};

    fn listener(address: SocketAddr) -> TcpListener {
        let family = rustix::net::AddressFamily::INET;
        let socket = rustix::net::socket(family, rustix::net::SocketType::STREAM, None).unwrap();
        rustix::net::sockopt::set_socket_reuseport(&socket, true).unwrap();
        rustix::net::bind(&socket, &address).unwrap();
        rustix::net::listen(&socket, 64).unwrap();
        rustix::io::ioctl_fionbio(&socket, true).unwrap();
        socket.into()
    }

    /// Goal: a CPU's connections go to the listener that stands where its number stands. Method: all connections are made
    /// on one CPU, whose number is the second or the first of two; a hash would spread them.
    #[test]
    fn connections_go_to_the_listener_of_their_cpu() {
        let first = listener("127.0.0.1:0".parse().unwrap());
        let address = first.local_addr().unwrap();
        let listeners = [first, listener(address)];
        let accepted_by_each = |cpus: &[usize]| {
            steer_by_cpu(&listeners[0], cpus).unwrap();
            let _clients: Vec<_> = (0..32).map(|_| TcpStream::connect(address).unwrap()).collect();
            [0, 1].map(|index: usize| std::iter::from_fn(|| listeners[index].accept().ok()).count())
        };
        let cpu = allowed_cpus().unwrap()[0];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pin_to_cpu(cpu).unwrap();
                let another = cpu + 1;
                assert_eq!(accepted_by_each(&[another, cpu]), [0, 32]);
                assert_eq!(accepted_by_each(&[cpu, another]), [32, 0]);
                let by_hash = accepted_by_each(&[another, another + 1]);
                assert!(by_hash.iter().all(|&count| count > 0), "{by_hash:?}");
                stop_steering(&listeners[1]).unwrap();
                let nothing_attached = stop_steering(&listeners[0]).unwrap_err();
                assert_eq!(nothing_attached.raw_os_error(), Some(libc::ENOENT));
            });
        });
    }
}
