//! What the simulator says of a cache before an origin: the same sessions, as a log would tell of them.

use std::collections::HashMap;

use anyhow::{Context, Result};
use baton_segment::policy::{Aim, PolicyChoice};
use baton_sim::caching::{CacheScenario, Workload};
use baton_sim::compare_caches;
use baton_sim::runner::Runner;
use baton_sim::trace::{LogRead, TargetFacts, Trace};

use crate::load::{Expects, Script};
use crate::quantity::Quantity;
use crate::runner::turn::Values;

/// The origin's bytes for each byte of a body, and the share of starts that miss, with a cache of so many bytes, in
/// blocks of so many, when this many sessions of the script begin, each second so many. The first ones, a share of so much,
/// warm it up.
///
/// # Errors
/// The script asks for no parts of files.
pub(in crate::runner) fn predict_media(
    policy: PolicyChoice,
    (cache_bytes, block_bytes): (u64, u64),
    script: &Script,
    (sessions, per_second, warm_up): (usize, f64, f64),
) -> Result<Values> {
    let mut log = Log::default();
    for number in 0..sessions {
        log.take_session(script, number, (number as f64 / per_second * 1000.0) as u64)?;
    }
    let trace = Trace::new("sessions".to_owned(), log.files, Vec::new());
    let workload = Workload::of_log(&trace, log.reads);
    // The server's cache is in memory: there its policies count requests.
    let mut scenario = CacheScenario::new(block_bytes, Aim::Hits, 1)?;
    scenario.warm_up = warm_up;
    let share = cache_bytes as f64 / workload.bytes().max(1) as f64;
    let report = compare_caches(Runner::new(1, &|_, _| ()), &workload, &scenario, &[policy], &[share]);
    let outcome = report.caches.first().context("the simulator has no outcome")?;
    Ok([
        (Quantity::SimulatedOriginShare, 1.0 - outcome.saved_ratio()),
        (Quantity::SimulatedDelayed, 100.0 * outcome.delayed_ratio()),
    ]
    .into())
}

#[derive(Default)]
struct Log<'a> {
    files: Vec<TargetFacts>,
    known: HashMap<&'a str, u32>,
    reads: Vec<LogRead>,
}

impl<'a> Log<'a> {
    /// The requests of a session that begins at this moment; each session has a client of its own.
    fn take_session(&mut self, script: &'a Script, number: usize, begin_ms: u64) -> Result<()> {
        let mut at_ms = begin_ms;
        for step in script.session(number % script.session_count()) {
            let request = &script.requests()[step.request as usize];
            let Expects::Part { file_bytes, start } = request.expects else {
                anyhow::bail!("{} is no part of a file", request.path);
            };
            let target = *self.known.entry(&request.path).or_insert_with(|| {
                self.files.push(TargetFacts { hash: 0, bytes: file_bytes, dynamic: false });
                self.files.len() as u32 - 1
            });
            at_ms += u64::from(step.pause_ms);
            self.reads.push(LogRead {
                begin_ms: at_ms,
                end_ms: at_ms,
                client: number as u64,
                target,
                start: Some(start),
                bytes: request.bytes.unwrap_or_default(),
                is_media: true,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::site::SiteKind;

    #[test]
    fn a_policy_for_films_is_predicted_to_delay_fewer_starts() {
        let site = SiteKind::Media { films: 60, sessions: 1000 }.make().unwrap();
        let predict = |policy: &str, share: u64| {
            let bytes = site.bytes() * share / 100;
            predict_media(policy.parse().unwrap(), (bytes, 32 << 10), &site.script, (1000, 10.0, 0.3))
                .unwrap()
        };
        let (reach, lru) = (predict("reach", 10), predict("lru", 10));
        assert!(
            reach[&Quantity::SimulatedDelayed] < 0.8 * lru[&Quantity::SimulatedDelayed],
            "{reach:?} {lru:?}"
        );
        let all = predict("reach", 100);
        assert!(all[&Quantity::SimulatedOriginShare] < reach[&Quantity::SimulatedOriginShare]);
    }
}
