//! How often the bytes of an application's response are copied: [`copies`](crate::copies) looks at the system calls.

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::loads::Attempt;
use super::turn::Values;
use crate::copies::Watch;
use crate::load::{Load, LoadRequest, LoadSettings};
use crate::quantity::Quantity;
use crate::servers::RunningServer;

/// Copied bytes of so many sequential responses, to the bytes of their bodies.
pub(super) fn copies(attempt: Attempt<'_>, path: &str, responses: u64) -> Result<Values> {
    let Attempt { stage, contestant, turn } = attempt;
    let (server, responses) = (&contestant.server, turn.effort.responses(responses));
    let ask = |requests| -> Result<u64> {
        let settings = LoadSettings {
            requests_max: Some(requests),
            sleep: true,
            ..LoadSettings::new(server.address, PATIENCE)
        };
        let report = Load::connect(&settings, [LoadRequest::page(path, None)])?.run()?;
        let failure = report.first_failure.unwrap_or_default();
        ensure!(report.requests == requests && failure.is_empty(), "{failure}");
        Ok(report.bytes)
    };
    // The first response costs more: transports are negotiated, named files looked up.
    ask(WARM_UP_RESPONSES)?;
    let notes = stage.folder.join("notes");
    let _ = fs::remove_dir_all(&notes);
    let application = contestant.application.as_ref().map(RunningServer::processes).unwrap_or_default();
    let watch = Watch::begin(&server.processes(), &application, &notes)?;
    let bytes = ask(responses)? as f64;
    let ledger = watch.end()?;
    Ok([(Quantity::Copies, ledger.copied() as f64 / bytes)].into())
}

/// Under strace even the longest response takes a part of this.
const PATIENCE: Duration = Duration::from_secs(20);
const WARM_UP_RESPONSES: u64 = 3;
