//! What a run keeps: a manifest, and a line of JSON for each cell and round.
//!
//! Lines are written as soon as they are measured, so an interrupted run loses none. A run of the same file, executables and
//! durations goes on where the last one ended.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::experiment::Parameters;
use crate::quantity::{Quantity, known};

/// A cell in a round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CellRecord {
    pub(crate) load: String,
    pub(crate) contender: String,
    pub(crate) parameters: Parameters,
    pub(crate) round: usize,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    /// Other processes took part of the server's CPU.
    #[serde(default)]
    pub(crate) disturbed: bool,
    /// Of the last minute.
    pub(crate) load_average: f64,
}

/// What became of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    #[serde(deserialize_with = "known")]
    Measured(BTreeMap<Quantity, f64>),
    /// Some clients were served at the others' expense.
    Unfair(String),
    /// A single wrong answer is enough.
    Failed(String),
    /// The contender, or this machine, is not able to do it.
    Cannot(String),
}

/// Under which conditions a run was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) experiment: String,
    /// Of the sources; ends in `+` if they were changed since.
    #[serde(default)]
    pub(crate) commit: String,
    /// SHA-256 of the file.
    pub(crate) file_sha256: String,
    pub(crate) rounds: usize,
    pub(crate) seconds: f64,
    /// Settings of Baton beside those of the file.
    pub(crate) settings: Vec<String>,
    pub(crate) programs: Vec<ProgramRecord>,
    /// CPU, kernel, CPUs of server and client, network.
    pub(crate) machine: String,
    /// Of the site and the order of requests.
    pub(crate) seed: u64,
    /// Seconds since 1970.
    pub(crate) started: u64,
    pub(crate) load_average: f64,
}

/// An executable that took part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProgramRecord {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) sha256: String,
}

impl fmt::Display for CellRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { load, contender, round, outcome, .. } = self;
        let disturbed = if self.disturbed { ", disturbed" } else { "" };
        write!(f, "{} {load}, {contender}: {outcome}{disturbed}", round + 1)
    }
}

impl Outcome {
    /// Values, or why there are none.
    pub(crate) fn of(found: Result<BTreeMap<Quantity, f64>>) -> Self {
        found.map_or_else(|error| Self::Failed(format!("{error:#}")), Self::Measured)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measured(values) => {
                let brief = [Quantity::CpuUs, Quantity::Rate, Quantity::P99Us];
                let shown =
                    values.iter().filter(|(name, _)| values.len() <= brief.len() || brief.contains(name));
                let shown: Vec<_> = shown.map(|(name, value)| format!("{value:.2} {name}")).collect();
                f.write_str(&shown.join(", "))
            }
            Self::Unfair(why) => write!(f, "UNFAIR: {why}"),
            Self::Failed(why) => write!(f, "FAILED: {why}"),
            Self::Cannot(why) => write!(f, "left out: {why}"),
        }
    }
}

impl Manifest {
    /// Whether lines of the other run are lines of this one.
    fn continues(&self, other: &Self) -> bool {
        let same = |manifest: &Self| Self {
            commit: String::new(),
            machine: String::new(),
            started: 0,
            load_average: 0.0,
            ..manifest.clone()
        };
        same(self) == same(other)
    }
}

/// The lines of a run, and the file that they are in.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) records: Vec<CellRecord>,
    file: File,
}

impl Journal {
    /// Goes on with the run in the folder if it is the same, or begins one.
    pub(crate) fn open(folder: &Path, manifest: &Manifest) -> Result<Self> {
        match read(folder, &manifest.experiment) {
            Ok((earlier, mut records)) if manifest.continues(&earlier) => {
                // What failed or was not there may be mended.
                records.retain(|record| matches!(record.outcome, Outcome::Measured(_) | Outcome::Unfair(_)));
                let [_, lines] = places(folder, &manifest.experiment);
                // A line that was cut off is not gone on with.
                let whole: String = records.iter().map(line).collect::<Result<_>>()?;
                fs::write(&lines, whole).with_context(|| lines.display().to_string())?;
                Ok(Self { records, file: appending(&lines)? })
            }
            _ => Self::begin(folder, manifest),
        }
    }

