//! Certificates from an authority: the process that obtains them (`baton acme`), and its proofs at the workers.
//!
//! ```text
//!   process ── PutChallenge ──► master ── PutProof ──► every worker
//!           ◄─ ChallengeReady ─        ◄─ HasProof ──  (all that serve)
//!           ── Issued ────────►        a reload of the certificates
//! ```
//!
//! The process runs while the server serves and no other takes its place: that one has a process of its own, which
//! waits until this one has left the store.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use baton_acme::{Challenge, FromAcme, Settings, ToAcme, UnixTime};
use baton_config::OWN_EXECUTABLE;
use baton_report::{Trouble, log, utc};
use baton_supervise::{self as supervise, Lines, Restart, Stopping};
use baton_sys::passing;
use baton_sys::process::Ended;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::channel::{self, MESSAGE_BYTES_MAX, ToWorker};
use super::memory_file;
use super::privileges::WorkerUser;
use super::workers::Workers;

/// The process, what it has asked for and what it has told.
#[derive(Debug)]
pub(super) struct Acme {
    /// `None`: no site gets its certificate from an authority.
    settings: Option<Settings>,
    process: Option<Process>,
    /// What it prints; after its end, until all has been read.
    output: Option<Lines>,
    restart: Restart,
    proofs: BTreeMap<u64, Proof>,
    plans: BTreeMap<String, Plan>,
    has_issued: bool,
}

#[derive(Debug)]
struct Process {
    pid: i32,
    since: Instant,
    channel: OwnedFd,
    stopping: Option<Stopping>,
}

/// A proof at the workers.
#[derive(Debug)]
struct Proof {
    challenge: Challenge,
    /// Workers that have not said that they have it.
    awaited: BTreeSet<usize>,
}

/// What the process will do about a certificate.
#[derive(Debug)]
struct Plan {
    order_at: UnixTime,
    failures: u32,
    error: Option<String>,
}

