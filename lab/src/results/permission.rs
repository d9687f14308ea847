//! Whether a run may be recorded now: an optimised client, committed sources, a quiet machine.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::rig::{CpuTicks, allowed_cpus};
use crate::runner::commit;

/// Refuses a run whose lines would mean little.
///
/// # Errors
/// If this command is not optimised, sources were changed since their commit, or other processes use the CPUs.
pub fn may_record() -> Result<()> {
    optimised(!cfg!(debug_assertions))?;
    committed(&commit())?;
    quiet()
}

/// A client that is not is the limit long before the server.
fn optimised(is_optimised: bool) -> Result<()> {
    ensure!(
        is_optimised,
        "this baton-lab is not optimised: cargo build --release -p baton-lab, and use target/release/baton-lab, or say --anyway"
    );
    Ok(())
}

fn committed(commit: &str) -> Result<()> {
    ensure!(
        !commit.is_empty() && !commit.ends_with('+'),
        "a recorded run names its commit, and the sources were changed since: commit them, or say --anyway"
    );
    Ok(())
}

fn quiet() -> Result<()> {
    let cpus = allowed_cpus()?;
    let before = CpuTicks::of(&cpus)?;
    sleep(LOOK);
    let busy = CpuTicks::of(&cpus)?.busy_since(before);
    ensure!(
        busy <= BUSY_MAX,
        "other processes use {busy:.2} of {} CPUs, and {BUSY_MAX} is the most for a recorded run: end them, wait, or say \
         --anyway",
        cpus.len()
    );
    Ok(())
}

/// Clocks of CPUs tick each 10 ms.
const LOOK: Duration = Duration::from_secs(2);
/// The part of a CPU that a machine uses for itself.
const BUSY_MAX: f64 = 0.1;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn sources_that_were_changed_are_refused_with_a_remedy() {
        assert!(committed("0123abcd").is_ok());
        for changed in ["0123abcd+", ""] {
            let why = committed(changed).unwrap_err().to_string();
            assert!(why.contains("commit them, or say --anyway"), "{why}");
        }
    }

    #[test]
    fn a_client_that_is_not_optimised_is_refused_with_a_remedy() {
        assert!(optimised(true).is_ok());
        let why = optimised(false).unwrap_err().to_string();
        assert!(why.contains("cargo build --release -p baton-lab"), "{why}");
    }

    #[test]
    fn a_busy_machine_is_refused_with_what_others_use() {
        let stop = AtomicBool::new(false);
        let found = thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let found = quiet();
            stop.store(true, Ordering::Relaxed);
            found
        });
        let why = found.unwrap_err().to_string();
        assert!(why.starts_with("other processes use ") && why.contains("--anyway"), "{why}");
    }
}
