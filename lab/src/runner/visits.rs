//! Servers that lend each other documents: throughput, and how soon the load is spread when a hot spot begins. The published
//! experiments with Distributed Cooperative Web Servers have this shape.
//!
//! Visitors come to the server that has the site, all at once, read pages with their images, and follow the links that they
//! find. What counts at the end is the last third.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::cluster::{Cluster, Ledger};
use super::stage::Contestant;
use super::turn::{Turn, Values};
use super::visitor::{Got, visit};
use crate::quantity::Quantity;

/// Visitors come, all at once.
pub(super) fn measure(contestant: &Contestant, visitors: usize, turn: Turn) -> Result<Values> {
    let cluster =
        contestant.cluster.as_ref().context("visitors come to peers, and this contender has no nodes")?;
    let entry = format!("http://{}/index.html", contestant.server.address.ip());
    let (got, over) = (Got::default(), AtomicBool::new(false));
    let hosts = &cluster.hosts;
    let readings = thread::scope(|scope| {
        for seed in 0..visitors as u64 {
            let (entry, got, over) = (&entry, &got, &over);
            scope.spawn(move || hosts.client.run(|| visit(entry, seed, got, over)));
        }
        let readings = watch(cluster, &got, turn.duration);
        over.store(true, Ordering::Relaxed);
        readings
    })?;
    let failures = got.failures.load(Ordering::Relaxed);
    ensure!(failures == 0, "visitors did not get {failures} documents");
    let mut values = of_readings(&readings);
    if !cluster.nodes.is_empty() {
        let told = contestant.server.control(&["documents", "--json"])?;
        let told: serde_json::Value = serde_json::from_slice(&told)?;
        let lent = told["sites"][0]["lent"].as_array().map_or(0, Vec::len);
        values.insert(Quantity::Lent, lent as f64);
    }
    Ok(values)
}

/// What visitors have got, and servers have sent, until now.
#[derive(Clone, Debug)]
struct Reading {
    seconds: f64,
    documents: u64,
    redirects: u64,
    ledger: Ledger,
}

/// A reading at the beginning, and one after each second.
fn watch(cluster: &Cluster, got: &Got, duration: Duration) -> Result<Vec<Reading>> {
    let start = Instant::now();
    let read = || -> Result<Reading> {
        Ok(Reading {
            seconds: start.elapsed().as_secs_f64(),
            documents: got.documents.load(Ordering::Relaxed),
            redirects: got.redirects.load(Ordering::Relaxed),
            ledger: cluster.ledger()?,
        })
    };
    let mut readings = vec![read()?];
    while start.elapsed() < duration {
        sleep(SECOND.min(duration / 3));
        readings.push(read()?);
    }
    Ok(readings)
}

fn of_readings(readings: &[Reading]) -> Values {
    let last = readings.len() - 1;
    // Documents per second between two readings.
    let rate = |begin: usize, end: usize| {
        let (begin, end) = (&readings[begin], &readings[end]);
        (end.documents - begin.documents) as f64 / (end.seconds - begin.seconds).max(f64::MIN_POSITIVE)
    };
    let settled = last * 2 / 3;
    let (begin, end) = (&readings[settled], &readings[last]);
    let in_the_end = rate(settled, last);
    let redirects =
        (end.redirects - begin.redirects) as f64 / (end.documents - begin.documents).max(1) as f64;
    let mut values = Values::from([
        (Quantity::BeginRate, rate(0, last.min(BEGIN))),
        (Quantity::Rate, in_the_end),
        (Quantity::RedirectShare, redirects),
    ]);
    let spread = (0..=last.saturating_sub(BEGIN))
        .find(|begin| rate(*begin, last.min(begin + BEGIN)) >= SETTLED * in_the_end);
    values.extend(spread.map(|second| (Quantity::SpreadS, second as f64)));
    let imbalance = end.ledger.since(&begin.ledger).imbalance();
    values.extend(imbalance.map(|most| (Quantity::Imbalance, most)));
    values
}

const SECOND: Duration = Duration::from_secs(1);
/// Seconds that are the beginning.
const BEGIN: usize = 3;
/// The load is spread when visitors get so much of what they get in the end.
const SETTLED: f64 = 0.9;

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a hot spot settles when the load is spread. Method: documents in each second, made up.
    #[test]
    fn a_hot_spot_settles_when_the_load_is_spread() {
        let values = |servers: usize, rates: &[u64]| {
            let mut readings = vec![Reading {
                seconds: 0.0,
                documents: 0,
                redirects: 0,
                ledger: Ledger::of_sent(vec![0; servers]),
            }];
            for rate in rates {
                let last = &readings[readings.len() - 1];
                readings.push(Reading {
                    seconds: last.seconds + 1.0,
                    documents: last.documents + rate,
                    redirects: 0,
                    ledger: Ledger::of_sent(vec![last.documents + rate; servers]),
                });
            }
            of_readings(&readings)
        };
        let one = values(1, &[100; 12]);
        let two = values(2, &[100, 100, 100, 120, 150, 190, 200, 200, 200, 200, 200, 200]);
        assert_eq!((one[&Quantity::SpreadS], two[&Quantity::SpreadS]), (0.0, 4.0));
        assert_eq!(
            (two[&Quantity::Rate], two[&Quantity::Imbalance], two[&Quantity::BeginRate]),
            (200.0, 1.0, 100.0)
        );
    }
}
