//! The end of the error log, without addresses and queries of clients.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use baton_config::{Destination, HIDDEN, without_credentials};

/// The last lines, or why there are none.
pub(super) fn of(log: &Destination, lines_max: usize) -> String {
    let path = match log {
        Destination::File(path) => path,
        Destination::Stdout | Destination::Stderr | Destination::Syslog(_) | Destination::Off => {
            return "not a file: where the output of the server goes\n".to_owned();
        }
    };
    match end_of(path) {
        Ok(text) => {
            let lines: Vec<_> = text.lines().collect();
            let last = &lines[lines.len().saturating_sub(lines_max)..];
            last.iter().map(|line| redacted(line) + "\n").collect()
        }
        Err(error) => format!("cannot read {}: {error}\n", path.display()),
    }
}

/// The last bytes of a file, from the beginning of a line.
fn end_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let start = file.seek(SeekFrom::End(0))?.saturating_sub(BYTES_MAX);
    // One byte more, so that a line that begins there is seen to be whole.
    file.seek(SeekFrom::Start(start.saturating_sub(1)))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match text.split_once('\n') {
        Some((_, whole)) if start > 0 => whole.to_owned(),
        _ => text,
    })
}

/// A line without credentials, addresses and queries.
fn redacted(line: &str) -> String {
    without_addresses(&without_queries(&without_credentials(line)))
}

fn without_queries(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once('?') {
        let end = behind.find([' ', '"', '\'', '`', ',']).unwrap_or(behind.len());
        out.push_str(before);
        out.push('?');
        out.push_str(if end > 0 { HIDDEN } else { "" });
        rest = &behind[end..];
    }
    out + rest
}

/// Addresses are runs of the characters that they are made of. Those of this host alone say nothing about clients.
fn without_addresses(line: &str) -> String {
    let is_of_address = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
    let mut out = String::new();
    let mut rest = line;
    while !rest.is_empty() {
        let (run, behind) = rest.split_at(rest.find(|c| !is_of_address(c)).unwrap_or(rest.len()));
        let is_within_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let is_word = is_within_word(out.chars().next_back()) || is_within_word(behind.chars().next());
        let address = run.trim_end_matches(['.', ':']);
        if !is_word && is_clients_address(address) {
            out.push_str(HIDDEN);
            out.push_str(&run[address.len()..]);
        } else {
            out.push_str(run);
        }
        let next = behind.chars().next().map_or(0, char::len_utf8);
        out.push_str(&behind[..next]);
        rest = &behind[next..];
    }
    out
}

fn is_clients_address(text: &str) -> bool {
    let ip = text.parse::<IpAddr>().or_else(|_| text.parse().map(|with_port: SocketAddr| with_port.ip()));
    ip.is_ok_and(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

/// More than any number of lines that an issue has use for.
const BYTES_MAX: u64 = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_of_clients_is_hidden() {
        for (line, shown) in [
            (
                "2027-01-01T12:34:56.789Z warning: 10.1.2.3 left",
                "2027-01-01T12:34:56.789Z warning: (redacted) left",
            ),
            ("from 192.0.2.7:443: reset.", "from (redacted): reset."),
            ("[2001:db8::1]:80, 2001:db8::2.", "[(redacted)]:80, (redacted)."),
            (
                "listens on 127.0.0.1:80, [::1]:80, 0.0.0.0:80",
                "listens on 127.0.0.1:80, [::1]:80, 0.0.0.0:80",
            ),
            ("baton 0.1.0.2x, std::fs at 1:2", "baton 0.1.0.2x, std::fs at 1:2"),
            ("\"GET /a?b=c&d HTTP/1.1\", why?", "\"GET /a?(redacted) HTTP/1.1\", why?"),
            ("http://ada:pw@origin/x", "http://(redacted)@origin/x"),
        ] {
            assert_eq!(redacted(line), shown);
        }
    }

    #[test]
    fn only_whole_lines_of_the_end_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let line = "x".repeat(99);
        std::fs::write(&path, format!("{line}\n").repeat(5_000)).unwrap();
        let told = of(&Destination::File(path.clone()), usize::MAX);
        assert!(told.lines().all(|one| one == line) && told.len() > 200 << 10, "{} bytes", told.len());
        assert_eq!(of(&Destination::File(path), 2).lines().count(), 2);
    }
}
