//! Programs, started with the library preloaded, and ended with the test.

use std::path::PathBuf;
use std::process::{Child, Command};

/// A process of the test.
pub(crate) struct Program(Child);

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.0)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Gently first: a master takes its workers along.
        _ = rustix::process::kill_process(self.pid(), rustix::process::Signal::TERM);
        let ended = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            matches!(self.0.try_wait(), Ok(Some(_)))
        });
        if !ended {
            _ = self.0.kill();
            _ = self.0.wait();
        }
    }
}

/// The library, which cargo builds where it builds the test.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let library = test.with_file_name("libbaton_preload.so");
    assert!(library.exists(), "{} is missing: cargo build -p baton-preload", library.display());
    library
}

/// The first of `candidates` that exists.
pub(crate) fn installed(package: &str, candidates: &[&str]) -> PathBuf {
    let found = candidates.iter().map(PathBuf::from).find(|path| path.exists());
    found.unwrap_or_else(|| {
        panic!("none of {candidates:?} is installed: install {package} (scripts/setup-tests does)")
    })
}

/// A command with the library preloaded.
pub(crate) fn preloaded(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library());
    command
}
