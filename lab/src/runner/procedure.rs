//! Runs a procedure, and keeps what it finds as the lines of any experiment.

use std::path::Path;

use anyhow::{Result, bail};

use super::effort::Effort;
use super::manifest;
use super::record::{CellRecord, Journal, Outcome};
use super::settings::RunSettings;
use crate::experiment::{Experiment, ProcedureText};
use crate::ground::Ground;
use crate::rig::platform;
use crate::servers::ServerKind;
use crate::{chains, moved, restart};

/// Runs it from its beginning: a procedure does not go on where another run has ended.
pub(super) fn run(
    experiment: &Experiment,
    procedure: &ProcedureText,
    baton: &Path,
    settings: &RunSettings,
) -> Result<()> {
    let effort = settings.effort;
    let folder = settings.folder.join(&experiment.name);
    let kind = |_: &str| ServerKind::load(&format!("baton@{}", baton.display()));
    let manifest = manifest::of(experiment, settings, &["baton"], platform(), kind)?;
    let mut journal = Journal::begin(&settings.results, &manifest)?;
    let ground = Ground {
        baton,
        folder: &folder,
        rounds: effort.rounds(experiment),
        duration: effort.duration(experiment),
        is_tiny: effort == Effort::Tenth,
    };
    let mut keep = |load: &str, contender: &str, round, values| {
        let parameters = [("load", load), ("contender", contender)];
        journal.keep(CellRecord {
            load: load.to_owned(),
            contender: contender.to_owned(),
            parameters: parameters.map(|(name, value)| (name.to_owned(), value.into())).into(),
            round,
            outcome: Outcome::of(values),
            disturbed: false,
            load_average: manifest::load_average(),
        })
    };
    match procedure {
        ProcedureText::Chains(settings) => chains::run(settings, ground, &mut keep)?,
        ProcedureText::Moved(settings) => moved::run(settings, ground, &mut keep)?,
        ProcedureText::Restart(settings) => restart::run(settings, ground, &mut keep)?,
    }
    if journal.records.is_empty() {
        bail!("{}: nothing could be measured", experiment.name);
    }
    Ok(())
}
