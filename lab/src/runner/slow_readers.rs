//! Fast clients beside slow readers: alone, while the slow ones come, and when all of them read.

use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::crowd::{Crowd, Stop};
use super::loads::Attempt;
use super::turn::{Turn, Values};
use crate::experiment::{ClosedText, SlowReadersText};
use crate::load::NoResult;
use crate::quantity::Quantity;

/// The three phases. A failure of the fast clients fails the cell, and says in which phase.
pub(super) fn measure(attempt: Attempt<'_>, load: &SlowReadersText) -> Result<(Values, bool)> {
    let Attempt { contestant, turn, .. } = attempt;
    let fast = ClosedText::of(load.connections, load.ask.clone());
    let phase = |duration| Attempt { turn: Turn { duration, ..turn }, ..attempt }.closed(&fast);
    let readers = turn.effort.slow_readers(load.readers);
    let (alone, disturbed) = phase(turn.duration).context("alone")?;
    let crowd = Crowd::default();
    let coming = Duration::from_secs_f64(readers as f64 / load.readers_per_second);
    let beside = || {
        unless_starved(phase(coming)).context("while slow readers come")?;
        let limit = Instant::now() + SETTLE_MAX;
        while crowd.served() + crowd.refused() < readers && Instant::now() < limit {
            sleep(Duration::from_millis(50));
        }
        unless_starved(phase(turn.duration)).context("beside all slow readers")
    };
    let (address, path) = (contestant.server.address, &load.slow_path);
    let beside = scope(|scope| {
        let _stop = Stop(&crowd);
        scope.spawn(|| crowd.live(address, path, readers, load.readers_per_second));
        beside()
    });
    let mut values = beside?;
    let rate = |values: &Values| values.get(&Quantity::Rate).copied().unwrap_or_default();
    values.insert(Quantity::KeptRate, rate(&values) / rate(&alone));
    values.insert(Quantity::Served, crowd.served() as f64);
    Ok((values, disturbed))
}

/// Fast clients that starve beside slow ones are what is looked for: their rate is nothing.
fn unless_starved(phase: Result<(Values, bool)>) -> Result<Values> {
    match phase {
        Ok((values, _)) => Ok(values),
        Err(error) if matches!(error.downcast_ref(), Some(NoResult::Starved(_))) => {
            Ok([(Quantity::Rate, 0.0)].into())
        }
        Err(error) => Err(error),
    }
}

/// How long the last slow readers may wait for the beginning of their responses.
const SETTLE_MAX: Duration = Duration::from_secs(15);
