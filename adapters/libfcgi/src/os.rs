//! `OS_*`: sockets and descriptors, as programs of the original's own package use them.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::net::{Ipv4Addr, SocketAddrV4, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use baton_responder::Connection;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, Shutdown, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};

use crate::errno::{errno, set_errno};
use crate::{asynchronous, shutdown};

/// A local connection is closed if the server sends nothing for so long after opening it: a server that timed out may
/// have abandoned it.
static SILENCE: Milliseconds = Milliseconds::new("LIBFCGI_IS_AF_UNIX_KEEPER_POLL_TIMEOUT", 2000);

/// How long closing a network connection waits for the server to close its side, so that the server's last bytes do
/// not reset the connection before the response has arrived.
static CLOSE: Milliseconds = Milliseconds::new("LIBFCGI_OS_CLOSE_POLL_TIMEOUT", 2000);

/// A time that an environment variable of the original's can change, looked up when it is first needed.
struct Milliseconds {
    variable: &'static str,
    otherwise: u32,
    value: OnceLock<u32>,
}

impl Milliseconds {
    const fn new(variable: &'static str, otherwise: u32) -> Self {
        Self { variable, otherwise, value: OnceLock::new() }
    }

    fn get(&self) -> u32 {
        *self.value.get_or_init(|| {
            std::env::var(self.variable).ok().and_then(|text| text.parse().ok()).unwrap_or(self.otherwise)
        })
    }
}

/// Prepares nothing: kept for programs that call it. 0.
#[unsafe(no_mangle)]
extern "C" fn OS_LibInit(_stdio: *mut c_int) -> c_int {
    0
}

/// Forgets the operations of `OS_AsyncRead` and the like.
#[unsafe(no_mangle)]
extern "C" fn OS_LibShutdown() {
    asynchronous::forget_all();
}

/// `result` as C functions return it.
fn returned(result: Result<c_int, Errno>) -> c_int {
    result.unwrap_or_else(|errno| {
        set_errno(errno.raw_os_error());
        -1
    })
}

/// The descriptor that a program has passed.
fn borrowed<'a>(fd: c_int) -> Result<BorrowedFd<'a>, Errno> {
    if fd < 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: the program keeps it open for the call; if it is not open, the kernel says so.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// Where a socket is to be opened, in the original's notation.
enum SocketAddress<'a> {
    Path(&'a OsStr),
    Port { host: &'a str, port: u16 },
}

impl<'a> SocketAddress<'a> {
    /// # Safety
    /// `text` is a string.
    unsafe fn parse(text: *const c_char) -> Self {
        // SAFETY: of the caller.
        let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
        let path = Self::Path(OsStr::from_bytes(bytes));
        let Ok(text) = std::str::from_utf8(bytes) else { return path };
        match text.split_once(':').map(|(host, port)| (host, port.parse())) {
            Some((host, Ok(port))) if port != 0 => Self::Port { host, port },
            _ => path,
        }
    }
}

/// Says why, and ends the program, as the original does.
fn die(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(1)
}

/// Opens a listening socket. Ends the program if that is not possible.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn OS_CreateLocalIpcFd(path: *const c_char, backlog: c_int) -> c_int {
    // SAFETY: the program passes a string.
    let place = unsafe { SocketAddress::parse(path) };
    let opened = match place {
        SocketAddress::Path(path) => listen_at_path(path, backlog),
        SocketAddress::Port { host, port } => listen_at_port(host_address(host), port, backlog),
    };
    match opened {
        Ok(socket) => socket.into_raw_fd(),
        Err(errno) => die(&format!("bind/listen: {errno}")),
    }
}

fn listen_at_path(path: &OsStr, backlog: c_int) -> Result<OwnedFd, Errno> {
    let address = SocketAddrUnix::new(path.as_bytes())
        .unwrap_or_else(|_| die("Listening socket's path name is too long."));
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    // `bind` reports a path that cannot be removed.
    let _ = rustix::fs::unlink(path);
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, backlog)?;
    Ok(socket)
}

fn listen_at_port(host: Ipv4Addr, port: u16, backlog: c_int) -> Result<OwnedFd, Errno> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(host, port))?;
    rustix::net::listen(&socket, backlog)?;
    Ok(socket)
}

