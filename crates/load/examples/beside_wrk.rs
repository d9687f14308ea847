//! This generator beside wrk, in turns: which of them spends less CPU time on a request. A core has as many requests to give
//! as that time fits into a second, whatever the server and other programs leave of it.
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

use baton_load::{Load, LoadRequest, LoadSettings};

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
        let ours = load(address, path, connections, seconds)?;
        println!("wrk {theirs:.2} us of CPU time for a request, this generator {ours:.2}");
        ratios.push(theirs / ours);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median: {:.2} of wrk's rate from one core", ratios.get(turns / 2).context("no turn")?);
    Ok(())
}

/// Microseconds of CPU time for a request.
fn load(address: SocketAddr, path: &str, connections: usize, seconds: u64) -> Result<f64> {
    let settings = LoadSettings {
        connections,
        requests_max: None,
        // As wrk does: time that is spun away is no cost of a request.
        sleep: true,
        ..LoadSettings::new(address, Duration::from_secs(seconds))
    };
    let report = Load::connect(&settings, [LoadRequest::page(path, None)])?.run()?;
    ensure!(report.failed() == 0, "{:?}", report.first_failure);
    Ok(report.client_cpu.as_secs_f64() * 1e6 / report.requests as f64)
}

/// The same of wrk.
fn wrk(address: SocketAddr, path: &str, connections: usize, seconds: u64) -> Result<f64> {
    let cpu_before = children_cpu_s()?;
    let output = Command::new("wrk")
        .args([
            "-t1",
            &format!("-c{connections}"),
            &format!("-d{seconds}s"),
            &format!("http://{address}{path}"),
        ])
        .output()
        .context("wrk, which `apt-get install wrk` installs")?;
    let cpu_s = children_cpu_s()? - cpu_before;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let requests = text.lines().find_map(|line| line.trim().split_once(" requests in "));
    let requests: f64 =
        requests.and_then(|(count, _)| count.parse().ok()).with_context(|| format!("wrk said: {text}"))?;
    Ok(cpu_s * 1e6 / requests)
}

/// CPU seconds of programs that have ended, to a hundredth (`proc_pid_stat(5)`, fields 16 and 17).
fn children_cpu_s() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(") ").context("/proc/self/stat")?;
    let ticks = fields.split(' ').skip(13).take(2).map(str::parse::<f64>).sum::<Result<f64, _>>()?;
    Ok(ticks / 100.0)
}
