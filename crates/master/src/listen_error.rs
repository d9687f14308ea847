//! Why the server cannot listen on an address.

use std::io;

use baton_engine::listen::ListenAddress;
use baton_report::OperatorError;
use rustix::io::Errno;

use super::port_owner;

/// The server cannot listen on an address: why that is likely so, and what to do about it.
pub(super) fn cannot_listen(address: &ListenAddress, error: &io::Error) -> OperatorError {
    let trouble = OperatorError::of(format_args!("listen on {address}"), error);
    match (Errno::from_io_error(error), address) {
            (Some(Errno::ADDRINUSE), ListenAddress::Tcp(tcp)) => match port_owner::of_port(tcp.port()) {
                Some(owner) if owner.pid == std::process::id() => trouble
                    .cause("this server itself listens on that port, on another address")
                    .remedy("restart it, or reload twice: first without the old address, then with the new one"),
                Some(owner) => trouble
                    .cause(format!("{owner} listens there"))
                    .remedy(format!("stop it (`kill {}`), or choose another port", owner.pid)),
                None => trouble
                    .cause("another program listens there, probably one of another user")
                    .remedy(format!("see which with `sudo ss -ltnp sport = :{}`, or choose another port", tcp.port())),
            },
            (Some(Errno::ADDRINUSE), ListenAddress::Unix(path)) => trouble
                .cause("a running server listens there, or the file is not a socket")
                .remedy(format!("stop that server, or remove {}", path.display())),
            (Some(Errno::ACCESS | Errno::PERM), ListenAddress::Tcp(tcp)) if tcp.port() < 1024 => trouble
                .cause("ports below 1024 belong to root")
                .remedy(
                    "choose a port from 1024 on, start as root (the workers run as another user), or give the right \
                     to do it: `AmbientCapabilities=CAP_NET_BIND_SERVICE` in a systemd unit, or `sudo setcap \
                     cap_net_bind_service=+ep` on the executable",
                ),
            (Some(Errno::ADDRNOTAVAIL), ListenAddress::Tcp(tcp)) => trouble
                .cause(format!("no network interface of this machine has the address {}", tcp.ip()))
                .remedy("see which there are with `ip address`; 0.0.0.0 and [::] stand for all of them"),
            (Some(Errno::AFNOSUPPORT), ListenAddress::Tcp(tcp)) if tcp.is_ipv6() => {
                trouble.cause("this machine has no IPv6").remedy("choose an IPv4 address")
            }
            (Some(Errno::MFILE | Errno::NFILE), _) => {
                trouble.cause("too few descriptors").remedy("raise the limit: `ulimit -n`, or LimitNOFILE= in the unit")
            }
            (_, ListenAddress::Unix(path)) => trouble.about_file(path, error),
            _ => trouble,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listening(address: &str, errno: Errno) -> String {
        cannot_listen(&ListenAddress::Tcp(address.parse().unwrap()), &errno.into()).to_string()
    }

    #[test]
    fn an_errno_becomes_a_cause_and_a_remedy() {
        let low_port = listening("0.0.0.0:80", Errno::ACCESS);
        assert!(low_port.starts_with("cannot listen on 0.0.0.0:80: Permission denied"), "{low_port}");
        assert!(
            low_port.contains("\n  likely cause: ports below 1024 belong to root\n  remedy: "),
            "{low_port}"
        );
        assert!(low_port.contains("AmbientCapabilities=CAP_NET_BIND_SERVICE"), "{low_port}");
        assert!(!listening("0.0.0.0:8080", Errno::ACCESS).contains("1024"));
        assert!(listening("[::1]:8080", Errno::AFNOSUPPORT).contains("no IPv6"));
        assert!(listening("127.0.0.1:8080", Errno::MFILE).contains("LimitNOFILE="));
    }
}
