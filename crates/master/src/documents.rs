//! Documents that migrate: the process that decides where they are (`baton documents`), and its maps at the workers.
//!
//! ```text
//!   process ── Map ────► master ── DocumentMap ─────► every worker, and each that begins later
//!           ── Count ──►        ── CountDocuments ──►
//!           ◄─ Served ──        ◄─ DocumentsServed ──
//! ```
//!
//! The process runs while the server serves and no other takes its place: that one has a process of its own. Documents are at
//! home until it says otherwise.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use baton_config::{Config, OWN_EXECUTABLE};
use baton_documents::{FromDocuments, Origin, Served, Settings, ToDocuments};
use baton_report::{Trouble, log};
use baton_supervise::{self as supervise, Lines, Restart, Stopping};
use baton_sys::passing;
use baton_sys::process::Ended;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::certificates::Certificates;
use super::channel::{self, MESSAGE_BYTES_MAX, ToWorker};
use super::control::usual_path;
use super::memory_file;
use super::privileges::WorkerUser;
use super::workers::Workers;

/// The process, and what it has said.
#[derive(Debug)]
pub(super) struct Documents {
    /// Where workers pass on peers' questions.
    socket: PathBuf,
    /// `None`: no site shares its load.
    settings: Option<Settings>,
    process: Option<Process>,
    /// What it prints; after its end, until all has been read.
    output: Option<Lines>,
    restart: Restart,
    maps: BTreeMap<Origin, OwnedFd>,
    status: Value,
}

#[derive(Debug)]
struct Process {
    pid: i32,
    since: Instant,
    channel: OwnedFd,
    stopping: Option<Stopping>,
}

impl Documents {
    /// No site shares its load yet.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            socket: socket_path(),
            settings: None,
            process: None,
            output: None,
            restart: Restart::new(now),
            maps: BTreeMap::new(),
            status: Value::Null,
        }
    }

    /// Where workers pass on peers' questions.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// What a configuration means to the process.
    pub(super) fn settings_of(
        &self,
        config: &Config,
        certificates: &Certificates,
    ) -> Result<Option<Settings>, Trouble> {
        let settings = config.documents_settings(&self.socket, &certificates.files);
        settings.map_err(|error| Trouble::of("let documents migrate", &error))
    }

    /// Lets documents migrate as these settings say from now on.
    pub(super) fn configure(&mut self, settings: Option<Settings>) {
        if self.settings == settings {
            return;
        }
        let is_known = |at: &Origin| settings.iter().flat_map(|all| &all.sites).any(|site| site.at == *at);
        self.maps.retain(|at, _| is_known(at));
        self.settings = settings;
        if let (Some(process), Some(settings)) = (&self.process, &self.settings)
            && let Err(error) = send_settings(&process.channel, settings)
        {
            log::error(Trouble::of("tell the process of documents what has changed", &error));
        }
    }

    /// Starts the process, or ends it, as is due. `may_run`: this server serves, and no other takes its place.
    pub(super) fn advance(&mut self, may_run: bool, user: &WorkerUser, now: Instant) {
        match (&mut self.process, self.settings.is_some() && may_run) {
            (Some(process), false) => process.stop(now),
            (None, true) if self.restart.due() <= now => self.start(user, now),
            _ => {}
        }
    }

    /// When [`advance`](Self::advance) has something to do.
    pub(super) fn deadline(&self, may_run: bool) -> Option<Instant> {
        match &self.process {
            Some(process) => process.stopping.map(|stopping| stopping.deadline()),
            None => (self.settings.is_some() && may_run).then_some(self.restart.due()),
        }
    }

    fn start(&mut self, user: &WorkerUser, now: Instant) {
        let Some(settings) = &self.settings else { return };
        match create_folder(&self.socket, user).and_then(|()| start_process(settings, user, now)) {
            Ok((process, output)) => {
                self.process = Some(process);
                self.output = Some(output);
            }
            Err(error) => log::error(self.restart.note_failed_start(WHO, &error, now)),
        }
    }

    /// Its messages, to poll.
    pub(super) fn channel(&self) -> Option<BorrowedFd<'_>> {
        self.process.as_ref().map(|process| process.channel.as_fd())
    }

    /// What it prints, to poll.
    pub(super) fn output(&self) -> Option<BorrowedFd<'_>> {
        self.output.as_ref().map(AsFd::as_fd)
    }

    /// It has printed something.
    pub(super) fn handle_output(&mut self) {
        self.output.take_if(|lines| !lines.forward());
    }

    /// It has sent messages.
    pub(super) fn handle_messages(&mut self, workers: &Workers) {
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        while let Some(process) = &self.process {
            match channel::receive(&process.channel, &mut buffer) {
                Ok(Some((message, descriptors))) => self.handle(message, descriptors, workers),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // It has ended, or is of no use; its end is noted when it is reaped.
                Ok(None) | Err(_) => {
                    supervise::kill(process.pid);
                    break;
                }
            }
        }
    }

    fn handle(&mut self, message: FromDocuments, descriptors: Vec<OwnedFd>, workers: &Workers) {
        let file = descriptors.into_iter().next();
        match message {
            FromDocuments::Count => workers.tell_all(&ToWorker::CountDocuments, &[]),
            FromDocuments::Map { site } => {
                if let Some(file) = file {
                    workers.tell_all(&ToWorker::DocumentMap, &[file.as_fd()]);
                    self.maps.insert(site, file);
                }
            }
            FromDocuments::Status => {
                let status = memory_file::read(file).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
                self.status = status.unwrap_or_default();
            }
        }
    }

    /// A worker says what documents were asked for.
    pub(super) fn handle_served(&self, site: Origin, served: Served) {
        if let Some(process) = &self.process {
            // If its socket is full, the process does not look at loads either.
            let _ = channel::send(&process.channel, &ToDocuments::Served { site, served }, &[]);
        }
    }

    /// A worker begins to serve: it gets the maps that the others have.
    pub(super) fn introduce(&self, index: usize, workers: &Workers) {
        for file in self.maps.values() {
            // If the message cannot be sent, the worker has ended.
            let _ = workers.tell(index, &ToWorker::DocumentMap, &[file.as_fd()]);
        }
    }

    /// A child has ended. Returns whether it was the process. Documents stay where they are: the next one calls them home.
    pub(super) fn handle_end(&mut self, pid: i32, ended: Ended, now: Instant) -> bool {
        let Some(process) = self.process.take_if(|process| process.pid == pid) else { return false };
        self.handle_output();
        if process.stopping.is_none() {
            log::error(self.restart.note_end(ended, process.since, now).with_restart(WHO));
        }
        true
    }

    /// Whether it is gone.
    pub(super) fn is_gone(&self) -> bool {
        self.process.is_none()
    }

    /// Removes the folder of its socket.
    pub(super) fn remove_folder(&self) {
        if let Some(folder) = self.socket.parent() {
            // There is one only if a site shares its load.
            let _ = fs::remove_dir_all(folder);
        }
    }

    /// For the status.
    pub(super) fn report(&self) -> Option<Value> {
        self.settings.as_ref()?;
        Some(json!({ "pid": self.process.as_ref().map(|process| process.pid), "sites": self.status }))
    }
}

