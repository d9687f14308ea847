//! Other people's programs that make the load: run to their end, with their CPU time.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::rig::processes::children_cpu;
use crate::rig::search_path;

/// A program that has ended well.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) output: Vec<u8>,
    pub(super) elapsed: Duration,
    pub(super) cpu: Duration,
}

/// Runs the program on the client's CPU, to which this process is bound.
///
/// # Errors
/// If it is missing or fails, with the last line that it wrote.
pub(super) fn run(program: &str, arguments: &[String]) -> Result<Ended> {
    let cpu = || Ok::<Duration, anyhow::Error>(children_cpu()?.iter().sum());
    let cpu_before = cpu()?;
    let start = Instant::now();
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", search_path()).stdin(Stdio::null());
    let output = command
        .output()
        .with_context(|| format!("{program} (scripts/setup-bench installs what is needed)"))?;
    let elapsed = start.elapsed();
    let text =
        String::from_utf8_lossy(if output.stderr.is_empty() { &output.stdout } else { &output.stderr });
    let last = text.lines().last().unwrap_or_default();
    ensure!(output.status.success(), "{program}: {}, {last}", output.status);
    Ok(Ended { output: output.stdout, elapsed, cpu: cpu()? - cpu_before })
}