impl Acme {
    /// Obtains nothing yet.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            settings: None,
            process: None,
            output: None,
            restart: Restart::new(now),
            proofs: BTreeMap::new(),
            plans: BTreeMap::new(),
            has_issued: false,
        }
    }

    /// Obtains what these settings want from now on.
    pub(super) fn configure(&mut self, settings: Option<Settings>) {
        if self.settings == settings {
            return;
        }
        let wanted = settings.iter().flat_map(|settings| &settings.certificates);
        let wanted: BTreeSet<_> = wanted.map(|names| names.first().to_owned()).collect();
        self.plans.retain(|name, _| wanted.contains(name));
        self.settings = settings;
        if let (Some(process), Some(settings)) = (&self.process, &self.settings)
            && let Err(error) = send_settings(&process.channel, settings)
        {
            log::error(Trouble::of("tell the process that obtains certificates what is wanted", &error));
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
        if let Err(trouble) = create_store(settings, user) {
            // Only the operator can help; later a reload, or the next try, finds it mended.
            log::error(trouble);
            return self.restart.start_at(now + STORE_LOOK);
        }
        match start_process(settings, user, now) {
            Ok((process, output)) => {
                self.process = Some(process);
                self.output = Some(output);
            }
            Err(error) => log::error(self.restart.note_failed_start(WHO, &error, now)),
        }
    }

    /// What to poll: its messages, and what it prints.
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
                Ok(Some((message, _))) => self.handle(message, workers),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // It has ended, or is of no use; its end is noted when it is reaped.
                Ok(None) | Err(_) => {
                    supervise::kill(process.pid);
                    break;
                }
            }
        }
    }

    fn handle(&mut self, message: FromAcme, workers: &Workers) {
        match message {
            FromAcme::PutChallenge { id, challenge } => {
                workers.tell_all(&ToWorker::PutProof { id, challenge: challenge.clone() }, &[]);
                let awaited = workers.serving().collect();
                self.proofs.insert(id, Proof { challenge, awaited });
                self.report_ready(id);
            }
            FromAcme::RemoveChallenge { id } => {
                self.proofs.remove(&id);
                workers.tell_all(&ToWorker::RemoveProof { id }, &[]);
            }
            FromAcme::Issued { .. } => self.has_issued = true,
            FromAcme::Plan { name, order_at, failures, error } => {
                self.plans.insert(name, Plan { order_at, failures, error });
            }
        }
    }

    /// A worker has a proof.
    pub(super) fn handle_has_proof(&mut self, index: usize, id: u64) {
        if let Some(proof) = self.proofs.get_mut(&id) {
            proof.awaited.remove(&index);
            self.report_ready(id);
        }
    }

    /// A worker begins to serve: it gets the proofs that the others have.
    pub(super) fn introduce(&self, index: usize, workers: &Workers) {
        for (id, proof) in &self.proofs {
            // If the message cannot be sent, the worker has ended.
            let _ =
                workers.tell(index, &ToWorker::PutProof { id: *id, challenge: proof.challenge.clone() }, &[]);
        }
    }

    /// A worker has ended.
    pub(super) fn forget_worker(&mut self, index: usize) {
        let waiting = |(id, proof): (&u64, &mut Proof)| proof.awaited.remove(&index).then_some(*id);
        let ids: Vec<_> = self.proofs.iter_mut().filter_map(waiting).collect();
        ids.into_iter().for_each(|id| self.report_ready(id));
    }

    /// Tells the process if all workers have the proof.
    fn report_ready(&self, id: u64) {
        let is_ready = self.proofs.get(&id).is_some_and(|proof| proof.awaited.is_empty());
        if let Some(process) = self.process.as_ref().filter(|_| is_ready) {
            // If the message cannot be sent, the process has ended or will complain.
            let _ = channel::send(&process.channel, &ToAcme::ChallengeReady { id }, &[]);
        }
    }

    /// A child has ended. Returns whether it was the process.
    pub(super) fn handle_end(&mut self, pid: i32, ended: Ended, workers: &Workers, now: Instant) -> bool {
        let Some(process) = self.process.take_if(|process| process.pid == pid) else { return false };
        self.handle_output();
        for id in std::mem::take(&mut self.proofs).into_keys() {
            workers.tell_all(&ToWorker::RemoveProof { id }, &[]);
        }
        if process.stopping.is_none() {
            log::error(self.restart.note_end(ended, process.since, now).with_restart(WHO));
        }
        true
    }

    /// Whether it is gone.
    pub(super) fn is_gone(&self) -> bool {
        self.process.is_none()
    }

    /// Whether it has issued a certificate since the last call of [`take_news`](Self::take_news).
    pub(super) fn has_news(&self) -> bool {
        self.has_issued
    }

    /// The same, once.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_issued)
    }

    /// For the status.
    pub(super) fn report(&self) -> Option<Value> {
        let settings = self.settings.as_ref()?;
        let plan = |(name, plan): (&String, &Plan)| {
            json!({
                "name": name,
                "next_order": utc(plan.order_at.into()),
                "failures": plan.failures,
                "error": plan.error,
            })
        };
        Some(json!({
            "directory": settings.directory,
            "store": settings.store,
            "pid": self.process.as_ref().map(|process| process.pid),
            "plans": self.plans.iter().map(plan).collect::<Vec<_>>(),
        }))
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

fn start_process(settings: &Settings, user: &WorkerUser, now: Instant) -> io::Result<(Process, Lines)> {
    let (output, theirs) = Lines::open()?;
    let (channel, its_end) = passing::message_pair()?;
    // A process that does not read must not block the master.
    rustix::io::ioctl_fionbio(&channel, true)?;
    send_settings(&channel, settings)?;
    let mut command = Command::new(OWN_EXECUTABLE);
    command
        .arg0("baton")
        .args(["acme", "--parent", &std::process::id().to_string()])
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
    let file = memory_file::write("baton-acme", &serde_json::to_vec(settings)?)?;
    channel::send(channel, &ToAcme::Configure, &[file.as_fd()])
}

/// Creates the folder of the certificates, which only the process and the master may enter.
fn create_store(settings: &Settings, user: &WorkerUser) -> Result<(), Trouble> {
    let store = &settings.store;
    let create = || {
        if let Some(parent) = store.parent() {
            fs::create_dir_all(parent)?;
        }
        DirBuilder::new().recursive(true).mode(0o700).create(store)?;
        match user {
            WorkerUser::Other { identity, .. } if fs::metadata(store)?.uid() != identity.uid => {
                chown(store, Some(identity.uid), Some(identity.gid))
            }
            _ => Ok(()),
        }
    };
    create().map_err(|error| {
        Trouble::of(format_args!("create {} for certificates", store.display()), &error)
            .about_file(store, &error)
            .remedy("name another folder: `store` in [acme]")
    })
}

const WHO: &str = "the process that obtains certificates";

/// How long the process may take to end: it has nothing to finish.
const GRACE: Duration = Duration::from_secs(2);

/// The time between two tries to create the store.
const STORE_LOOK: Duration = Duration::from_secs(60);
