//! Applications behind the servers: a pool of processes that answer FastCGI requests at a Unix socket.

use std::fs::{self, File, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, getuid, kill_process};

use super::machine::Machine;
use super::processes;
use super::server::search_path;

/// Which program answers.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// `apps/ad-rotation`, with the distribution's `libfcgi` or another one.
    AdRotation { executable: PathBuf, library: Option<PathBuf>, named_file: Option<PathBuf> },
    /// The distribution's php-fpm, perhaps with a library that is loaded before all others, or with an extension.
    PhpFpm { preload: Option<PathBuf>, extension: Option<Extension> },
}

/// The PHP extension and its settings.
#[derive(Clone, Debug)]
pub(crate) struct Extension {
    pub(crate) library: PathBuf,
    /// The folder with the files that it may name; snapshots go to `snapshots` in it.
    pub(crate) root: PathBuf,
}

/// A pool that runs on the server's CPU. It is stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct Application {
    pub(crate) socket: PathBuf,
    children: Vec<Child>,
}

impl Application {
    /// Starts so many processes at `folder/socket`, and waits until they listen.
    pub(crate) fn start(
        program: &Program,
        processes: usize,
        machine: &Machine,
        folder: &Path,
    ) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let socket = folder.join("socket");
        let _ = fs::remove_file(&socket);
        machine.run_on(&machine.server_cpus)?;
        let children = match program {
            Program::AdRotation { executable, library, named_file } => {
                ad_rotation(executable, library.as_deref(), named_file.as_deref(), processes, folder, &socket)
            }
            Program::PhpFpm { preload, extension } => {
                php_fpm(preload.as_deref(), extension.as_ref(), processes, folder, &socket)
            }
        };
        machine.run_on(&machine.client_cpus)?;
        let mut application = Self { socket, children: children? };
        application.wait_until_it_listens().with_context(|| format!("see {}", folder.display()))?;
        machine.favour(&application.processes());
        Ok(application)
    }

    fn wait_until_it_listens(&mut self) -> Result<()> {
        let limit = Instant::now() + START_MAX;
        while UnixStream::connect(&self.socket).is_err() {
            ensure!(Instant::now() < limit, "it does not listen at {}", self.socket.display());
            sleep(Duration::from_millis(20));
        }
        // Workers that cannot run, for want of a library for example, end at once.
        sleep(Duration::from_millis(100));
        for child in &mut self.children {
            if let Some(status) = child.try_wait()? {
                bail!("it ended: {status}");
            }
        }
        Ok(())
    }

    /// Its processes.
    pub(crate) fn processes(&self) -> Vec<i32> {
        self.children.iter().flat_map(|child| processes::tree(child.id() as i32)).collect()
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        for pid in self.processes().into_iter().rev().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        for child in &mut self.children {
            let _ = child.wait();
        }
    }
}

/// Compiles `apps/ad-rotation` against the distribution's `libfcgi`.
///
/// # Errors
/// If there is no C compiler or no header of `libfcgi`, with the compiler's output.
pub(crate) fn compile_ad_rotation(folder: &Path) -> Result<PathBuf> {
    let (source, executable) = (folder.join("ad-rotation.c"), folder.join("ad-rotation"));
    fs::write(&source, include_str!("../../../apps/ad-rotation/ad-rotation.c"))?;
    let header = include_str!("../../../adapters/libfcgi/include/fcgi_in_place.h");
    fs::write(folder.join("fcgi_in_place.h"), header)?;
    let mut cc = Command::new("cc");
    cc.arg("-O2").arg("-I").arg(folder).arg("-o").arg(&executable).arg(&source).arg("-lfcgi");
    let output = cc.output().context("cc (scripts/setup-bench installs it)")?;
    ensure!(output.status.success(), "cc: {}", String::from_utf8_lossy(&output.stderr));
    Ok(executable)
}

/// Installs a library so that programs find it first as `libfcgi.so.0`.
pub(crate) fn drop_in(library: &Path, folder: &Path) -> Result<PathBuf> {
    let library = library.canonicalize().with_context(|| library.display().to_string())?;
    let place = folder.join("drop-in");
    fs::create_dir_all(&place)?;
    let link = place.join("libfcgi.so.0");
    let _ = fs::remove_file(&link);
    symlink(library, link)?;
    Ok(place)
}

/// Each process has the listening socket as its standard input, as FastCGI has it.
fn ad_rotation(
    executable: &Path,
    library: Option<&Path>,
    named_file: Option<&Path>,
    processes: usize,
    folder: &Path,
    socket: &Path,
) -> Result<Vec<Child>> {
    let listener = UnixListener::bind(socket)?;
    // The server's workers may be another user's.
    fs::set_permissions(socket, Permissions::from_mode(0o666))?;
    let listener = OwnedFd::from(listener);
    let output = File::create(folder.join("output"))?;
    let start = |_| -> Result<Child> {
        let mut command = ending_with_us(executable);
        if let Some(library) = library {
            command.env("LD_LIBRARY_PATH", library);
        }
        if let Some(file) = named_file {
            command.env("AD_FILE", file);
        }
        command.stdin(listener.try_clone()?).stdout(output.try_clone()?).stderr(output.try_clone()?);
        command.spawn().context("setpriv")
    };
    (0..processes).map(start).collect()
}

fn php_fpm(
    preload: Option<&Path>,
    extension: Option<&Extension>,
    processes: usize,
    folder: &Path,
    socket: &Path,
) -> Result<Vec<Child>> {
    let program = find_php_fpm().context("php-fpm is not installed")?;
    let user = if getuid().is_root() { "user = root\ngroup = root" } else { "" };
    let configuration = include_str!("../../conf/php-fpm.conf")
        .replace("@RUN@", &folder.display().to_string())
        .replace("@AS_USER@", user)
        .replace("@SOCKET@", &socket.display().to_string())
        .replace("@PROCESSES@", &processes.to_string());
    let file = folder.join("php-fpm.conf");
    fs::write(&file, configuration)?;
    let output = File::create(folder.join("output"))?;
    let mut command = ending_with_us(&program);
    command.args(["--allow-to-run-as-root", "--nodaemonize", "--fpm-config"]).arg(&file);
    if let Some(library) = preload {
        command.env("LD_PRELOAD", library.canonicalize().with_context(|| library.display().to_string())?);
    }
    if let Some(Extension { library, root }) = extension {
        let library = library.canonicalize().with_context(|| library.display().to_string())?;
        let snapshots = root.join("snapshots");
        fs::create_dir_all(&snapshots)?;
        let path = |path: &Path| path.display().to_string();
        command.args(["-d", &format!("extension={}", path(&library))]);
        command.args(["-d", &format!("baton.roots={}", path(root))]);
        command.args(["-d", &format!("baton.snapshot_dir={}", path(&snapshots))]);
    }
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    Ok(vec![command.spawn().context("setpriv")?])
}

/// A command that does not outlive a killed lab: it would spoil the next measurement.
fn ending_with_us(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "--"]).arg(program).env("PATH", search_path());
    command
}

/// php-fpm has its version in its name.
fn find_php_fpm() -> Option<PathBuf> {
    let folders = search_path();
    let files = folders.split(':').filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let mut found: Vec<PathBuf> = files
        .filter(|file| file.file_name().as_encoded_bytes().starts_with(b"php-fpm"))
        .map(|file| file.path())
        .collect();
    found.sort();
    found.pop()
}

const START_MAX: Duration = Duration::from_secs(5);
