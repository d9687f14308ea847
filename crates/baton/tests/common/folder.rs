//! A temporary folder with a document root in it, and a process group that ends with it.

use std::collections::HashMap;
use std::fs::{self, File, FileTimes, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

/// Folder and processes end when this is dropped, or, for a static or an aborted run, when this process ends. The
/// folder is readable for all: workers of a server that root starts have another user.
pub(crate) struct Folder {
    /// The first member of the group. It waits for the end of its standard input, which comes with the end of this
    /// process, and then does what `drop` could not.
    leader: Child,
    base: TempDir,
}

impl Folder {
    /// With an empty document root.
    pub(crate) fn new() -> Self {
        let base = tempfile::tempdir().expect("a temporary folder");
        fs::set_permissions(base.path(), Permissions::from_mode(0o755)).expect("permissions");
        let mut command = Command::new("sh");
        command.args(["-c", "read -r _; rm -rf \"$0\"; kill -KILL 0"]).arg(base.path()).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let folder = Self { leader: command.spawn().expect("sh"), base };
        fs::create_dir(folder.root()).expect("a document root");
        folder
    }

    /// The process group that ends with the folder.
    pub(crate) fn group(&self) -> i32 {
        Pid::from_child(&self.leader).as_raw_nonzero().get()
    }

    /// The folder itself: for configuration, logs, and files that must not be served.
    pub(crate) fn base(&self) -> &Path {
        self.base.path()
    }

    /// The document root, within it.
    pub(crate) fn root(&self) -> PathBuf {
        self.base.path().join("root")
    }

    /// A file or folder below the document root.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Writes a file below the document root, and the folders that lead to it.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self
    }

    /// Replaces a file atomically, as deployment tools do.
    pub(crate) fn replace(&self, name: &str, content: impl AsRef<[u8]>) {
        let fresh = self.base.path().join("fresh");
        fs::write(&fresh, content).expect("a file");
        fs::rename(&fresh, self.path(name)).expect("renamed");
    }

    /// Makes a symbolic link below the document root. `target` is taken as it is.
    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) -> &Self {
        symlink(target, self.path(name)).expect("a link");
        self
    }

    /// Says when a file below the document root was last modified.
    pub(crate) fn date(&self, name: &str, unix_seconds: u64) -> &Self {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(unix_seconds);
        let file = File::options().write(true).open(self.path(name)).expect("a file");
        file.set_times(FileTimes::new().set_modified(time)).expect("a time");
        self
    }
}

/// Installs a program atomically, as package managers do.
///
/// Another process writes it: children that other threads start at that moment would inherit a descriptor open for
/// writing, and executing the file would fail meanwhile (ETXTBSY).
pub(crate) fn install_program(path: &Path, content: impl AsRef<[u8]>) {
    let script = "cat > \"$0.fresh\" && chmod 755 \"$0.fresh\" && mv \"$0.fresh\" \"$0\"";
    let mut writer = Command::new("sh");
    writer.arg("-c").arg(script).arg(path).stdin(Stdio::piped());
    let mut writer = writer.spawn().expect("sh");
    let mut input = writer.stdin.take().expect("its standard input");
    input.write_all(content.as_ref()).expect("written");
    drop(input);
    assert!(writer.wait().expect("its status").success(), "{}", path.display());
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.leader), Signal::KILL);
        let _ = self.leader.wait();
    }
}

/// Bytes that look like no others: a shift or a swap of any part shows.
///
/// Each seed's are made once, and kept: a debug build takes longer for them than the server for what is tested with them.
pub(crate) fn pattern(len: usize, seed: u64) -> &'static [u8] {
    static MADE: LazyLock<Mutex<HashMap<u64, &'static [u8]>>> = LazyLock::new(Mutex::default);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let longest = made.entry(seed).or_default();
    if longest.len() < len {
        *longest = make_pattern(len.next_power_of_two(), seed).leak();
    }
    &longest[..len]
}

fn make_pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = vec![0; len];
    for word in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
    bytes
}
