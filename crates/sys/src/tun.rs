//! Network interfaces whose packets a process reads and writes (TUN).

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::check;

/// A new interface in the network namespace of the calling thread, which it is down in and goes with the descriptor. Each read
/// gives a packet that left by it, from its IP header on, each write lets one arrive; neither blocks.
///
/// # Errors
/// `InvalidInput`: the name is empty or longer than 15 bytes. `EBUSY`: it is taken. `EPERM`: this process lacks
/// `CAP_NET_ADMIN`. `ENOENT`: there is no `/dev/net/tun`.
pub fn create(name: &str) -> io::Result<OwnedFd> {
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")?;
    // SAFETY: a request of zeros is an empty one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the call reads and writes one request.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    Ok(device.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_fit_are_refused() {
        for name in ["", "sixteen-letters-", "a\0b"] {
            assert_eq!(create(name).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }

    /// Goal: an interface is there, under its name, until the descriptor is dropped. Method: on a thread with a namespace
    /// of its own.
    #[test]
    fn an_interface_goes_with_its_descriptor() {
        let alone = std::thread::spawn(|| {
            // SAFETY: the thread has a namespace of its own from then on, and ends here.
            if check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).is_err() {
                eprintln!("LEFT OUT of the tests of tun: needs root");
                return;
            }
            let interfaces = || std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
            let device = create("fifteen-letters").unwrap();
            assert!(interfaces().contains("fifteen-letters:"));
            assert!(create("fifteen-letters").is_err());
            assert_eq!(rustix::io::read(&device, &mut [0; 64]), Err(rustix::io::Errno::AGAIN));
            drop(device);
            assert!(!interfaces().contains("fifteen-letters:"));
        });
        alone.join().unwrap();
    }
}
