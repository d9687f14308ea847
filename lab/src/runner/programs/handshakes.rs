//! Handshakes: `openssl s_time` opens a connection after the other, with a request on each, and what it reports.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::program;
use super::protocol::{CIPHER, Made, SMALL};
use crate::rig::loopback;

/// Opens connections to the server on this port; it counts whole seconds.
///
/// # Errors
/// If `openssl` is missing or fails, a body is missing, or sessions were resumed where they should not be, or not
/// where they should.
pub(super) fn load(resumed: bool, port: u16, duration: Duration) -> Result<Made> {
    let mut openssl = Command::new("openssl");
    openssl.args(["s_time", if resumed { "-reuse" } else { "-new" }, "-tls1_3", "-www", SMALL.0]);
    openssl.arg(format!("-ciphersuites={CIPHER}")).arg(format!("-connect={}", loopback(port)));
    openssl.arg(format!("-time={}", duration.as_secs_f64().ceil()));
    program::run(&mut openssl, |report| {
        let connections = understood(report, resumed)?;
        Ok((connections, connections * SMALL.1))
    })
}

/// The number of connections, from what it reports at its end.
fn understood(report: &str, resumed: bool) -> Result<u64> {
    // "760 connections in 2 real seconds, 1310 bytes read per connection"
    let counts = report.lines().find_map(|line| {
        let (connections, rest) =
            line.strip_suffix(" bytes read per connection")?.split_once(" connections in ")?;
        let (_, bytes) = rest.split_once(" real seconds, ")?;
        Some((connections.parse::<u64>().ok()?, bytes.parse::<u64>().ok()?))
    });
    let (connections, bytes) = counts.context("an unknown report of openssl s_time")?;
    ensure!(connections > 0, "no connection succeeded");
    // Heads and bodies.
    ensure!(bytes > SMALL.1, "{bytes} bytes are no whole answer");
    // A letter stands for each connection: `r` if it resumed a session, else another for its version.
    let letters = report.lines().filter(|line| line.bytes().all(|letter| b"r*t3".contains(&letter)));
    let found = letters.flat_map(str::bytes).filter(|letter| *letter == b'r').count() as u64;
    let expected = if resumed { connections } else { 0 };
    ensure!(found == expected, "of {connections} connections {found} resumed a session, not {expected}");
    Ok(connections)
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
        let why = |report: &str, resumed| understood(report, resumed).unwrap_err().to_string();
        assert_eq!(understood(FULL, false).unwrap(), 3);
        assert!(why(FULL, true).contains("not 3"));
        assert_eq!(understood(RESUMED, true).unwrap(), 4);
        assert!(why(RESUMED, false).contains("not 0"));
        assert!(why(&RESUMED.replace("rrrr", "rr*r"), true).contains("3 resumed"));
    }

    #[test]
    fn an_answer_without_its_body_is_refused() {
        let why = |report: &str| understood(report, false).unwrap_err().to_string();
        assert!(why(&FULL.replace("1310 bytes", "310 bytes")).contains("no whole answer"));
        assert!(why("s_time: unable to connect").contains("an unknown report"));
    }
}
