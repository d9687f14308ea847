//! This generator beside wrk: which of them gets more from a server, with one thread each, in turns.
//!
//! ```sh
//! taskset -c 0 target/release/baton -c site.toml &
//! taskset -c 1 cargo run --release -p baton-load --example beside_wrk -- 127.0.0.1:8080 /1k.html 64 3 5
//! ```
//!
//! The numbers are connections, seconds of a turn, and turns. The answers have to be small: else the server is measured.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use baton_load::{Load, LoadRequest, LoadSettings, RequestList};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, path, connections, seconds, turns] = &arguments[..] else {
        anyhow::bail!("expected ADDRESS PATH CONNECTIONS SECONDS TURNS")
    };
    let address: SocketAddr = address.parse().context("the address")?;
    let (connections, seconds, turns): (usize, u64, usize) =
        (connections.parse()?, seconds.parse()?, turns.parse()?);
    let mut ratios = Vec::new();
    for _ in 0..turns {
        let theirs = wrk(address, path, connections, seconds)?;
        let (ours, busy) = load(address, path, connections, seconds)?;
        println!(
            "wrk {theirs:.0}/s, this generator {ours:.0}/s, busy {:.0} %: {:.2}",
            100.0 * busy,
            ours / theirs
        );
        ratios.push(ours / theirs);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median {:.2} of wrk's rate", ratios.get(turns / 2).context("no turn")?);
    Ok(())
}

/// Requests per second, and the share of the time in which the generator was busy.
fn load(address: SocketAddr, path: &str, connections: usize, seconds: u64) -> Result<(f64, f64)> {
    let settings = LoadSettings {
        address,
        connections,
        connection_per_request: false,
        idle_connections: 0,
        duration: Duration::from_secs(seconds),
        requests_max: None,
        requests_per_second: None,
        sleep: false,
        verify: false,
    };
    let list = RequestList::new(address, false, [LoadRequest::page(path, None)]);
    let report = Load::connect(&settings, list)?.run()?;
    ensure!(report.failed() == 0, "{}", report.figures());
    Ok((report.figures().requests_per_second, report.client_busy))
}

fn wrk(address: SocketAddr, path: &str, connections: usize, seconds: u64) -> Result<f64> {
    let output = Command::new("wrk")
        .args([
            "-t1",
            &format!("-c{connections}"),
            &format!("-d{seconds}s"),
            &format!("http://{address}{path}"),
        ])
        .output()
        .context("wrk, which `apt-get install wrk` installs")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rate = text.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
    rate.and_then(|rate| rate.trim().parse().ok()).with_context(|| format!("wrk said: {text}"))
}
