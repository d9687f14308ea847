//! Where CPU time goes: samples by `perf record`, divided into copies and the rest, in user and kernel mode.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::meter::{Meter, Watched};
use crate::rig::output_of;

/// perf, which samples.
pub(super) struct Profile {
    perf: Child,
    data: PathBuf,
}

impl Profile {
    pub(super) fn begin(watched: &Watched) -> Result<Self> {
        let data = watched.folder.join("perf.data");
        let _ = fs::remove_file(&data);
        let said = File::create(watched.folder.join("perf.output")).context("perf.output")?;
        let pids: Vec<_> = watched.tree().iter().map(ToString::to_string).collect();
        // The clock of the CPU: virtual machines have no counter of cycles that would interrupt.
        let perf = Command::new("perf")
            .args(["record", "--quiet", "--event", "cpu-clock", "--freq", FREQUENCY, "--output"])
            .arg(&data)
            .args(["--pid", &pids.join(",")])
            .stdin(Stdio::null())
            .stdout(said.try_clone()?)
            .stderr(said)
            .spawn()
            .context("perf is not installed: apt-get install linux-perf")?;
        let mut profile = Self { perf, data };
        let limit = Instant::now() + BEGIN_MAX;
        // It writes the head of its file once the processes are sampled.
        while !fs::metadata(&profile.data).is_ok_and(|data| data.len() > 0) {
            if profile.perf.try_wait()?.is_some() || Instant::now() > limit {
                let text = fs::read_to_string(watched.folder.join("perf.output")).unwrap_or_default();
                bail!("perf record: {}", text.trim());
            }
            sleep(POLL);
        }
        Ok(profile)
    }
}

impl Meter for Profile {
    fn end(mut self: Box<Self>, _: &Watched) -> Result<Vec<f64>> {
        if let Some(pid) = Pid::from_raw(self.perf.id() as i32) {
            kill_process(pid, Signal::INT).context("ending perf")?;
        }
        self.perf.wait()?;
        let mut report = Command::new("perf");
        report.args([
            "report",
            "--stdio",
            "--quiet",
            "--fields=overhead,sym",
            "--percent-limit=0",
            "--input",
        ]);
        let text = output_of(report.arg(&self.data))?;
        let shares = shares(&String::from_utf8_lossy(&text));
        ensure!(shares[0] + shares[2] > 0.0, "perf took no sample");
        Ok(vec![shares[1], shares[3]])
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        let _ = self.perf.kill();
        let _ = self.perf.wait();
        let _ = fs::remove_file(&self.data);
    }
}

/// The shares of a report with lines such as `12.34%  [k] _copy_to_iter`.
fn shares(report: &str) -> [f64; 4] {
    let mut shares = [0.0; 4];
    for line in report.lines() {
        let mut words = line.split_ascii_whitespace();
        let share = words.next().and_then(|word| word.strip_suffix('%')?.parse::<f64>().ok());
        let (Some(share), Some(mode), Some(symbol)) = (share, words.next(), words.next()) else { continue };
        let (first, copies) = match mode {
            "[k]" => (0, KERNEL_COPIES),
            _ => (2, USER_COPIES),
        };
        shares[first] += share;
        if copies.iter().any(|part| symbol.contains(part)) {
            shares[first + 1] += share;
        }
    }
    shares
}

/// Parts of names of what copies between user and kernel, from Linux 4 on: the last is the loop itself since 6.4.
const KERNEL_COPIES: &[&str] =
    &["copy_user", "copy_to_iter", "copy_from_iter", "copy_page_to_iter", "memcpy", "rep_movs_alternative"];
const USER_COPIES: &[&str] = &["memcpy", "memmove"];
const FREQUENCY: &str = "999";
const BEGIN_MAX: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_divided_into_modes_and_copies() {
        let report = "
    50.00%  [k] rep_movs_alternative
    20.00%  [k] tcp_sendmsg_locked
    10.00%  [.] __memmove_avx_unaligned_erms
    20.00%  [.] baton::serve
";
        assert_eq!(shares(report), [70.0, 50.0, 30.0, 10.0]);
        assert_eq!(shares("nothing"), [0.0; 4]);
    }
}
