//! Programs under test: compiled, started at a listening socket, ended.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use tempfile::TempDir;

use crate::rig::{Server, TIMEOUT};

/// Which library a program finds as `libfcgi.so.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    /// That of the distribution.
    Original,
    /// This one.
    Ours,
}

impl Library {
    /// Makes the command find it.
    pub(crate) fn choose(self, command: &mut Command) {
        match self {
            Self::Original => command.env_remove("LD_LIBRARY_PATH"),
            Self::Ours => command.env("LD_LIBRARY_PATH", directory_of_ours()),
        };
    }
}

/// A directory with this library under the soname.
pub(crate) fn directory_of_ours() -> &'static Path {
    static DIRECTORY: OnceLock<TempDir> = OnceLock::new();
    let directory = DIRECTORY.get_or_init(|| {
        let built = std::env::current_exe().unwrap().with_file_name("libfcgi.so");
        assert!(built.exists(), "{} is missing: cargo build -p baton-libfcgi", built.display());
        let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::os::unix::fs::symlink(built, directory.path().join("libfcgi.so.0")).unwrap();
        directory
    });
    directory.path()
}

/// Compiles `tests/programs/NAME.c` against the headers and the library of the distribution, once.
pub(crate) fn compiled(name: &'static str) -> PathBuf {
    static COMPILED: Mutex<Option<(TempDir, HashMap<&'static str, PathBuf>)>> = Mutex::new(None);
    let mut compiled = COMPILED.lock().unwrap();
    let (directory, programs) = compiled
        .get_or_insert_with(|| (TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), HashMap::new()));
    let program = programs.entry(name).or_insert_with(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(format!("{name}.c"));
        let program = directory.path().join(name);
        let status = Command::new("cc")
            .args(["-Wall", "-O1", "-I", concat!(env!("CARGO_MANIFEST_DIR"), "/include"), "-o"])
            .args([&program, &source])
            .args(["-lfcgi", "-lpthread"])
            .status()
            .expect("cc, which scripts/setup-tests installs");
        assert!(status.success(), "{name}.c needs libfcgi-dev, which scripts/setup-tests installs");
        program
    });
    program.clone()
}

/// A program that runs, and its listening socket.
pub(crate) struct Program {
    child: Child,
    directory: TempDir,
}

impl Program {
    /// Starts a command as servers and spawners do it: standard input is the listening socket.
    pub(crate) fn start(mut command: Command, library: Library) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("socket")).unwrap();
        library.choose(&mut command);
        // A group of its own, to end its children (or its tracer) along with it.
        let child = command.stdin(OwnedFd::from(listener)).process_group(0).spawn();
        Self { child: child.unwrap_or_else(|error| panic!("{command:?}: {error}")), directory }
    }

    /// Starts a program of ours with arguments.
    pub(crate) fn of(name: &'static str, arguments: &[&str], library: Library) -> Self {
        let mut command = Command::new(compiled(name));
        command.args(arguments);
        Self::start(command, library)
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    pub(crate) fn connect(&self) -> Server {
        Server::connect(&self.socket())
    }

    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    /// Waits until it has ended by itself.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the program does not end");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process_group(self.pid(), rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A connection to a program that lives as long as it.
pub(crate) struct Connected {
    pub(crate) server: Server,
    _program: Program,
}

impl Program {
    /// Connects, and ends with the connection.
    pub(crate) fn connect_for_good(self) -> Connected {
        Connected { server: self.connect(), _program: self }
    }
}
