//! Where results and progress go.

use std::fs;
use std::io::{IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use baton_figures::{claims_table, page};
use baton_sim::report::SimulationReport;
use baton_sim::runner::Runner;
use clap::{Args, ValueHint};

use super::super::output::{Failure, print};

#[derive(Debug, Args)]
pub(super) struct Output {
    /// Write the page of figures, all numbers as JSON and CSV, and each figure as SVG into this folder
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// What random choices start from: the same seed gives the same numbers
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,

    /// Runs at a time [default: one for each processor]
    #[arg(long, value_name = "COUNT")]
    jobs: Option<NonZeroUsize>,
}

impl Output {
    pub(super) fn runner<'a>(&self, tell: &'a (dyn Fn(&str, f64) + Sync)) -> Runner<'a> {
        let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Runner::new(self.jobs.map_or_else(processors, NonZeroUsize::get), tell)
    }

    pub(super) fn write(&self, reports: &[SimulationReport]) -> Result<ExitCode, Failure> {
        if let Some(folder) = &self.out {
            write_folder(folder, reports)?;
        }
        if self.json {
            return print(&format!("{}\n", serde_json::to_string_pretty(reports)?));
        }
        let texts: Vec<String> = reports.iter().map(SimulationReport::to_text).collect();
        print(&texts.join("\n"))
    }
}

fn write_folder(folder: &Path, reports: &[SimulationReport]) -> Result<(), Failure> {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| Failure(format!("cannot write {}: {error}", path.display())))
    };
    fs::create_dir_all(folder)
        .map_err(|error| Failure(format!("cannot make {}: {error}", folder.display())))?;
    for report in reports {
        write(&format!("{}.json", report.findings.name), &report.to_json()?)?;
        write(&format!("{}.csv", report.findings.name), &report.to_csv())?;
        for figure in &report.findings.figures {
            write(&format!("{}.svg", figure.name), &figure.to_svg())?;
        }
    }
    let presented: Vec<_> = reports.iter().map(SimulationReport::presented).collect();
    if presented.iter().any(|report| !report.claims.is_empty()) {
        write("claims.md", &claims_table(&presented))?;
    }
    write("index.html", &page("Where requests go", &presented))
}

/// Tells on stderr how far things are: on a terminal in a line that is written again and again, elsewhere whenever
/// something else is begun.
#[derive(Default)]
pub(super) struct Progress {
    last: Mutex<Option<(String, Instant)>>,
}

impl Progress {
    pub(super) fn tell(&self, what: &str, share: f64) {
        let Ok(mut last) = self.last.lock() else { return };
        let is_new = last.as_ref().is_none_or(|(known, _)| known != what);
        let is_due = last.as_ref().is_none_or(|(_, at)| at.elapsed() > Duration::from_millis(100));
        let mut stderr = std::io::stderr();
        let written = if stderr.is_terminal() {
            if !is_new && !is_due {
                return;
            }
            write!(stderr, "\r\x1b[K{what}: {:.0} %", 100.0 * share).and_then(|()| stderr.flush())
        } else if is_new {
            writeln!(stderr, "{what}")
        } else {
            return;
        };
        // Without a place to tell it, the work goes on.
        drop(written);
        *last = Some((what.to_owned(), Instant::now()));
    }

    pub(super) fn end(&self) {
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
    }
}
