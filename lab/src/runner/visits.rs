//! Servers that lend each other documents: throughput, and how soon the load is spread when a hot spot begins. The published
//! experiments with Distributed Cooperative Web Servers have this shape.
//!
//! Visitors come to the server that has the site, all at once, read pages with their images, and follow the links that they
//! find. What counts at the end is the last third.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::loads::Attempt;
use super::turn::Values;
use super::visitor::{Got, visit};
use crate::quantity::Quantity;

/// Visitors come, all at once.
pub(super) fn measure(Attempt { contestant, turn, .. }: Attempt<'_>, visitors: usize) -> Result<Values> {
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
        let readings = watch(&got, turn.duration);
        over.store(true, Ordering::Relaxed);
        readings
    });
    let failures = got.failures.load(Ordering::Relaxed);
    ensure!(failures == 0, "visitors did not get {failures} documents");
    Ok(of_readings(&readings))
}

/// How many documents visitors have got until now: at the beginning, and after each second.
fn watch(got: &Got, duration: Duration) -> Vec<(f64, u64)> {
    let start = Instant::now();
    let read = || (start.elapsed().as_secs_f64(), got.documents.load(Ordering::Relaxed));
    let mut readings = vec![read()];
    while start.elapsed() < duration {
        sleep(SECOND.min(duration / 3));
        readings.push(read());
    }
    readings
}

fn of_readings(readings: &[(f64, u64)]) -> Values {
    let last = readings.len() - 1;
    // Documents per second between two readings.
    let rate = |begin: usize, end: usize| {
        let (begin, end) = (readings[begin], readings[end]);
        (end.1 - begin.1) as f64 / (end.0 - begin.0).max(f64::MIN_POSITIVE)
    };
    let in_the_end = rate(last * 2 / 3, last);
    let mut values = Values::from([(Quantity::Rate, in_the_end)]);
    let spread = (0..=last.saturating_sub(BEGIN))
        .find(|begin| rate(*begin, last.min(begin + BEGIN)) >= SETTLED * in_the_end);
    values.extend(spread.map(|second| (Quantity::SpreadS, second as f64)));
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
        let values = |rates: &[u64]| {
            let mut readings = vec![(0.0, 0)];
            for rate in rates {
                let (seconds, documents) = readings[readings.len() - 1];
                readings.push((seconds + 1.0, documents + rate));
            }
            of_readings(&readings)
        };
        let one = values(&[100; 12]);
        let two = values(&[100, 100, 100, 120, 150, 190, 200, 200, 200, 200, 200, 200]);
        assert_eq!((one[&Quantity::SpreadS], two[&Quantity::SpreadS]), (0.0, 4.0));
        assert_eq!((one[&Quantity::Rate], two[&Quantity::Rate]), (100.0, 200.0));
    }
}
