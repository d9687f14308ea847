//! Handshakes: `openssl s_time` opens a connection after the other, with a request on each, and what it reports.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::program::{self, Ended};
use super::protocol::{CIPHER, Made, SMALL};
use crate::rig::loopback;

/// Opens connections to the server on this port; it counts whole seconds.
///
/// # Errors
/// If `openssl` is missing or fails, a body is missing, or sessions were resumed where they should not be, or not
/// where they should.
pub(super) fn load(resumed: bool, port: u16, duration: Duration) -> Result<Made> {
    let (path, bytes) = SMALL;
    let arguments = [
        "s_time".to_owned(),
        if resumed { "-reuse" } else { "-new" }.to_owned(),
        "-tls1_3".to_owned(),
        format!("-ciphersuites={CIPHER}"),
        format!("-connect={}", loopback(port)),
        format!("-www={path}"),
        format!("-time={}", duration.as_secs_f64().ceil()),
    ];
    let Ended { output, elapsed, cpu } = program::run("openssl", &arguments)?;
    let report =
        Report::parse(&String::from_utf8_lossy(&output)).context("an unknown report of openssl s_time")?;
    report.check(resumed)?;
    Ok(Made { requests: report.connections, bytes: report.connections * bytes, elapsed, client_cpu: cpu })
}

/// What `s_time` reports at its end.
#[derive(Debug, PartialEq, Eq)]
struct Report {
    connections: u64,
    /// Connections that resumed a session.
    resumed: u64,
    /// Heads and bodies.
    bytes_per_connection: u64,
}

impl Report {
    /// A letter stands for each connection: `r` if it resumed a session, else another for its version.
    fn parse(text: &str) -> Option<Self> {
        let letters = text
            .lines()
            .filter(|line| line.bytes().all(|letter| b"r*t3".contains(&letter)))
            .flat_map(str::bytes)
            .filter(|letter| *letter == b'r')
            .count();
        // "760 connections in 2 real seconds, 1310 bytes read per connection"
        let line = text.lines().find(|line| line.ends_with(" bytes read per connection"))?;
        let (connections, rest) = line.split_once(" connections in ")?;
        let (_, bytes) = rest.split_once(" real seconds, ")?;
        Some(Self {
            connections: connections.parse().ok()?,
            resumed: letters as u64,
            bytes_per_connection: bytes.split(' ').next()?.parse().ok()?,
        })
    }

    fn check(&self, resumed: bool) -> Result<()> {
        ensure!(self.connections > 0, "no connection succeeded");
        ensure!(
            self.bytes_per_connection > SMALL.1,
            "{} bytes are no whole answer",
            self.bytes_per_connection
        );
        let expected = if resumed { self.connections } else { 0 };
        ensure!(
            self.resumed == expected,
            "of {} connections {} resumed a session, not {expected}",
            self.connections,
            self.resumed
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = "\
Collecting connection statistics for 1 seconds
***

3 connections in 0.42s; 1809.52 connections/user sec, bytes read 3930
3 connections in 2 real seconds, 1310 bytes read per connection
";
    const RESUMED: &str = "\
Collecting connection statistics for 1 seconds


Now timing with session id reuse.
rrrr

4 connections in 0.37s; 3910.81 connections/user sec, bytes read 5240
4 connections in 2 real seconds, 1310 bytes read per connection
";

    #[test]
    fn resumed_handshakes_are_told_from_full_ones() {
        let full = Report::parse(FULL).unwrap();
        assert_eq!(full, Report { connections: 3, resumed: 0, bytes_per_connection: 1310 });
        assert!(full.check(false).is_ok());
        assert!(full.check(true).unwrap_err().to_string().contains("not 3"));

        let resumed = Report::parse(RESUMED).unwrap();
        assert_eq!(resumed, Report { connections: 4, resumed: 4, bytes_per_connection: 1310 });
        assert!(resumed.check(true).is_ok());
        assert!(resumed.check(false).is_err());
        let once_in_full = Report::parse(&RESUMED.replace("rrrr", "rr*r")).unwrap();
        assert!(once_in_full.check(true).unwrap_err().to_string().contains("3 resumed"));
    }

    #[test]
    fn an_answer_without_its_body_is_refused() {
        let report = Report::parse(&FULL.replace("1310 bytes", "310 bytes")).unwrap();
        assert!(report.check(false).unwrap_err().to_string().contains("no whole answer"));
        assert_eq!(Report::parse("s_time: unable to connect"), None);
    }
}