/// The address to listen at: of all interfaces, or of a host with one address.
fn host_address(host: &str) -> Ipv4Addr {
    if host.is_empty() || host == "*" {
        return Ipv4Addr::UNSPECIFIED;
    }
    match addresses(host)[..] {
        [address] => address,
        [] => die(&format!("Cannot resolve host name {host} -- exiting!")),
        _ => die(&format!("Host {host} has multiple addresses ---\nyou must choose one explicitly!!!")),
    }
}

fn addresses(host: &str) -> Vec<Ipv4Addr> {
    let mut addresses: Vec<_> = (host, 0)
        .to_socket_addrs()
        .into_iter()
        .flatten()
        .filter_map(|address| match address.ip() {
            std::net::IpAddr::V4(address) => Some(address),
            std::net::IpAddr::V6(_) => None,
        })
        .collect();
    addresses.dedup();
    addresses
}

/// Connects to an application. -1 if there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn OS_FcgiConnect(path: *mut c_char) -> c_int {
    // SAFETY: the program passes a string.
    let place = unsafe { SocketAddress::parse(path) };
    let connected = match place {
        SocketAddress::Path(path) => SocketAddrUnix::new(path.as_bytes()).and_then(|address| {
            let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
            rustix::net::connect(&socket, &address)?;
            Ok(socket)
        }),
        SocketAddress::Port { host, port } => {
            let host = if host.is_empty() { "localhost" } else { host };
            let Some(&address) = addresses(host).first() else { die(&format!("Unknown host: {host}")) };
            rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).and_then(|socket| {
                rustix::net::connect(&socket, &SocketAddrV4::new(address, port))?;
                Ok(socket)
            })
        }
    };
    returned(connected.map(IntoRawFd::into_raw_fd))
}

/// `read`.
#[unsafe(no_mangle)]
unsafe extern "C" fn OS_Read(fd: c_int, buffer: *mut c_char, len: usize) -> c_int {
    // SAFETY: the program provides `len` bytes.
    unsafe { libc::read(fd, buffer.cast::<c_void>(), len) as c_int }
}

/// `write`.
#[unsafe(no_mangle)]
unsafe extern "C" fn OS_Write(fd: c_int, buffer: *mut c_char, len: usize) -> c_int {
    // SAFETY: the program provides `len` bytes.
    unsafe { libc::write(fd, buffer.cast::<c_void>(), len) as c_int }
}

/// Starts an application at a listening socket, which becomes its standard input. 0, or the program ends.
#[unsafe(no_mangle)]
unsafe extern "C" fn OS_SpawnChild(path: *mut c_char, listen_fd: c_int) -> c_int {
    // SAFETY: between `fork` and `exec` the child calls what may be called there.
    unsafe {
        match libc::fork() {
            -1 => std::process::exit(errno()),
            0 => {
                libc::close(libc::STDIN_FILENO);
                if listen_fd != libc::STDIN_FILENO {
                    libc::dup2(listen_fd, libc::STDIN_FILENO);
                    libc::close(listen_fd);
                }
                libc::close(libc::STDOUT_FILENO);
                libc::close(libc::STDERR_FILENO);
                libc::execl(path, path, std::ptr::null::<c_char>());
                libc::_exit(errno())
            }
            _ => 0,
        }
    }
}

/// Closes a descriptor; if `shuts_down`, as the end of a connection. 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn OS_Close(fd: c_int, shuts_down: c_int) -> c_int {
    asynchronous::forget(fd);
    if shuts_down != 0
        && let Ok(socket) = borrowed(fd)
    {
        end_of_connection(socket);
    }
    // SAFETY: the program gives the descriptor up.
    unsafe { libc::close(fd) }
}

/// Closes the descriptor of a connection; if `shuts_down`, as its end. 0, or -1.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn OS_IpcClose(fd: c_int, shuts_down: c_int) -> c_int {
    OS_Close(fd, shuts_down)
}

/// Reads nothing more. 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn OS_CloseRead(fd: c_int) -> c_int {
    asynchronous::forget_reading(fd);
    returned(borrowed(fd).and_then(|socket| rustix::net::shutdown(socket, Shutdown::Read)).map(|()| 0))
}

