//! The recorded runs: of each experiment a manifest and its lines, as the runner writes them; of the simulator its verdicts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use baton_figures::{Claim, Report, claims_table};
use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;
use crate::runner::{CellRecord, Manifest, commit, places, read, report_of};

/// What is in `docs/results`.
#[derive(Debug)]
pub(super) struct Recorded {
    runs: BTreeMap<String, (Manifest, Vec<CellRecord>)>,
    simulator: Simulations,
}

/// What the simulator has found.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Simulations {
    /// Of the sources when it was recorded. The same sources give the same verdicts on any machine.
    commit: String,
    /// Names, titles and claims.
    reports: Vec<Report>,
}

impl Recorded {
    pub(super) fn load(root: &Path, experiments: &[Experiment]) -> Result<Self> {
        let folder = folder(root);
        let mut runs = BTreeMap::new();
        for Experiment { name, .. } in experiments {
            let [head, lines] = places(&folder, name);
            if head.exists() {
                let (manifest, records) = read(&folder, name)?;
                let text = fs::read_to_string(&lines).with_context(|| lines.display().to_string())?;
                ensure!(
                    records.len() == text.lines().count(),
                    "{}: {} of {} lines are of a run: record it again",
                    lines.display(),
                    records.len(),
                    text.lines().count()
                );
                runs.insert(name.clone(), (manifest, records));
            }
        }
        let simulator = folder.join(SIMULATOR);
        let simulator = match fs::read_to_string(&simulator) {
            Ok(text) => serde_json::from_str(&text).with_context(|| simulator.display().to_string())?,
            Err(_) => Simulations::default(),
        };
        Ok(Self { runs, simulator })
    }

    pub(super) fn report(&self, experiment: &Experiment) -> Option<Report> {
        let (manifest, records) = self.runs.get(&experiment.name)?;
        Some(report_of(experiment, manifest, records))
    }

    /// Reports of the simulator, each with its claims.
    pub(super) fn simulations(&self) -> &[Report] {
        &self.simulator.reports
    }

    /// The verdicts of the simulator.
    pub(super) fn simulated(&self) -> String {
        let Simulations { commit, reports } = &self.simulator;
        let claims: Vec<&Claim> = reports.iter().flat_map(|report| &report.claims).collect();
        let holding = claims.iter().filter(|claim| claim.holds()).count();
        match claims.len() {
            0 => "*Not recorded yet:* `baton sim run all --out FOLDER`, then `baton-lab docs --simulated FOLDER`.\n".to_owned(),
            all => format!("Of {all} statements {holding} hold (commit {commit}):\n\n{}", claims_table(reports)),
        }
    }

    /// The lines of an experiment; none if it is not recorded.
    pub(super) fn lines(&self, experiment: &str) -> &[CellRecord] {
        self.runs.get(experiment).map(|(_, lines)| &lines[..]).unwrap_or_default()
    }
}

/// What stands in the place of a figure that is not recorded.
pub(super) fn not_recorded(experiment: &Experiment) -> String {
    format!("*Not recorded yet:* `baton-lab run {} --record`.\n", experiment.name)
}

/// Puts the run of an experiment that is kept in a folder of results into the repository.
///
/// # Errors
/// If nothing is kept, or files cannot be written.
pub fn keep(results: &Path, root: &Path, experiment: &str) -> Result<()> {
    fs::create_dir_all(folder(root))?;
    for (from, to) in places(results, experiment).iter().zip(places(&folder(root), experiment)) {
        fs::copy(from, &to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
    }
    Ok(())
}

/// Puts the verdicts of the simulator into the repository, from the folder that `baton sim run all --out FOLDER` has filled.
///
/// # Errors
/// If the folder has no reports, or one is not understood.
pub fn keep_simulations(from: &Path, root: &Path) -> Result<()> {
    let entries = fs::read_dir(from).with_context(|| from.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    paths.sort();
    ensure!(
        !paths.is_empty(),
        "{}: no reports; `baton sim run all --out FOLDER` writes them",
        from.display()
    );
    let verdicts = paths.iter().map(|path| {
        let text = fs::read_to_string(path)?;
        let Report { name, title, claims, .. } =
            serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        Ok(Report { name, title, claims, ..Report::default() })
    });
    let record = Simulations { commit: commit(), reports: verdicts.collect::<Result<_>>()? };
    fs::create_dir_all(folder(root))?;
    fs::write(folder(root).join(SIMULATOR), serde_json::to_string_pretty(&record)? + "\n")?;
    Ok(())
}

fn folder(root: &Path) -> PathBuf {
    root.join("docs/results")
}

const SIMULATOR: &str = "simulator.json";
