//! A syslog daemon as the place of a log: a datagram for each line.
//!
//! The writer's thread waits for the daemon, never a loop, and not for long: the socket has a timeout. Lines that the daemon
//! does not take in time are lost and counted.

use std::fs::File;
use std::path::PathBuf;

use baton_report::utc;
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketAddrUnix, send, sendto};

/// How lines are sent to a syslog daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyslogForm {
    /// To this socket on this host, in the form of `syslog(3)`. By its name, so that a daemon that starts again gets the next
    /// line. The daemon writes the time: it knows the zone that its readers expect.
    Local(PathBuf),
    /// Over UDP, on a connected socket, as RFC 5424 says. `host`: the name of this one.
    Remote {
        /// Name of this host.
        host: String,
    },
}

/// Sends lines to a syslog daemon.
#[derive(Debug)]
pub(super) struct Syslog {
    form: SyslogForm,
    address: Option<SocketAddrUnix>,
    datagram: Vec<u8>,
}

impl Syslog {
    pub(super) fn new(form: SyslogForm) -> Self {
        let address = match &form {
            // The configuration refuses a path that is too long.
            SyslogForm::Local(path) => SocketAddrUnix::new(path).ok(),
            SyslogForm::Remote { .. } => None,
        };
        Self { form, address, datagram: Vec::new() }
    }

    /// Sends lines. Returns how many were lost.
    pub(super) fn send(&mut self, socket: &File, lines: &[u8]) -> u64 {
        let pid = std::process::id();
        let head = match &self.form {
            SyslogForm::Local(_) => format!("<{PRIORITY}>baton[{pid}]: "),
            SyslogForm::Remote { host } => {
                format!("<{PRIORITY}>1 {} {host} baton {pid} access - ", utc(std::time::SystemTime::now()))
            }
        };
        let mut lost = 0;
        let mut lines = lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        while let Some(line) = lines.next() {
            self.datagram.clear();
            self.datagram.extend_from_slice(head.as_bytes());
            self.datagram.extend_from_slice(&line[..line.len().min(LINE_BYTES_MAX)]);
            match self.send_datagram(socket) {
                Ok(()) => {}
                // The daemon is stuck: the next line would wait as long.
                Err(Errno::AGAIN) => return lost + 1 + lines.count() as u64,
                Err(_) => lost += 1,
            }
        }
        lost
    }

    fn send_datagram(&self, socket: &File) -> Result<(), Errno> {
        let once = || match &self.address {
            Some(address) => sendto(socket, &self.datagram, SendFlags::NOSIGNAL, address),
            None => send(socket, &self.datagram, SendFlags::NOSIGNAL),
        };
        let is_remote = self.address.is_none();
        match once() {
            // Of UDP, the error is that of an earlier datagram.
            Err(Errno::CONNREFUSED) if is_remote => once(),
            Err(Errno::INTR) => once(),
            other => other,
        }
        .map(drop)
    }
}

/// Facility `local7`, severity `info`, as other servers have it.
const PRIORITY: u8 = 23 * 8 + 6;

/// What rsyslog takes of a message, unless it is told otherwise.
const LINE_BYTES_MAX: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;
    use std::time::Duration;

    use super::*;

    /// A client's socket with a timeout, as the master opens it.
    fn unbound() -> File {
        let socket = UnixDatagram::unbound().unwrap();
        socket.set_write_timeout(Some(Duration::from_millis(20))).unwrap();
        OwnedFd::from(socket).into()
    }

    fn received(receive: impl FnOnce(&mut [u8]) -> std::io::Result<usize>) -> String {
        let mut bytes = [0; 16 << 10];
        let length = receive(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    /// Goal: a daemon gets each line in the form of `syslog(3)`, also after it has started again. Method: its socket is
    /// removed and bound once more.
    #[test]
    fn a_daemon_that_starts_again_gets_the_next_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut syslog = Syslog::new(SyslogForm::Local(path.clone()));
        let socket = unbound();
        let daemon = UnixDatagram::bind(&path).unwrap();
        assert_eq!(syslog.send(&socket, b"one\ntwo\n"), 0);
        let head = format!("<190>baton[{}]: ", std::process::id());
        assert_eq!(received(|bytes| daemon.recv(bytes)), format!("{head}one"));
        assert_eq!(received(|bytes| daemon.recv(bytes)), format!("{head}two"));

        drop(daemon);
        assert_eq!(syslog.send(&socket, b"three\nfour\n"), 2, "the daemon is gone");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(syslog.send(&socket, b"five\n"), 1, "its socket, too");
        let daemon = UnixDatagram::bind(&path).unwrap();
        assert_eq!(syslog.send(&socket, b"six\n"), 0);
        assert_eq!(received(|bytes| daemon.recv(bytes)), format!("{head}six"));
    }

    /// Goal: a stuck daemon costs lines, which are counted, and not the writer. Method: a daemon that reads nothing gets more
    /// lines than its queue has room for.
    #[test]
    fn a_full_socket_loses_lines_and_counts_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let daemon = UnixDatagram::bind(&path).unwrap();
        daemon.set_nonblocking(true).unwrap();
        let mut syslog = Syslog::new(SyslogForm::Local(path));
        let count = 10_000;
        let lost = syslog.send(&unbound(), "line\n".repeat(count).as_bytes());
        let mut arrived = 0;
        while daemon.recv(&mut [0; 64]).is_ok() {
            arrived += 1;
        }
        assert!(lost > 0 && arrived > 0, "{lost} {arrived}");
        assert_eq!(lost + arrived, count as u64);
    }

    #[test]
    fn another_host_gets_lines_as_rfc_5424_has_them() {
        let daemon = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(daemon.local_addr().unwrap()).unwrap();
        let mut syslog = Syslog::new(SyslogForm::Remote { host: "box".into() });
        let line = [&[b'x'; 10_000][..], b"\n"].concat();
        assert_eq!(syslog.send(&OwnedFd::from(socket).into(), &line), 0);
        let datagram = received(|bytes| daemon.recv(bytes));
        let (head, text) = datagram.split_once(" - ").unwrap();
        let head: Vec<_> = head.split(' ').collect();
        let pid = std::process::id().to_string();
        assert_eq!((head[0], &head[2..]), ("<190>1", &["box", "baton", &*pid, "access"][..]));
        assert!(head[1].ends_with('Z') && head[1].len() == 24, "{}", head[1]);
        assert_eq!(text.len(), LINE_BYTES_MAX);
    }
}
