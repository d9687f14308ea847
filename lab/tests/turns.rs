//! Servers in boxes with a disk take turns: one that is not measured stands still, so that its memory stays as it was filled.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use baton_lab::network::Network;

const EXPERIMENT: &str = r#"
title = "two servers that take turns"
rounds = 9
seconds = 2
warm_up_seconds = 1.0
[box]
disk_mb_s = 50
[[load]]
name = "1 KB"
kind = "closed"
connections = 1
ask = "/1k.html"
[[contender]]
name = "{name}"
sweep.name = ["first", "second"]
server = "baton"
set = { "server.architecture" = "sped" }
[[figure]]
y = "rate"
"#;

/// In the line of each cell that is over.
const CELL: &str = " 1 KB, ";

/// A run of the experiment, in a process of its own.
struct Run {
    lab: Child,
    folder: tempfile::TempDir,
}

impl Run {
    fn begin() -> Option<Self> {
        if Network::is_left_out() {
            return None;
        }
        let lab = Path::new(env!("CARGO_BIN_EXE_baton-lab"));
        let baton = lab.with_file_name("baton");
        if !baton.is_file() {
            let _ = writeln!(std::io::stderr(), "LEFT OUT of turns: needs the server: cargo build -p baton");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("turns.toml");
        fs::write(&file, EXPERIMENT).unwrap();
        let said = fs::File::create(folder.path().join("said")).unwrap();
        let mut command = Command::new(lab);
        command.arg("run").arg(file).arg("--baton").arg(baton).stdout(Stdio::null()).stderr(said);
        for flag in ["--results", "--folder"] {
            command.arg(flag).arg(folder.path().join(&flag[2..]));
        }
        Some(Self { lab: command.spawn().unwrap(), folder })
    }

    /// The processes of a contender that live: those with its folder on their command line.
    fn processes(&self, contender: &str) -> Vec<PathBuf> {
        let folder = self.folder.path().join("folder/turns").join(contender);
        let folder = folder.to_str().unwrap().as_bytes();
        let is_of = |process: &PathBuf| {
            let line = fs::read(process.join("cmdline")).unwrap_or_default();
            line.windows(folder.len()).any(|part| part == folder)
        };
        let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        all.filter(|path| path.join("stat").is_file()).filter(is_of).collect()
    }

    /// Whether the contender is there, and all of its processes are stopped, or none.
    fn is(&self, contender: &str, stopped: bool) -> bool {
        let states: Vec<bool> = self
            .processes(contender)
            .iter()
            .filter_map(|process| fs::read_to_string(process.join("stat")).ok())
            .map(|stat| stat.contains(") T "))
            .collect();
        !states.is_empty() && states.iter().all(|state| *state == stopped)
    }

    fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("said")).unwrap()
    }

    /// Waits until it is so. `None`: this machine has no such boxes.
    fn wait_until(&mut self, what: &str, reached: impl Fn(&Self) -> bool) -> Option<()> {
        let limit = Instant::now() + Duration::from_secs(120);
        while !reached(self) {
            if self.lab.try_wait().unwrap().is_some() {
                let said = self.said();
                let is_lack = ["control groups", "losetup", "mkfs.ext4", "mount"]
                    .iter()
                    .any(|lack| said.contains(lack));
                assert!(is_lack && !said.contains(CELL), "{what}: {said}");
                let _ = writeln!(std::io::stderr(), "LEFT OUT of turns: {said}");
                return None;
            }
            assert!(Instant::now() < limit, "{what}: {}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if matches!(self.lab.try_wait(), Ok(None)) {
            let _ = Command::new("kill").args(["-TERM", &self.lab.id().to_string()]).status();
            let _ = self.lab.wait();
        }
    }
}

/// Goal: a server that has been filled stands still until its first cell, and goes on for it; an interrupted run ends the one
/// that stands still, too. Method: filling and cells take a second or two each, in which the states of both are looked at.
#[test]
fn a_filled_server_stands_still_until_its_turn() {
    let Some(mut run) = Run::begin() else { return };
    let mut story = || {
        run.wait_until("the first is filled, while the second has its turn", |run| {
            run.is("first", true) && run.is("second", false)
        })?;
        run.wait_until("the first goes on for its cell", |run| run.is("first", false))?;
        assert!(run.is("second", true), "the second was filled and has not had its cell");
        assert!(!run.said().contains(CELL), "no cell is over: {}", run.said());
        run.wait_until("the second goes on for its cell", |run| {
            run.is("second", false) && run.is("first", true)
        })
    };
    if story().is_none() {
        return;
    }
    let kill = Command::new("kill").args(["-INT", &run.lab.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert_eq!(run.lab.wait().unwrap().code(), Some(128 + 2));
    for contender in ["first", "second"] {
        assert!(run.processes(contender).is_empty(), "{contender} is left");
    }
}