impl Process {
    /// Asks it to end; kills it if it does not.
    fn stop(&mut self, now: Instant) {
        match &mut self.stopping {
            Some(stopping) => stopping.kill_if_late(WHO, now),
            None => {
                supervise::signal(self.pid, Signal::TERM.as_raw());
                self.stopping = Some(Stopping::new(self.pid, now + GRACE));
            }
        }
    }
}

/// Beside the control socket, or among temporary files.
fn socket_path() -> PathBuf {
    let usual = usual_path().parent().map(Path::to_owned).unwrap_or_default();
    let is_ours = DirBuilder::new().recursive(true).mode(0o755).create(&usual).is_ok()
        && rustix::fs::access(&usual, rustix::fs::Access::WRITE_OK).is_ok();
    let parent = if is_ours { usual } else { std::env::temp_dir() };
    parent.join(format!("baton-documents-{}", std::process::id())).join("socket")
}

/// Creates the folder of the socket, which only the workers' user may enter.
fn create_folder(socket: &Path, user: &WorkerUser) -> io::Result<()> {
    let folder = socket.parent().unwrap_or(socket);
    match DirBuilder::new().mode(0o700).create(folder) {
        // Of a process before this one.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        created => created?,
    }
    match user {
        WorkerUser::Other { identity, .. } => chown(folder, Some(identity.uid), Some(identity.gid)),
        _ => Ok(()),
    }
}

fn start_process(settings: &Settings, user: &WorkerUser, now: Instant) -> io::Result<(Process, Lines)> {
    let (output, theirs) = Lines::open()?;
    let (channel, its_end) = passing::message_pair()?;
    // A process that does not read must not block the master.
    rustix::io::ioctl_fionbio(&channel, true)?;
    send_settings(&channel, settings)?;
    let mut command = Command::new(OWN_EXECUTABLE);
    command
        .arg0("baton")
        .args(["documents", "--parent", &std::process::id().to_string()])
        .stdin(its_end)
        .stdout(Stdio::null())
        .stderr(theirs)
        // A Ctrl-C in the terminal must reach the master alone.
        .process_group(0);
    if let WorkerUser::Other { identity, .. } = user {
        // Without other groups: the standard library drops them with root's rights.
        command.uid(identity.uid).gid(identity.gid);
    }
    // The master waits for it with all other children.
    let pid = i32::try_from(command.spawn()?.id()).map_err(io::Error::other)?;
    Ok((Process { pid, since: now, channel, stopping: None }, output))
}

fn send_settings(channel: &OwnedFd, settings: &Settings) -> io::Result<()> {
    let file = memory_file::write("baton-documents", &serde_json::to_vec(settings)?)?;
    channel::send(channel, &ToDocuments::Configure, &[file.as_fd()])
}

const WHO: &str = "the process of documents that migrate";

/// How long the process may take to end: it has nothing to finish.
const GRACE: Duration = Duration::from_secs(2);
