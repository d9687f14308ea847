//! One cell in one round: the load of its kind.

use anyhow::Error;

use super::loads::Attempt;
use super::record::Outcome;
use super::stage::{Contestant, Stage};
use super::turn::{Measured, Turn, Values};
use super::{faults, sessions, slow_readers, stepped, traced, visits};
use crate::experiment::LoadText;

/// Makes the load and reads the clocks around it.
pub(super) fn cell(stage: &Stage, contestant: &mut Contestant, load: &LoadText, turn: Turn) -> Measured {
    let failed = |error: Error| Measured { outcome: Outcome::of(Err(error)), disturbed: false };
    let calm = |values: Values| (values, false);
    let attempt = Attempt { stage, contestant, turn };
    let told = match load {
        LoadText::Sessions(load) => return sessions::measure(attempt, load).unwrap_or_else(failed),
        LoadText::Closed(load) => attempt.closed(load),
        LoadText::Paced(load) => attempt.paced(load),
        LoadText::H2load(_) | LoadText::Handshakes { .. } | LoadText::IdleTls { .. } => {
            attempt.by_program(load)
        }
        LoadText::SlowReaders(load) => slow_readers::measure(attempt, load),
        LoadText::Fault(load) => faults::measure(stage, contestant, load, turn).map(calm),
        LoadText::Visits { visitors } => visits::measure(attempt, *visitors).map(calm),
        LoadText::Traced { path, responses } => traced::copies(attempt, path, *responses).map(calm),
        LoadText::Stepped { path, close } => stepped::costs(attempt, path, *close).map(calm),
    };
    match told {
        Ok((values, disturbed)) => Measured { outcome: Outcome::Measured(values), disturbed },
        Err(error) => failed(error),
    }
}
