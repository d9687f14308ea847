//! Other people's programs that make the load: run to their end, with their CPU time.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::rig::output_of;
use crate::rig::processes::children_cpu;

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
/// If it is missing or fails, with what it says.
pub(super) fn run(program: &str, arguments: &[String]) -> Result<Ended> {
    let cpu = || anyhow::Ok(children_cpu()?.iter().sum::<Duration>());
    let (start, cpu_before) = (Instant::now(), cpu()?);
    let output = output_of(Command::new(program).args(arguments))?;
    Ok(Ended { output, elapsed: start.elapsed(), cpu: cpu()? - cpu_before })
}
