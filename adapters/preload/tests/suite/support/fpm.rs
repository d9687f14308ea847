//! php-fpm with the library preloaded: one pool on a Unix socket, scripts in a folder of its own.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::program::{Program, installed, library, preloaded};
use super::wait_for;

/// A running php-fpm.
pub(crate) struct Fpm {
    // Ended before its folder is removed.
    program: Program,
    folder: TempDir,
}

/// The usual pool: one worker, so that the next request meets the state that the last one left.
pub(crate) const ONE_WORKER: &str = "pm = static\npm.max_children = 1\n";

impl Fpm {
    /// One worker and the settings of a pool in `more`.
    pub(crate) fn with_one_worker(more: &str) -> Self {
        Self::start(&format!("{ONE_WORKER}{more}"))
    }

    /// Starts it with these settings of the pool, and waits until it answers.
    pub(crate) fn start(pool: &str) -> Self {
        Self::start_listening("$folder/socket", pool)
    }

    /// `listen`: an address; `$folder` is the folder of this php-fpm, as in `pool`.
    pub(crate) fn start_listening(listen: &str, pool: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().display().to_string();
        let settings = format!(
            "[global]\nerror_log = $folder/log\nlog_level = notice\n[test]\nlisten = {listen}\nlisten.mode = 0666\n\
             user = root\ngroup = root\n{pool}\n"
        );
        let file = folder.path().join("fpm.conf");
        fs::write(&file, settings.replace("$folder", &root)).expect("settings");
        // Without php.ini: tests set what they need. -R: the tests may run as root.
        let binary = installed(
            "php-fpm",
            &["/usr/sbin/php-fpm8.2", "/usr/sbin/php-fpm8.4", "/usr/sbin/php-fpm8.3", "/usr/sbin/php-fpm"],
        );
        let mut command = preloaded(binary);
        command.args(["--nodaemonize", "--allow-to-run-as-root", "--no-php-ini", "--fpm-config"]).arg(&file);
        command.stderr(fs::File::create(folder.path().join("stderr")).expect("a file"));
        let program = Program::start(&mut command);
        let fpm = Self { program, folder };
        fpm.wait_until_it_listens(listen);
        let maps = fs::read_to_string(format!("/proc/{}/maps", fpm.pid().as_raw_nonzero())).expect("maps");
        assert!(maps.contains(&library().display().to_string()), "the library is not preloaded");
        fpm
    }

    fn wait_until_it_listens(&self, listen: &str) {
        wait_for("php-fpm", || match listen.strip_prefix("127.0.0.1:") {
            Some(_) => std::net::TcpStream::connect(listen).map(drop).ok(),
            None => UnixStream::connect(self.socket()).map(drop).ok(),
        });
    }

    pub(crate) fn pid(&self) -> rustix::process::Pid {
        self.program.pid()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).expect("it runs");
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Its log.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Puts a script there, and returns its path.
    pub(crate) fn script(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("a script");
        path.display().to_string()
    }
}
