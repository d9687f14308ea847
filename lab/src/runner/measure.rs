//! One cell in one round: the load of its kind.

use anyhow::{Result, bail};

use super::loads::{by_program, closed, paced};
use super::record::Outcome;
use super::stage::{Contestant, Stage};
use super::turn::{Measured, Turn, Values};
use super::{faults, sessions, slow_readers, stepped, traced, visits};
use crate::experiment::LoadText;

/// Makes the load and reads the clocks around it.
pub(super) fn cell(stage: &Stage, contestant: &mut Contestant, load: &LoadText, turn: Turn) -> Measured {
    let measured = match load {
        LoadText::Sessions(load) => sessions::measure(stage, contestant, load, turn),
        _ => measure(stage, contestant, load, turn)
            .map(|(values, disturbed)| Measured { outcome: Outcome::Measured(values), disturbed }),
    };
    measured.unwrap_or_else(|error| Measured { outcome: Outcome::of(Err(error)), disturbed: false })
}

fn measure(
    stage: &Stage,
    contestant: &mut Contestant,
    load: &LoadText,
    turn: Turn,
) -> Result<(Values, bool)> {
    match load {
        LoadText::Closed(load) => closed(stage, contestant, load, turn),
        LoadText::Paced(load) => paced(stage, contestant, load, turn),
        LoadText::H2load(_) | LoadText::Handshakes { .. } | LoadText::IdleTls { .. } => {
            by_program(stage, contestant, load, turn)
        }
        LoadText::Sessions(_) => bail!("sessions are judged as well as measured"),
        LoadText::SlowReaders(load) => slow_readers::measure(stage, contestant, load, turn),
        LoadText::Fault(load) => Ok((faults::measure(stage, contestant, load, turn)?, false)),
        LoadText::Visits { visitors } => Ok((visits::measure(contestant, *visitors, turn)?, false)),
        LoadText::Traced { path, responses } => {
            Ok((traced::copies(contestant, path, turn.effort.responses(*responses), &stage.folder)?, false))
        }
        LoadText::Stepped { path, close } => {
            let requests = turn.effort.responses(stepped::REQUESTS);
            Ok((stepped::costs(&contestant.server, path, *close, requests)?, false))
        }
    }
}
