//! The conditions of a run: the machine, the executables that take part, the file.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use aws_lc_rs::digest::{SHA256, digest};

use super::record::{Manifest, ProgramRecord};
use super::settings::RunSettings;
use crate::experiment::Experiment;
use crate::servers::{REPOSITORY, ServerKind};

/// The manifest of a run that begins now, with these servers on this machine.
///
/// # Errors
/// If an executable cannot be read.
pub(super) fn of(
    experiment: &Experiment,
    settings: &RunSettings,
    servers: &[&str],
    machine: String,
    kind: impl Fn(&str) -> Result<ServerKind>,
) -> Result<Manifest> {
    let mut programs = Vec::new();
    for &name in servers {
        let kind = kind(name)?;
        // Contenders that are not installed show in the lines; what is built for a run has no executable yet.
        if let Ok(program) = kind.installed() {
            programs.push(ProgramRecord {
                name: name.to_owned(),
                version: kind.version().unwrap_or_default(),
                sha256: sha256_of(&program)?,
            });
        }
    }
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Ok(Manifest {
        experiment: experiment.name.clone(),
        commit: commit(),
        file_sha256: hex(experiment.text.as_bytes()),
        rounds: settings.effort.rounds(experiment),
        seconds: settings.effort.duration(experiment).as_secs_f64(),
        settings: settings.settings.clone(),
        programs,
        machine,
        seed: SEED,
        started,
        load_average: load_average(),
    })
}

impl Manifest {
    /// Whether the run was made from the experiment's file as it is now.
    pub(super) fn is_of(&self, experiment: &Experiment) -> bool {
        self.file_sha256 == hex(experiment.text.as_bytes())
    }
}

/// The commit of the sources, with a `+` if they were changed since. Recorded runs and documents count for nothing here.
/// Empty where git or the repository is missing.
pub(crate) fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(["-C", REPOSITORY]).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=8", "HEAD"]) else { return String::new() };
    let changes = git(&["status", "--porcelain", "--", ".", ":!docs", ":!*.md"]);
    if changes.is_some_and(|changes| changes.is_empty()) { commit } else { commit + "+" }
}

/// Of the last minute.
pub(super) fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

fn sha256_of(program: &Path) -> Result<String> {
    Ok(hex(&fs::read(program).with_context(|| program.display().to_string())?))
}

fn hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Of all sequences: the generators of sites begin with it.
const SEED: u64 = 1999;
