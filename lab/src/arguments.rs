//! The command line of `baton-lab`.

use std::path::PathBuf;
use std::time::Duration;

use baton_lab::runner::RunSettings;
use clap::{Args, Parser, Subcommand};

/// Measures web servers from outside.
#[derive(Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Name the experiments, what they need and how long they take
    List {
        /// Only those with this word in name, title or rows
        word: Option<String>,
    },
    /// Run experiments, or go on with them, and report; exit code 1 if nothing could be measured
    Run(RunArguments),
    /// Report what earlier runs have kept
    Report(ReportArguments),
    /// Write the figures of the documents from the runs in docs/results; exit code 1 if --check finds a mistake
    Docs {
        /// Change nothing: name each figure that the recorded lines do not give
        #[arg(long)]
        check: bool,
        /// Record the simulator's verdicts before: the folder that `baton sim run all --out FOLDER` has filled
        #[arg(long, value_name = "FOLDER", conflicts_with = "check")]
        simulated: Option<PathBuf>,
    },
    /// Run the experiments that compare Baton with other servers, and write one page with a verdict in each cell
    Peers(PeersArguments),
    /// Show two clusters side by side, one by round robin and one by content, under the same load. Needs root
    DemoCluster(DemoArguments),
}

#[derive(Args)]
pub(crate) struct RunArguments {
    /// Experiments (`baton-lab list`), files that end in .toml, or `all`
    #[arg(required = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) settings: RunSettings,
    /// The short form
    #[arg(long)]
    pub(crate) quick: bool,
    /// Cells of a tenth of a second on a tiny site: shows that it works; figures mean nothing
    #[arg(long, conflicts_with = "quick")]
    pub(crate) tenth: bool,
    /// Write a page with the figures to this file
    #[arg(long)]
    pub(crate) page: Option<PathBuf>,
    /// Say how long each would take, and all of them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Put the runs into docs/results and write the documents anew. Refused if sources were changed or the machine is busy
    #[arg(long, conflicts_with = "tenth")]
    pub(crate) record: bool,
    /// Record in spite of that: lines and commit tell it
    #[arg(long, requires = "record")]
    pub(crate) anyway: bool,
}

#[derive(Args)]
pub(crate) struct ReportArguments {
    /// Experiments, or `all` that something is kept of
    #[arg(required = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) settings: RunSettings,
    /// Write a page with the figures to this file
    #[arg(long)]
    pub(crate) page: Option<PathBuf>,
    /// Print Markdown
    #[arg(long)]
    pub(crate) markdown: bool,
}

#[derive(Args)]
pub(crate) struct PeersArguments {
    #[command(flatten)]
    pub(crate) settings: RunSettings,
    /// The short form
    #[arg(long)]
    pub(crate) quick: bool,
    /// The page
    #[arg(long, default_value = "peers.html")]
    pub(crate) page: PathBuf,
}

#[derive(Args)]
pub(crate) struct DemoArguments {
    /// The command of this project
    #[arg(long, default_value = "target/release/baton")]
    pub(crate) baton: PathBuf,
    /// How long; until it is interrupted unless given
    #[arg(long, value_parser = duration)]
    pub(crate) seconds: Option<Duration>,
    /// Where mount points, configurations and logs are put
    #[arg(long, default_value_os_t = std::env::temp_dir().join("baton-demo-cluster"))]
    pub(crate) folder: PathBuf,
}

fn duration(seconds: &str) -> Result<Duration, String> {
    let found = seconds.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    found.ok_or_else(|| format!("{seconds} is not a number of seconds"))
}
