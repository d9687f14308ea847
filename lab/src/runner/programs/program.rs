//! Other people's programs that make the load: run to their end, with their CPU time.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

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
    let cpu_before = children_cpu()?;
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
    Ok(Ended { output: output.stdout, elapsed, cpu: children_cpu()?.saturating_sub(cpu_before) })
}

/// CPU time of all children that have ended so far.
fn children_cpu() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let time = [usage.user_time(), usage.system_time()]
        .map(|part| Duration::from_micros(part.num_microseconds().unsigned_abs()));
    Ok(time[0] + time[1])
}
