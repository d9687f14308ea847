//! One network namespace with a name, which goes when it is dropped, along with the processes in it.
//!
//! Made by `ip netns`, whose names other tools understand: `ip netns exec baton-lab-… sh` looks into a test that hangs.

use std::fs::{self, File};
use std::panic::resume_unwind;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Result;
use nix::sched::{CloneFlags, setns, unshare};
use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::rig::{PREFIX, maker_of, run};

/// A network namespace.
#[derive(Debug)]
pub(super) struct Namespace {
    name: String,
}

/// Why this process cannot make namespaces.
pub(super) fn hindrance() -> Option<&'static str> {
    // A thread of its own, since the namespace is left only by ending.
    let may = std::thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET)).join();
    if !matches!(may, Ok(Ok(()))) {
        return Some("needs root, and the right to make network namespaces");
    }
    run(IP, &["-V"]).is_err().then_some("needs the command `ip`: scripts/setup-tests installs it")
}

impl Namespace {
    /// A new namespace; `label` becomes a part of its name.
    pub(super) fn new(label: &str) -> Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}-{label}", std::process::id());
        run(IP, &["netns", "add", &name])?;
        Ok(Self { name })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// A command that runs in the namespace: `ip` replaces itself with it.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(IP);
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Runs `work` on a thread in the namespace.
    pub(super) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let namespace =
            File::open(Path::new(FOLDER).join(&self.name)).expect("the namespace lives as long as its value");
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                setns(namespace, CloneFlags::CLONE_NEWNET)
                    .expect("root may enter a namespace that it has made");
                work()
            });
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// Runs `ip` with each of these commands, a line each.
    pub(super) fn ip(&self, commands: &str) -> Result<()> {
        commands.lines().try_for_each(|line| {
            let words: Vec<&str> = ["-n", &self.name].into_iter().chain(line.split_whitespace()).collect();
            run(IP, &words).map(drop)
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

/// Takes away the namespaces whose process is gone.
pub(super) fn remove_leftovers() {
    remove_made_by(|pid| !Path::new("/proc").join(pid).exists());
}

/// Takes away the namespaces of this process.
pub(super) fn remove_own() {
    let own = std::process::id().to_string();
    remove_made_by(|pid| pid == own);
}

fn remove_made_by(makers: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(FOLDER).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if maker_of(name).is_some_and(&makers) {
            remove(name);
        }
    }
}

/// Ends the processes in the namespace, and removes it with its interfaces.
fn remove(name: &str) {
    let inside = run(IP, &["netns", "pids", name]).unwrap_or_default();
    for pid in inside.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
        if pid != getpid() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    // Another run may have removed it meanwhile.
    let _ = run(IP, &["netns", "del", name]);
}

const IP: &str = "ip";
const FOLDER: &str = "/run/netns";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_ours_have_a_maker() {
        assert_eq!(maker_of("baton-lab-12-0-front"), Some("12"));
        assert_eq!(maker_of("baton-lab-x-0-front"), None);
        assert_eq!(maker_of("other-12-0"), None);
    }
}
