//! Which syslog daemon gets lines.

use std::fmt;
use std::path::PathBuf;

use super::kind::{Kind, Reading};
use super::raw::Node;
use super::shown::Shown;

/// A syslog daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyslogDaemon {
    /// One of this host, at this socket.
    Local(PathBuf),
    /// One of another host, by UDP.
    Remote {
        /// Its name or address.
        host: String,
        /// Its port.
        port: u16,
    },
}

/// `syslog`, `syslog:PATH` or `syslog://HOST:PORT`.
pub(crate) struct Syslog;

impl Syslog {
    /// Whether a text names a daemon, not a file.
    pub(crate) fn is_meant(text: &str) -> bool {
        text == WORD || text.starts_with("syslog:")
    }
}

impl Kind for Syslog {
    type Value = SyslogDaemon;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "\"syslog\", \"syslog:/PATH\" or \"syslog://HOST:514\"".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<SyslogDaemon> {
        let daemon = parse(node.get_ref().as_str().unwrap_or_default());
        if daemon.is_none() {
            let label = format!("expected {}", self.accepted());
            reading.refuse(node.span(), "names no syslog daemon", label);
        }
        daemon
    }

    fn write(&self, value: &SyslogDaemon) -> toml::Value {
        value.to_string().into()
    }
}

impl fmt::Display for SyslogDaemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) if path.as_os_str() == USUAL_SOCKET => f.write_str(WORD),
            Self::Local(path) => write!(f, "{WORD}:{}", path.display()),
            Self::Remote { host, port } if host.contains(':') => write!(f, "{WORD}://[{host}]:{port}"),
            Self::Remote { host, port } => write!(f, "{WORD}://{host}:{port}"),
        }
    }
}

fn parse(text: &str) -> Option<SyslogDaemon> {
    if text == WORD {
        return Some(SyslogDaemon::Local(USUAL_SOCKET.into()));
    }
    let place = text.strip_prefix(WORD)?.strip_prefix(':')?;
    let Some(authority) = place.strip_prefix("//") else {
        let fits = place.starts_with('/') && place.len() < SOCKET_PATH_BYTES && !place.contains('\0');
        return fits.then(|| SyslogDaemon::Local(place.into()));
    };
    let (host, port) = match authority.strip_prefix('[') {
        Some(address) => address.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = if port.is_empty() { USUAL_PORT } else { port.strip_prefix(':')?.parse().ok()? };
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
    (!host.is_empty() && host.chars().all(is_host)).then(|| SyslogDaemon::Remote { host: host.into(), port })
}

const WORD: &str = "syslog";

/// Where daemons of all kinds listen on Linux.
const USUAL_SOCKET: &str = "/dev/log";

/// RFC 5426 section 3.3.
const USUAL_PORT: u16 = 514;

/// `sizeof(sun_path)`, the zero at its end included.
const SOCKET_PATH_BYTES: usize = 108;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daemons_are_told_from_each_other_and_read_back() {
        let remote = |host: &str, port| Some(SyslogDaemon::Remote { host: host.into(), port });
        let long = format!("syslog:/{}", "x".repeat(108));
        for (text, daemon) in [
            ("syslog", Some(SyslogDaemon::Local("/dev/log".into()))),
            ("syslog:/run/l", Some(SyslogDaemon::Local("/run/l".into()))),
            ("syslog://logs.example", remote("logs.example", 514)),
            ("syslog://10.0.0.1:5514", remote("10.0.0.1", 5514)),
            ("syslog://[2001:db8::1]", remote("2001:db8::1", 514)),
            ("syslog:run/l", None),
            ("syslog:", None),
            ("syslog://", None),
            ("syslog://a:b", None),
            ("syslog://a:70000", None),
            ("syslog://a/b", None),
            (&long, None),
        ] {
            assert_eq!(parse(text), daemon, "{text}");
            if let Some(daemon) = daemon {
                assert_eq!(parse(&daemon.to_string()), Some(daemon));
            }
        }
    }
}
