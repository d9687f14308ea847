//! Recorded runs, and the documents that show them: no figure without its lines.
//!
//! ```text
//!   baton-lab run NAME --record ─► docs/results/NAME.json, .jsonl ─┬─► blocks of docs/*.md, README.md
//!   baton sim run all --out DIR ─► docs/results/simulator.json ────┴─► columns of docs/experiments.md
//! ```
//!
//! A block begins with `<!-- figure: NAME -->` and ends with `<!-- end -->`. NAME is an experiment, `peers`, `headline` or
//! `simulator`. A
//! number in a page of figures stands in a block, or under a line that gives its date, its commit and the command that
//! repeats it ([`loose`]).

mod headline;
mod loose;
mod peers;
mod permission;
mod recorded;
mod rows;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use baton_figures::{Replaced, replaced};

use crate::experiment::Experiment;
use crate::servers::REPOSITORY;
pub use permission::may_record;
use recorded::{Recorded, not_recorded};
pub use recorded::{keep, keep_simulations};

/// Where the documents of these sources are.
pub fn repository() -> &'static Path {
    Path::new(REPOSITORY)
}

/// Writes blocks and columns anew. Returns the documents that have changed.
///
/// # Errors
/// If a recorded run cannot be read, or a block has no end or an unknown name.
pub fn write(root: &Path) -> Result<Vec<PathBuf>> {
    let writer = Writer::new(root)?;
    let mut changed = Vec::new();
    for (path, text) in documents(root)? {
        let new = writer.document(&path, &text).map_err(|problems| anyhow::anyhow!(problems.join("\n")))?;
        if new != text {
            fs::write(root.join(&path), new).with_context(|| path.display().to_string())?;
            changed.push(path);
        }
    }
    Ok(changed)
}

/// What is wrong with the documents: blocks and columns that are not what the recorded lines give, numbers without lines.
///
/// # Errors
/// If a document or a recorded run cannot be read.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let writer = Writer::new(root)?;
    let mut found = Vec::new();
    for (path, text) in documents(root)? {
        let shown = path.display().to_string();
        let Replaced { stale, errors, .. } = replaced(&text, &|name| writer.block(name));
        found.extend(errors.iter().chain(&stale).map(|error| format!("{shown}:{error}: baton-lab docs")));
        if path.ends_with(ROWS) {
            found.extend(
                rows::stale(&text, &writer.verdicts()).iter().map(|error| format!("{shown}:{error}")),
            );
        }
        if loose::is_checked(&path) {
            found.extend(loose::tables(&text).iter().map(|error| format!("{shown}:{error}")));
        }
    }
    Ok(found)
}

/// The documents that may have blocks.
fn documents(root: &Path) -> Result<Vec<(PathBuf, String)>> {
    let folder = root.join("docs");
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut paths = vec![PathBuf::from("README.md")];
    for entry in entries {
        let name = PathBuf::from(entry?.file_name());
        if name.extension().is_some_and(|ending| ending == "md") {
            paths.push(Path::new("docs").join(name));
        }
    }
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(root.join(&path)).with_context(|| path.display().to_string())?;
        Ok((path, text))
    };
    paths.into_iter().map(read).collect()
}

struct Writer {
    experiments: Vec<Experiment>,
    recorded: Recorded,
}

impl Writer {
    fn new(root: &Path) -> Result<Self> {
        let experiments = Experiment::all()?;
        Ok(Self { recorded: Recorded::load(root, &experiments)?, experiments })
    }

    fn document(&self, path: &Path, text: &str) -> Result<String, Vec<String>> {
        let shown = path.display();
        let Replaced { text, errors, .. } = replaced(text, &|name| self.block(name));
        if !errors.is_empty() {
            return Err(errors.iter().map(|error| format!("{shown}:{error}")).collect());
        }
        Ok(if path.ends_with(ROWS) { rows::filled(&text, &self.verdicts()) } else { text })
    }

    /// What belongs into a block.
    fn block(&self, name: &str) -> Option<String> {
        match name {
            "peers" => Some(peers::block(&self.experiments, &self.recorded)),
            "headline" => Some(headline::block(&self.recorded)),
            "simulator" => Some(self.recorded.simulated()),
            _ => {
                let experiment = self.experiments.iter().find(|experiment| experiment.name == name)?;
                let report = self.recorded.report(experiment);
                Some(report.map_or_else(|| not_recorded(experiment), |report| report.to_markdown()))
            }
        }
    }

    fn verdicts(&self) -> Vec<rows::Verdicts> {
        let of = |experiment: &Experiment| {
            let claims = self.recorded.report(experiment).map(|report| report.claims);
            rows::Verdicts { command: format!("baton-lab run {}", experiment.name), claims }
        };
        let simulated = self.recorded.simulations().iter().map(|report| rows::Verdicts {
            command: format!("baton sim run {}", report.name),
            claims: Some(report.claims.clone()),
        });
        self.experiments.iter().map(of).chain(simulated).collect()
    }
}

/// The page of published experiments.
const ROWS: &str = "docs/experiments.md";