    /// Begins a run. An earlier one of another kind is kept aside.
    pub(crate) fn begin(folder: &Path, manifest: &Manifest) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let [head, lines] = places(folder, &manifest.experiment);
        for place in [&head, &lines].into_iter().filter(|place| place.exists()) {
            let mut aside = place.clone().into_os_string();
            aside.push(".previous");
            fs::rename(place, aside).with_context(|| place.display().to_string())?;
        }
        let text = serde_json::to_string_pretty(manifest)? + "\n";
        fs::write(&head, text).with_context(|| head.display().to_string())?;
        Ok(Self { records: Vec::new(), file: appending(&lines)? })
    }

    /// Whether the cell has been measured in this round.
    pub(crate) fn has(&self, load: &str, contender: &str, round: usize) -> bool {
        let is = |record: &CellRecord| {
            record.load == load && record.contender == contender && record.round == round
        };
        self.records.iter().any(is)
    }

    /// Shows a line, and keeps it.
    pub(crate) fn keep(&mut self, mut record: CellRecord) -> Result<()> {
        eprintln!("{record}");
        if let Outcome::Measured(values) = &mut record.outcome {
            values.values_mut().for_each(|value| *value = six_digits(*value));
        }
        self.file.write_all(line(&record)?.as_bytes()).context("keeping what was measured")?;
        self.records.push(record);
        Ok(())
    }
}

/// The manifest and the lines of an experiment. A line that was cut off at the end is no line.
pub(crate) fn read(folder: &Path, experiment: &str) -> Result<(Manifest, Vec<CellRecord>)> {
    let [head, lines] = places(folder, experiment);
    let text = |place: &Path| fs::read_to_string(place).with_context(|| place.display().to_string());
    let manifest = serde_json::from_str(&text(&head)?).with_context(|| head.display().to_string())?;
    let records = text(&lines)?.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ok((manifest, records))
}

/// No clock of a cell is better; lines are half as long, and recorded runs are kept in git.
fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

fn line(record: &CellRecord) -> Result<String> {
    Ok(serde_json::to_string(record)? + "\n")
}

fn appending(lines: &Path) -> Result<File> {
    File::options().append(true).create(true).open(lines).with_context(|| lines.display().to_string())
}

pub(crate) fn places(folder: &Path, experiment: &str) -> [PathBuf; 2] {
    ["json", "jsonl"].map(|ending| folder.join(format!("{experiment}.{ending}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            experiment: "files".into(),
            commit: "0123abcd".into(),
            file_sha256: "00".into(),
            rounds: 2,
            seconds: 1.0,
            settings: Vec::new(),
            programs: Vec::new(),
            machine: "a machine".into(),
            seed: 1,
            started: 7,
            load_average: 0.1,
        }
    }

    fn record(load: &str, contender: &str, round: usize, rate: f64) -> CellRecord {
        CellRecord {
            load: load.into(),
            contender: contender.into(),
            parameters: [("load".to_owned(), load.into()), ("contender".to_owned(), contender.into())].into(),
            round,
            outcome: Outcome::Measured([(Quantity::Rate, rate)].into()),
            disturbed: false,
            load_average: 0.1,
        }
    }

    #[test]
    fn a_run_goes_on_where_it_ended_and_another_one_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), &manifest()).unwrap();
        journal.keep(record("1k", "nginx", 0, 12_345.678_901)).unwrap();
        let later = Manifest { commit: "later".into(), started: 9, load_average: 3.0, ..manifest() };
        let journal = Journal::open(folder.path(), &later).unwrap();
        assert_eq!(journal.records[0].outcome, Outcome::Measured([(Quantity::Rate, 12_345.7)].into()));
        assert!(journal.has("1k", "nginx", 0) && !journal.has("1k", "nginx", 1));
        let longer = Manifest { seconds: 2.0, ..manifest() };
        assert!(Journal::open(folder.path(), &longer).unwrap().records.is_empty());
        assert!(folder.path().join("files.jsonl.previous").is_file());
        assert_eq!(read(folder.path(), "files").unwrap().0, longer);
    }

    #[test]
    fn what_an_earlier_lab_told_besides_is_not_read() {
        let line = line(&record("1k", "nginx", 0, 5.0)).unwrap();
        let earlier = line.replace("\"rate\":5.0", "\"lent\":3.0,\"rate\":5.0");
        assert_ne!(earlier, line);
        let read: CellRecord = serde_json::from_str(&earlier).unwrap();
        assert_eq!(read.outcome, Outcome::Measured([(Quantity::Rate, 5.0)].into()));
    }

    #[test]
    fn a_line_that_was_cut_off_is_measured_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), &manifest()).unwrap();
        journal.keep(record("1k", "nginx", 0, 5.0)).unwrap();
        journal.keep(record("1k", "baton", 0, 6.0)).unwrap();
        let lines = folder.path().join("files.jsonl");
        let text = fs::read_to_string(&lines).unwrap();
        fs::write(&lines, &text[..text.len() - 9]).unwrap();
        let journal = Journal::open(folder.path(), &manifest()).unwrap();
        assert!(journal.has("1k", "nginx", 0) && !journal.has("1k", "baton", 0));
    }
}
