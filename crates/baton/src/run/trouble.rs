//! What stands in the way of a server, why that is likely so, and what to do about it.

use std::fmt;
use std::io;
use std::path::Path;

use baton_engine::listen::ListenAddress;
use rustix::io::Errno;

use super::holder;

/// Something that failed, for a human.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    what: String,
    likely_cause: Option<String>,
    remedy: Option<String>,
}

impl Trouble {
    /// Something failed, for the reason that it says itself.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), likely_cause: None, remedy: None }
    }

    /// The operation that `error` ended.
    pub(crate) fn of(operation: impl fmt::Display, error: &io::Error) -> Self {
        Self::new(format!("cannot {operation}: {error}"))
    }

    /// Why that is likely so.
    pub(crate) fn cause(self, cause: impl Into<String>) -> Self {
        Self { likely_cause: Some(cause.into()), ..self }
    }

    /// What to do about it.
    pub(crate) fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// An address on which the server could not listen.
    pub(super) fn listening(address: &ListenAddress, error: &io::Error) -> Self {
        let trouble = Self::of(format_args!("listen on {address}"), error);
        match (Errno::from_io_error(error), address) {
            (Some(Errno::ADDRINUSE), ListenAddress::Tcp(tcp)) => match holder::of_port(tcp.port()) {
                Some(holder) if holder.pid == std::process::id() => trouble
                    .cause("this server itself listens on that port, on another address")
                    .remedy("restart it, or reload twice: first without the old address, then with the new one"),
                Some(holder) => trouble
                    .cause(format!("{holder} listens there"))
                    .remedy(format!("stop it (`kill {}`), or choose another port", holder.pid)),
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

    /// A file that could not be created or opened: adds what its path makes likely.
    pub(crate) fn about_file(self, path: &Path, error: &io::Error) -> Self {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match Errno::from_io_error(error) {
            Some(Errno::NOENT) => self
                .cause(format!("there is no directory {}", parent.display()))
                .remedy(format!("`mkdir -p {}`", parent.display())),
            Some(Errno::ACCESS | Errno::PERM) => self
                .cause(format!("user {} may not write there", rustix::process::geteuid().as_raw()))
                .remedy(format!("change who may write in {}, or choose another path", parent.display())),
            Some(Errno::ROFS) => {
                self.cause("the file system is mounted read-only").remedy("choose a path on another one")
            }
            Some(Errno::NOSPC | Errno::DQUOT) => self.cause("the disk, or the user's share of it, is full"),
            Some(Errno::ISDIR) => {
                self.cause(format!("{} is a directory", path.display())).remedy("name a file in it")
            }
            _ => self,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(cause) = &self.likely_cause {
            write!(f, "\n  likely cause: {cause}")?;
        }
        if let Some(remedy) = &self.remedy {
            write!(f, "\n  remedy: {remedy}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Trouble {}

#[cfg(test)]
mod tests {
    use super::*;

    fn listening(address: &str, errno: Errno) -> String {
        Trouble::listening(&ListenAddress::Tcp(address.parse().unwrap()), &errno.into()).to_string()
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

    #[test]
    fn a_files_path_tells_what_is_missing() {
        let about = |path: &str, errno: Errno| {
            let error = io::Error::from(errno);
            Trouble::of("open the log", &error).about_file(Path::new(path), &error).to_string()
        };
        assert!(about("/no/such/log", Errno::NOENT).ends_with("remedy: `mkdir -p /no/such`"));
        assert!(about("log", Errno::NOENT).ends_with("remedy: `mkdir -p .`"));
        assert!(about("/var/log", Errno::ISDIR).contains("/var/log is a directory"));
    }
}
