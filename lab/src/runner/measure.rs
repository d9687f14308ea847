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
    if let LoadText::Sessions(load) = load {
        return sessions::measure(stage, contestant, load, turn).unwrap_or_else(|error| Measured {
            outcome: Outcome::Failed(format!("{error:#}")),
            disturbed: false,
        });
    }
    match measure(stage, contestant, load, turn) {
        Ok((values, disturbed)) => Measured { outcome: Outcome::Measured(values), disturbed },
        Err(error) => Measured { outcome: Outcome::Failed(format!("{error:#}")), disturbed: false },
    }
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
