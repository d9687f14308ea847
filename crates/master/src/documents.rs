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
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baton_config::Config;
use baton_confine::Limits;
use baton_dcws::{DocumentsSettings, FromDocuments, Origin, ServedCounts, ToDocuments};
use baton_report::{OperatorError, log};
use baton_sys::process::Ended;
use serde_json::{Value, json};

use super::certificates::Certificates;
use super::channel::ToWorker;
use super::child::{Child, Kind};
use super::control::usual_path;
use super::management::Requester;
use super::memory_file;
use super::privileges::WorkerUser;
use super::route_questions::Tickets;
use super::workers::Workers;

/// The process, and what it has said.
#[derive(Debug)]
pub(super) struct Documents {
    /// Where workers pass on peers' questions.
    socket: PathBuf,
    /// `None`: no site shares its load.
    settings: Option<DocumentsSettings>,
    pub(super) child: Child,
    maps: BTreeMap<Origin, OwnedFd>,
    status: Value,
    /// Questions about documents without an answer yet.
    questions: Tickets,
}

impl Documents {
    /// No site shares its load yet.
    pub(super) fn new(limits: Limits, now: Instant) -> Self {
        Self {
            socket: socket_path(),
            settings: None,
            child: Child::new(&KIND, limits, now),
            maps: BTreeMap::new(),
            status: Value::Null,
            questions: Tickets::default(),
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
    ) -> Result<Option<DocumentsSettings>, OperatorError> {
        let settings = config.documents_settings(&self.socket, &certificates.files);
        settings.map_err(|error| OperatorError::of("let documents migrate", &error))
    }

    /// Lets documents migrate as these settings say from now on.
    pub(super) fn configure(&mut self, settings: Option<DocumentsSettings>) {
        if self.settings == settings {
            return;
        }
        let is_known = |at: &Origin| settings.iter().flat_map(|all| &all.sites).any(|site| site.at == *at);
        self.maps.retain(|at, _| is_known(at));
        self.settings = settings;
        if let Some(settings) = &self.settings
            && let Err(error) = self.child.configure(&ToDocuments::Configure, settings)
        {
            log::error(OperatorError::of("tell the process of documents what has changed", &error));
        }
    }

    /// Starts the process, or ends it, as is due. `may_run`: this server serves, and no other takes its place.
    pub(super) fn advance(&mut self, may_run: bool, user: &WorkerUser, now: Instant) {
        match &self.settings {
            Some(settings) if may_run => {
                if !self.child.may_start(now) {
                    return;
                }
                let folder = folder_of(&self.socket);
                if let Err(error) = create_folder(folder, user) {
                    let what = format_args!("create a folder for {}", self.socket.display());
                    log::error(OperatorError::of(what, &error));
                    return self.child.start_at(now + FOLDER_LOOK);
                }
                self.child.start(&ToDocuments::Configure, settings, folder, user, now);
            }
            _ => self.child.stop(now),
        }
    }

    /// When [`advance`](Self::advance) has something to do.
    pub(super) fn deadline(&self, may_run: bool) -> Option<Instant> {
        self.child.deadline(self.settings.is_some() && may_run)
    }

    /// The process has sent messages. Returns answers, and who has asked.
    pub(super) fn handle_messages(&mut self, workers: &Workers) -> Vec<(Requester, Value)> {
        let mut told = Vec::new();
        for (message, descriptors) in self.child.receive() {
            if let FromDocuments::Told { ticket, documents } = message {
                told.extend(self.questions.take(ticket).map(|asked| (asked, json!({ "told": documents }))));
            } else {
                self.handle(message, descriptors, workers);
            }
        }
        told
    }

    /// Asks the process where the document at a path is.
    ///
    /// # Errors
    /// No site shares its load, or the process does not run.
    pub(super) fn ask(&mut self, path: String, requester: Requester) -> Result<(), String> {
        self.settings.as_ref().ok_or("no site shares its load: see `documents` of a site")?;
        let ticket = self.questions.open(requester);
        self.child.tell(&ToDocuments::Tell { ticket, path }).map_err(|error| {
            self.questions.take(ticket);
            format!("cannot ask the process that decides: {error}")
        })
    }

    /// A child of the master has ended. Returns those whose questions are lost, if it was the process.
    pub(super) fn handle_end(&mut self, pid: i32, ended: Ended, now: Instant) -> Option<Vec<Requester>> {
        self.child.handle_end(pid, ended, now).then(|| self.questions.drain())
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
            // It is an answer, which has been taken.
            FromDocuments::Told { .. } => {}
        }
    }

    /// A worker says what documents were asked for.
    pub(super) fn handle_served(&self, site: Origin, served: ServedCounts) {
        // If its socket is full, the process does not look at loads either.
        let _ = self.child.tell(&ToDocuments::Served { site, served });
    }

    /// A worker begins to serve: it gets the maps that the others have.
    pub(super) fn introduce(&self, index: usize, workers: &Workers) {
        for file in self.maps.values() {
            // If the message cannot be sent, the worker has ended.
            let _ = workers.tell(index, &ToWorker::DocumentMap, &[file.as_fd()]);
        }
    }

    /// Removes the folder of its socket.
    pub(super) fn remove_folder(&self) {
        // There is one only if a site shares its load.
        let _ = fs::remove_dir_all(folder_of(&self.socket));
    }

    /// What the process has told of each site.
    pub(super) fn sites(&self) -> &Value {
        self.settings.as_ref().map_or(&Value::Null, |_| &self.status)
    }

    /// For the status.
    pub(super) fn report(&self) -> Option<Value> {
        self.settings.as_ref()?;
        Some(json!({ "pid": self.child.pid(), "sites": self.status }))
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

/// The folder of the socket, which has one of its own.
fn folder_of(socket: &Path) -> &Path {
    socket.parent().unwrap_or(socket)
}

/// Creates the folder of the socket, which only the workers' user may enter.
fn create_folder(folder: &Path, user: &WorkerUser) -> io::Result<()> {
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

/// The process has nothing to finish. When it ends by itself, documents stay where they are: the next one calls them home.
const KIND: Kind = Kind {
    command: "documents",
    who: "the process of documents that migrate",
    grace: Duration::from_secs(2),
};

/// The time between two tries to create the folder.
const FOLDER_LOOK: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{MESSAGE_BYTES_MAX, receive};

    #[test]
    fn a_map_goes_to_all_workers_and_to_each_that_begins_later() {
        let (workers, theirs) = Workers::for_test(2);
        let mut documents = Documents::new(Limits::default(), Instant::now());
        let site: Origin = "http://a.test".parse().unwrap();
        let map = memory_file::write("map", b"{}").unwrap();
        documents.handle(FromDocuments::Map { site: site.clone() }, vec![map.into()], &workers);
        documents.introduce(1, &workers);
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        for (worker, maps) in [(0, 1), (1, 2)] {
            for _ in 0..maps {
                let (message, files) = receive::<ToWorker>(&theirs[worker], &mut buffer).unwrap().unwrap();
                assert_eq!((message, files.len()), (ToWorker::DocumentMap, 1));
            }
        }
        // A site that shares its load no more.
        documents.settings = Some(DocumentsSettings { socket: PathBuf::new(), sites: Vec::new() });
        documents.configure(None);
        assert!(documents.maps.is_empty() && documents.report().is_none());
    }
}
