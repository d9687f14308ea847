//! The socket on which lines of the access log go to a syslog daemon.

use std::io;
use std::net::{ToSocketAddrs, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use baton_config::SyslogDaemon;
use baton_report::OperatorError;

/// For which the thread that writes a log waits at a time for a daemon that is behind.
const PATIENCE: Duration = Duration::from_millis(250);

/// Opens a socket for lines to a daemon, and makes sure that it is there, as far as that shows.
///
/// # Errors
/// There is no such daemon, or no such host.
pub(super) fn open(daemon: &SyslogDaemon) -> Result<OwnedFd, OperatorError> {
    match daemon {
        SyslogDaemon::Local(path) => {
            let socket = UnixDatagram::unbound().and_then(|socket| {
                socket.set_write_timeout(Some(PATIENCE))?;
                UnixDatagram::unbound()?.connect(path)?;
                Ok(socket)
            });
            socket.map(OwnedFd::from).map_err(|error| {
                let trouble =
                    OperatorError::of(format_args!("log to the syslog daemon at {}", path.display()), &error);
                match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => trouble
                        .cause("no syslog daemon runs here, as in most containers")
                        .remedy("start rsyslog or systemd-journald, or log to \"stdout\" or to a file"),
                    _ => trouble.about_file(path, &error),
                }
            })
        }
        SyslogDaemon::Remote { host, port } => to_host(host, *port).map(OwnedFd::from).map_err(|error| {
            let trouble = OperatorError::of(format_args!("log to the syslog daemon of {host}"), &error);
            trouble
                .cause("its name has no address, or this host has no network")
                .remedy("write its IP address")
        }),
    }
}

fn to_host(host: &str, port: u16) -> io::Result<UdpSocket> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in (host, port).to_socket_addrs()? {
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).and_then(|socket| {
            socket.set_write_timeout(Some(PATIENCE))?;
            socket.connect(address)?;
            Ok(socket)
        });
        match socket {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_daemon_is_named_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let daemon = SyslogDaemon::Local(path.clone());
        let missing = open(&daemon).unwrap_err().to_string();
        assert!(missing.contains("no syslog daemon runs here"), "{missing}");
        let running = UnixDatagram::bind(&path).unwrap();
        open(&daemon).unwrap();
        drop(running);
        assert!(open(&daemon).unwrap_err().to_string().contains("start rsyslog"), "it has ended");
        let nowhere = SyslogDaemon::Remote { host: "no.such.host.invalid".into(), port: 514 };
        assert!(open(&nowhere).unwrap_err().to_string().contains("write its IP address"));
    }
}
