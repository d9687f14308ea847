//! Sessions on a contender: what was complete in time, and whether files of every size got their due.

use std::thread;

use anyhow::{Result, anyhow};

use super::loads::{Attempt, Watch, of_report};
use super::record::Outcome;
use super::turn::Measured;
use crate::load::NoResult;
use crate::load::sessions::{self, SessionLoad, SessionSettings};
use crate::quantity::Quantity;

/// Clocks are read from when the measurement begins, for sessions come before.
pub(super) fn measure(attempt: Attempt<'_>, load: &SessionLoad) -> Result<Measured> {
    let Attempt { stage, contestant, turn } = attempt;
    let script = stage.site.script()?;
    let settings = SessionSettings {
        address: contestant.server.address,
        load: load.clone(),
        first: (turn.place * script.session_count() as f64) as usize,
        warm_up: turn.effort.sessions_before(load),
        duration: turn.duration,
        sleep: stage.machine.has_client_beside_server() || contestant.server_box.is_some(),
    };
    let (watch, report) = thread::scope(|scope| {
        let load = scope.spawn(|| contestant.on_client(|| sessions::run(&settings, script)));
        thread::sleep(settings.warm_up);
        (Watch::begin(attempt), load.join())
    });
    let used = watch?.end()?;
    let report = report.map_err(|_| anyhow!("the load has failed"))??;
    match report.judge() {
        Err(NoResult::Unfair(why)) => {
            let outcome = Outcome::Unfair(why.to_string());
            return Ok(Measured { outcome, disturbed: report.client_limited() });
        }
        judged => judged?,
    }
    let mut values = of_report(&report);
    values.insert(Quantity::GoodputMbit, report.goodput_mbit());
    values.insert(Quantity::StartP50Ms, report.starts.us(0.5) / 1e3);
    values.insert(Quantity::StartP99Ms, report.starts.us(0.99) / 1e3);
    used.tell_of(&report, &mut values);
    Ok(Measured { outcome: Outcome::Measured(values), disturbed: report.client_limited() })
}
