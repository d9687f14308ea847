//! What bodies cost on their way through a relay, by reading and writing and by `splice`.
//!
//! The relay does nothing else: it passes a request on as it is, finds the length in the response's head, and moves the
//! body. What it saves by one of the ways is the most that a proxy can save by it. Client and origin run on one CPU, the
//! relay on the other. In each round every way moves the same bodies, in an order that rotates.

mod origin;
mod pump;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::load::{Load, LoadRequest, LoadSettings, RequestList};
use crate::markdown::{begin_table, number, row, spread};
use crate::rig::{Isolation, Machine};
use crate::stats::{median, paired_ratio};
pub use origin::OriginSocket;
pub(crate) use origin::{Origin, OriginAddress};
use pump::{Relay, Way};

/// What to measure and how long.
#[derive(Clone, Debug)]
pub struct RelaySettings {
    /// Lengths of bodies in bytes.
    pub sizes: Vec<u64>,
    /// Kinds of origins.
    pub origins: Vec<OriginSocket>,
    /// How often each way is measured for each size.
    pub rounds: usize,
    /// Bytes of bodies that are moved in a cell, in whole responses.
    pub bytes: u64,
}

/// Measures, and returns a table for each kind of origin as Markdown.
///
/// # Errors
/// If there are fewer than two CPUs, or a socket cannot be opened, or a response is wrong.
pub fn run(settings: &RelaySettings) -> Result<String> {
    let machine = Machine::prepare(Isolation::WhenRoot, 1)?;
    let mut text = format!("{}\n", machine.description());
    for kind in &settings.origins {
        let title = format!("\n## CPU time of the relay per response, {kind} origin\n\n");
        text.push_str(&title);
        begin_table(&mut text, "bytes", &COLUMNS.map(str::to_owned));
        for size in &settings.sizes {
            let figures = measure(settings, &machine, *kind, *size)?;
            let of = |way| figures.get(&way).map(Vec::as_slice).unwrap_or_default();
            let values = |way: Way| of(way).iter().map(|(_, us)| *us).collect::<Vec<_>>();
            let ratio = |way| number(paired_ratio(of(way), of(Way::ReadWrite)), 2);
            let all = Way::ALL.map(|way| number(median(&values(way)), 1));
            let mut fields = all.to_vec();
            fields.extend([ratio(Way::SpliceRest), ratio(Way::SpliceAll), spread(&values(Way::ReadWrite))]);
            row(&mut text, &size.to_string(), &fields);
        }
    }
    Ok(text)
}

/// Microseconds of CPU time per response, by way and round.
fn measure(
    settings: &RelaySettings,
    machine: &Machine,
    kind: OriginSocket,
    size: u64,
) -> Result<BTreeMap<Way, Vec<(usize, f64)>>> {
    let origin = Origin::start(kind, size)?;
    let relays: Vec<Relay> = Way::ALL
        .iter()
        .map(|way| Relay::start(*way, origin.address.clone(), &machine.server_cpus))
        .collect::<Result<_>>()?;
    let requests = (settings.bytes / size).clamp(REQUESTS_MIN, REQUESTS_MAX);
    let mut figures: BTreeMap<Way, Vec<(usize, f64)>> = BTreeMap::new();
    for round in 0..=settings.rounds {
        for turn in 0..relays.len() {
            let relay = &relays[(round + turn) % relays.len()];
            let before = relay.cpu_time()?;
            load(relay, size, requests)?;
            let used = relay.cpu_time()?.saturating_sub(before);
            let us = used.as_secs_f64() * 1e6 / requests as f64;
            eprintln!("{round} {kind} {size} {:?}: {us:.1} us", relay.way);
            // The first round opens connections and fills caches.
            if round > 0 {
                figures.entry(relay.way).or_default().push((round, us));
            }
        }
    }
    Ok(figures)
}

/// So many responses, each of the right length.
fn load(relay: &Relay, size: u64, requests: u64) -> Result<()> {
    let settings = LoadSettings {
        address: relay.address,
        connections: if size >= LARGE_BYTES { 4 } else { 32 },
        connection_per_request: false,
        idle_connections: 0,
        duration: PATIENCE,
        requests_max: Some(requests),
        requests_per_second: None,
        // The origin runs on the same CPU.
        sleep: true,
        verify: false,
    };
    let request = LoadRequest::page("/", Some(size));
    let report = Load::connect(&settings, RequestList::new(relay.address, false, [request]))?.run()?;
    let failure = report.first_failure.clone().unwrap_or_default();
    ensure!(report.requests == requests && report.failed() == 0, "{:?}: {failure}", relay.way);
    Ok(())
}

const COLUMNS: [&str; 6] =
    ["read, write: us", "splice the rest: us", "splice all: us", "ratio, the rest", "ratio, all", "spread"];

const REQUESTS_MIN: u64 = 8;
const REQUESTS_MAX: u64 = 20_000;
/// From here on few connections are enough to keep the relay busy.
const LARGE_BYTES: u64 = 4 << 20;
const PATIENCE: Duration = Duration::from_secs(60);
