//! Sessions over a SPECweb99-like site: its statistics, and what a server made of them.
//!
//! ```sh
//! target/release/baton serve /tmp/site &
//! cargo run --release -p baton-load --example sessions -- 127.0.0.1:8080 /tmp/site 20000 10
//! ```
//!
//! The numbers are requests per second and seconds, of which as many again go before the measurement. The site is written
//! to the folder, 205 MB.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use baton_load::sessions::{self, SessionLoad, SessionSettings};
use baton_load::site::SiteKind;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, root, rate, seconds] = &arguments[..] else {
        anyhow::bail!("expected ADDRESS FOLDER RATE SECONDS")
    };
    let address: SocketAddr = address.parse().context("the address")?;
    let duration = Duration::from_secs(seconds.parse()?);
    let site = SiteKind::Specweb99 { directories: 40, requests: 500_000 }.make()?;
    print!("{site}");
    site.write(Path::new(root))?;
    let load: SessionLoad = serde_json::from_str(&format!("{{ \"requests_per_second\": {rate} }}"))?;
    let settings =
        SessionSettings { address, load, first: 0, warm_up: duration, duration, sleep: false, verify: false };
    let report = sessions::run(&settings, &site.script)?;
    println!("under way    {} sessions at the end", report.unanswered);
    println!(
        "requests     {}, {:.0}/s, goodput {:.1} Mbit/s",
        report.requests,
        report.rate(),
        report.goodput_mbit()
    );
    println!("sessions     {:?}", report.sessions);
    println!("timeouts     {}, and {} before the server read the request", report.timeouts, report.unread);
    println!("judged       {:?}", report.judge());
    Ok(())
}