/// Ends the stream to the server, even if another process holds the connection. Over the network, waits until the
/// server has closed its side.
pub(crate) fn end_of_connection(socket: BorrowedFd<'_>) {
    if rustix::net::shutdown(socket, Shutdown::Write).is_err()
        || sockopt::socket_domain(socket) == Ok(AddressFamily::UNIX)
    {
        return;
    }
    let mut trash = [0; 1024];
    while is_readable_within(socket, CLOSE.get())
        && rustix::net::recv(socket, &mut trash[..], RecvFlags::empty()).is_ok_and(|(read, _)| read > 0)
    {}
}

fn is_readable_within(socket: BorrowedFd<'_>, timeout_ms: u32) -> bool {
    let timeout = rustix::event::Timespec {
        tv_sec: i64::from(timeout_ms / 1000),
        tv_nsec: i64::from(timeout_ms % 1000) * 1_000_000,
    };
    let mut polled = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
    rustix::event::poll(&mut polled, Some(&timeout)).is_ok_and(|ready| ready > 0)
}

/// Waits for a connection, from one of the addresses in a list separated by commas, if there is one. -1 for an error or
/// a shutdown.
#[unsafe(no_mangle)]
unsafe extern "C" fn OS_Accept(listen_sock: c_int, fail_on_intr: c_int, servers: *const c_char) -> c_int {
    loop {
        // SAFETY: the program passes null or a string.
        let servers = (!servers.is_null()).then(|| unsafe { CStr::from_ptr(servers) });
        match accept(listen_sock, fail_on_intr != 0, servers) {
            Ok((socket, is_local)) => {
                if !is_local || is_readable_within(socket.as_fd(), SILENCE.get()) {
                    return socket.into_raw_fd();
                }
            }
            Err(errno) => return returned(Err(errno)),
        }
    }
}

/// Waits for a connection. Returns whether it is local, too.
///
/// # Errors
/// Errors that the peer did not cause; `EINTR` for a signal if `fail_on_intr`, or if a shutdown is pending.
pub(crate) fn accept(
    listen_sock: c_int,
    fail_on_intr: bool,
    servers: Option<&CStr>,
) -> Result<(OwnedFd, bool), Errno> {
    loop {
        if shutdown::is_pending() {
            return Err(Errno::INTR);
        }
        let (socket, peer) = match rustix::net::acceptfrom_with(borrowed(listen_sock)?, SocketFlags::CLOEXEC)
        {
            Ok(accepted) => accepted,
            Err(Errno::INTR) if !fail_on_intr => continue,
            Err(
                Errno::PROTO
                | Errno::CONNABORTED
                | Errno::CONNRESET
                | Errno::TIMEDOUT
                | Errno::HOSTUNREACH
                | Errno::NETUNREACH,
            ) => continue,
            Err(errno) => return Err(errno),
        };
        let Some(peer) = peer.and_then(|peer| SocketAddrV4::try_from(peer).ok()) else {
            return Ok((socket, true));
        };
        // Without it the last packet would wait for an acknowledgement.
        let _ = sockopt::set_tcp_nodelay(&socket, true);
        if servers.is_none_or(|list| is_listed(*peer.ip(), list)) {
            return Ok((socket, false));
        }
    }
}

/// Whether a list allows a server. An empty one allows all.
fn is_listed(server: Ipv4Addr, list: &CStr) -> bool {
    let list = list.to_string_lossy();
    list.is_empty() || list.split(',').any(|allowed| allowed.trim().parse() == Ok(server))
}

/// Whether the server has something to say on a connection that it has just opened.
pub(crate) fn speaks(connection: &mut Connection) -> bool {
    connection.speaks_within(SILENCE.get()).unwrap_or(false)
}

/// 1 if this is a listening socket, else 0.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn OS_IsFcgi(sock: c_int) -> c_int {
    let peer: Result<Option<SocketAddrAny>, _> = borrowed(sock).and_then(rustix::net::getpeername);
    c_int::from(matches!(peer, Err(Errno::NOTCONN)))
}

/// Sets flags of an open file besides those that it has.
#[unsafe(no_mangle)]
extern "C" fn OS_SetFlags(fd: c_int, flags: c_int) {
    // SAFETY: `fcntl` with numbers touches no memory.
    unsafe {
        let have = libc::fcntl(fd, libc::F_GETFL, 0);
        if have < 0 || libc::fcntl(fd, libc::F_SETFL, have | flags) < 0 {
            std::process::exit(errno());
        }
    }
}
