//! Requests on kept connections: `h2load`, the load generator of nghttp2, and what it reports.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::program;
use super::protocol::{CIPHER, Made, names};
use crate::experiment::{H2loadText, ProtocolName};
use crate::rig::loopback;

/// Makes requests to the server on this port.
///
/// # Errors
/// If `h2load` is missing, a request fails, or the server speaks another protocol or cipher or sends another length.
pub(super) fn load(requests: &H2loadText, bytes: Option<u64>, port: u16, duration: Duration) -> Result<Made> {
    let mut h2load = Command::new("h2load");
    h2load.args(arguments(requests, port, duration));
    program::run(&mut h2load, |report| understood(report, requests, bytes))
}

fn arguments(requests: &H2loadText, port: u16, duration: Duration) -> Vec<String> {
    let mut arguments = vec![
        format!("--duration={}ms", duration.as_millis()),
        format!("--clients={}", requests.connections),
        format!("--max-concurrent-streams={}", requests.streams),
        format!("--tls13-ciphers={CIPHER}"),
    ];
    match requests.protocol {
        ProtocolName::Http1Tls => arguments.push("--h1".to_owned()),
        ProtocolName::Http2Tls | ProtocolName::Http2Clear => arguments
            .extend(["window", "connection-window"].map(|window| format!("--{window}-bits={WINDOW_BITS}"))),
    }
    arguments.extend(requests.fields.iter().map(|(name, value)| format!("--header={name}: {value}")));
    let (scheme, host) = (names(requests.protocol).0, loopback(port));
    // Each client asks for them in turn.
    arguments.extend(requests.path.paths().into_iter().map(|path| format!("{scheme}://{host}{path}")));
    arguments
}

/// Requests that succeeded and bytes of their bodies, from what it reports at its end.
fn understood(report: &str, load: &H2loadText, bytes: Option<u64>) -> Result<(u64, u64)> {
    let after = |start: &str| report.lines().find_map(|line| line.strip_prefix(start));
    let line = |start: &str| after(start).context("an unknown report of h2load");
    let count = |start: &str, name: &str| -> Result<u64> {
        let found = line(start)?.split(", ").find_map(|part| part.strip_suffix(name));
        Ok(found.context("an unknown report of h2load")?.trim().parse()?)
    };
    let requests = |name| count("requests: ", name);
    let failed = requests(" failed")? + requests(" errored")? + requests(" timeout")?;
    let succeeded = count("status codes: ", " 2xx")?;
    ensure!(requests(" done")? > 0 || failed > 0, "nothing was answered in time");
    ensure!(failed == 0 && succeeded > 0, "of {} requests {failed} failed", requests(" started")?);
    let (protocol, wanted) = (line("Application protocol: ")?, names(load.protocol).1);
    ensure!(protocol == wanted, "the server speaks {protocol}, not {wanted}");
    let encrypted = (after("TLS Protocol: "), after("Cipher: "));
    let wanted = match load.protocol {
        ProtocolName::Http1Tls | ProtocolName::Http2Tls => (Some("TLSv1.3"), Some(CIPHER)),
        ProtocolName::Http2Clear => (None, None),
    };
    ensure!(encrypted == wanted, "the server speaks {encrypted:?}, not {wanted:?}");
    // "…, 184.05MB (192995328) data"
    let data = line("traffic: ")?.rsplit_once('(').and_then(|(_, data)| data.strip_suffix(") data"));
    let data: u64 = data.context("an unknown report of h2load")?.parse()?;
    if let Some(bytes) = bytes {
        // Not counted are bytes that came before its clock began. Counted are those of requests under way at the end.
        let under_way = (load.connections * load.streams) as u64;
        let is_whole = data.abs_diff(succeeded * bytes) <= under_way * bytes;
        ensure!(is_whole, "{data} bytes came for {succeeded} files of {bytes}");
    }
    Ok((succeeded, data))
}

/// Windows of 1 GiB: the servers' own scheduling is compared, not how they wait for a window.
const WINDOW_BITS: u32 = 30;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::experiment::Ask;
    use crate::experiment::ProtocolName::{Http2Clear, Http2Tls};

    const OUTPUT: &str = "\
starting benchmark...
spawning thread #0: 8 total client(s). Timing-based test with 0s of warm-up time and 1s of main duration for measurements.
progress: 100% of clients started
TLS Protocol: TLSv1.3
Cipher: TLS_AES_128_GCM_SHA256
Server Temp Key: X25519 253 bits
Application protocol: h2
Stopped all clients for thread #0

finished in 1.06s, 188472.00 req/s, 218.03MB/s
requests: 188472 total, 189272 started, 188472 done, 188472 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 188472 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 218.03MB (228616928) total, 30.74MB (32228712) headers (space savings 24.34%), 184.05MB (192995328) data
                     min         max         mean         sd        +/- sd
time for request:      253us     92.84ms      2.30ms      5.28ms    95.04%
";
    fn requests(protocol: ProtocolName) -> H2loadText {
        H2loadText {
            protocol,
            connections: 8,
            streams: 100,
            path: Ask::One("/1k.html".into()),
            fields: BTreeMap::new(),
        }
    }

    fn said(from: &str, to: &str, protocol: ProtocolName) -> String {
        let understood = understood(&OUTPUT.replace(from, to), &requests(protocol), Some(1024));
        understood.map_or_else(|error| error.to_string(), |found| format!("{found:?}"))
    }

    #[test]
    fn a_report_is_understood() {
        assert_eq!(said("", "", Http2Tls), "(188472, 192995328)");
        assert_eq!(said(OUTPUT, "h2load: cannot resolve", Http2Tls), "an unknown report of h2load");
    }

    #[test]
    fn a_mix_is_asked_for_with_its_fields() {
        let mix = H2loadText {
            path: Ask::Paths(vec!["/a".into(), "/b?c".into()]),
            fields: BTreeMap::from([("Accept-Encoding".into(), "gzip".into())]),
            ..requests(Http2Tls)
        };
        let arguments = arguments(&mix, 443, Duration::from_secs(1));
        assert!(arguments.contains(&"--header=Accept-Encoding: gzip".into()), "{arguments:?}");
        assert!(arguments.ends_with(&["https://127.0.0.1:443/a".into(), "https://127.0.0.1:443/b?c".into()]));
    }

    #[test]
    fn all_kinds_of_failure_count() {
        let all = said("0 failed, 0 errored, 0 timeout", "1 failed, 2 errored, 4 timeout", Http2Tls);
        assert_eq!(all, "of 189272 requests 7 failed");
        assert!(said("0 failed", "3 failed", Http2Tls).contains("3 failed"));
        assert!(said("188472 2xx, 0 3xx", "0 2xx, 188472 3xx", Http2Tls).contains("failed"));
    }

    #[test]
    fn another_protocol_cipher_or_length_is_refused() {
        assert!(said("protocol: h2", "protocol: http/1.1", Http2Tls).contains("not h2"));
        assert!(said("TLSv1.3", "TLSv1.2", Http2Tls).contains("TLSv1.2"));
        assert!(said("AES_128", "AES_256", Http2Tls).contains("AES_256"));
        assert!(said("(192995328)", "(192000000)", Http2Tls).contains("bytes came"));
        assert!(said("protocol: h2", "protocol: h2c", Http2Clear).contains("TLSv1.3"));
    }
}
