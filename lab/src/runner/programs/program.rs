//! Other people's programs that make the load: run to their end, with their CPU time.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::protocol::Made;
use crate::rig::output_of;
use crate::rig::processes::children_cpu;

/// Runs the program on the client's CPU, to which this process is bound. `understand` finds requests and bytes of bodies in
/// its report.
///
/// # Errors
/// If it is missing or fails, with what it says, or is not understood.
pub(super) fn run(
    program: &mut Command,
    understand: impl FnOnce(&str) -> Result<(u64, u64)>,
) -> Result<Made> {
    let cpu = || anyhow::Ok(children_cpu()?.iter().sum::<Duration>());
    let (start, cpu_before) = (Instant::now(), cpu()?);
    let output = output_of(program)?;
    let (elapsed, client_cpu) = (start.elapsed(), cpu()? - cpu_before);
    let (requests, bytes) = understand(&String::from_utf8_lossy(&output))?;
    Ok(Made { requests, bytes, elapsed, client_cpu, idle_bytes: None })
}
