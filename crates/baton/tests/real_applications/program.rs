//! Programs of the tests, which end with them.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::common::folder::Folder;
use crate::common::server::{PATIENCE, wait_until};

/// A process, and with the folder's end, all that it has started.
pub(crate) struct Program(Child);

impl Program {
    /// Starts a command in the process group of a folder. Its output goes to a file there.
    pub(crate) fn start(command: &mut Command, folder: &Folder, log: &Path) -> Self {
        let log = std::fs::File::create(log).expect("a log");
        command.process_group(folder.group()).stdout(Stdio::null()).stderr(log);
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it runs");
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn end(&mut self, signal: Signal) {
        self.signal(signal);
        let deadline = Instant::now() + PATIENCE;
        while self.0.try_wait().expect("its status").is_none() {
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // php-fpm makes a process group of its own, and a killed master leaves its workers behind.
        let _ = kill_process_group(self.pid(), Signal::KILL);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The first of these files that exists.
pub(crate) fn installed(package: &str, candidates: &[&str]) -> PathBuf {
    let found = candidates.iter().map(PathBuf::from).find(|path| path.exists());
    found.unwrap_or_else(|| panic!("no {candidates:?}: install {package}, as scripts/setup-tests does"))
}

/// Waits for a listener at a path.
pub(crate) fn wait_for_listener(socket: &Path) {
    wait_until("somebody listens", || match std::os::unix::net::UnixStream::connect(socket) {
        Ok(_) => true,
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused), "{error}");
            false
        }
    });
}

/// Whether the tests run as root, for which programs need extra flags.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
