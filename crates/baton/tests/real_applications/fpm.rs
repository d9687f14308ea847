//! A php-fpm with a pool on a Unix socket.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::built;
use crate::common::folder::Folder;
use crate::common::server::wait_until;
use crate::program::{Program, installed, is_root, wait_for_listener};

/// Libraries that change how php-fpm answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aid {
    /// Nothing: as the distribution has made it.
    None,
    /// The preload library.
    Preload,
    /// The extension and the preload library, which leaves the extension's responses alone.
    Extension,
}

/// A running php-fpm.
pub(crate) struct Fpm {
    program: Program,
    aid: Aid,
    settings: PathBuf,
}

impl Fpm {
    /// Starts it at `{name}.sock` in the folder, with further settings of its pool, followed by other sections.
    pub(crate) fn start(folder: &Folder, name: &str, aid: Aid, pool: &str) -> Self {
        let base = folder.base().join(name).display().to_string();
        let mut text = format!(
            "[global]\ndaemonize = no\nerror_log = {base}.log\nprocess_control_timeout = 10s\n\
             [{name}]\nlisten = {base}.sock\nlisten.mode = 0666\npm = static\n\
             php_admin_value[session.save_path] = {}\n",
            folder.base().display()
        );
        if is_root() {
            text.push_str("user = root\ngroup = root\n");
        }
        if aid == Aid::Extension {
            text.push_str(&format!(
                "php_admin_value[baton.roots] = {0}\nphp_admin_value[baton.snapshot_dir] = {0}/snapshots\n",
                folder.base().display()
            ));
        }
        text.push_str(pool);
        let settings = PathBuf::from(format!("{base}.conf"));
        fs::write(&settings, text).expect("settings");
        Self { program: run(folder, &settings, aid), aid, settings }
    }

    /// Starts it again after it was ended.
    pub(crate) fn start_again(&mut self, folder: &Folder) {
        self.program = run(folder, &self.settings, self.aid);
    }

    /// Has its workers replaced, and waits until that has been done.
    pub(crate) fn reload(&self) {
        const DONE: &str = "ready to handle connections";
        let done = self.log().matches(DONE).count();
        self.program.signal(Signal::USR2);
        wait_until("new workers", || self.log().matches(DONE).count() > done);
    }

    /// Ends it, after the requests in flight.
    pub(crate) fn end(&mut self) {
        self.program.end(Signal::QUIT);
    }

    /// Its workers.
    pub(crate) fn workers(&self) -> Vec<i32> {
        let pid = self.program.pid().as_raw_nonzero();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("its children");
        children.split_whitespace().map(|word| word.parse().expect("a process")).collect()
    }

    /// Its log.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.settings.with_extension("log")).unwrap_or_default()
    }
}

fn run(folder: &Folder, settings: &Path, aid: Aid) -> Program {
    let binary = installed(
        "php-fpm",
        &["/usr/sbin/php-fpm8.2", "/usr/sbin/php-fpm8.4", "/usr/sbin/php-fpm8.3", "/usr/sbin/php-fpm"],
    );
    let mut command = Command::new(binary);
    command.arg("--nodaemonize").arg("--fpm-config").arg(settings);
    if is_root() {
        command.arg("--allow-to-run-as-root");
    }
    if aid != Aid::None {
        command.env("LD_PRELOAD", built::preload());
    }
    if aid == Aid::Extension {
        command.arg("-d").arg(format!("extension={}", built::extension().display()));
    }
    let program = Program::start(&mut command, folder, &settings.with_extension("stderr"));
    wait_for_listener(&settings.with_extension("sock"));
    program
}
