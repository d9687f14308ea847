//! Nodes of the cluster that etcd and DNS know: the process that follows these (`baton members`), and its view.
//!
//! ```text
//!   process ── Report ──► master: nodes of the configuration and of the view ──► a reload of the nodes
//!           ◄─ Order ───          `baton ctl cluster drain`, for all front-ends
//!           ◄─ Leave ───          this host's node is about to end
//!           ◄─ End ─────          it has ended
//! ```
//!
//! The process runs while the server serves or drains, and no other takes its place: that one has a process of its own, which
//! takes the registration over.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use baton_config::{Cluster, ClusterNode, OWN_EXECUTABLE};
use baton_members::{FromMembers, Member, Order, Report, Settings, ToMembers};
use baton_report::{Trouble, log, utc};
use baton_supervise::{self as supervise, Lines, Restart, Stopping};
use baton_sys::passing;
use baton_sys::process::Ended;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::channel::{self, MESSAGE_BYTES_MAX};
use super::management::Requester;
use super::memory_file;
use super::privileges::WorkerUser;

/// The process, and what it has told.
#[derive(Debug)]
pub(super) struct Members {
    /// `None`: the configuration lists all nodes.
    settings: Option<Settings>,
    process: Option<Process>,
    /// What it prints; after its end, until all has been read.
    output: Option<Lines>,
    restart: Restart,
    report: Report,
    /// When the nodes are to be looked at.
    news_due: Option<Instant>,
    /// Nodes that do not count, as the log was told.
    refused: Vec<String>,
    tickets: u64,
    orders: BTreeMap<u64, (Requester, Order)>,
}

#[derive(Debug)]
struct Process {
    pid: i32,
    since: Instant,
    channel: OwnedFd,
    stopping: Option<Stopping>,
}

/// Whether the process is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// It is.
    Yes,
    /// Another server has taken over, or there is nothing to serve: it ends as it is.
    No,
    /// The server has ended: the process ends, and so does the registration of this host.
    Ended,
}

impl Members {
    /// Follows nothing yet.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            settings: None,
            process: None,
            output: None,
            restart: Restart::new(now),
            report: Report::default(),
            news_due: None,
            refused: Vec::new(),
            tickets: 0,
            orders: BTreeMap::new(),
        }
    }

    /// Begins with the last view, if a server before this one has left any.
    pub(super) fn restore(&mut self, settings: Option<Settings>) {
        if let Some(settings) = &settings {
            self.report.members = baton_members::last_view(settings);
            self.report.is_restored = true;
        }
        self.settings = settings;
    }

    /// Follows what these settings name from now on.
    pub(super) fn configure(&mut self, settings: Option<Settings>, now: Instant) {
        if self.settings == settings {
            return;
        }
        if settings.is_none() {
            self.report = Report::default();
        }
        self.settings = settings;
        // Another one begins with the settings. Meanwhile the view counts, and the registration of this host, too.
        if let Some(process) = &mut self.process {
            process.stop(now);
        }
    }

    /// Starts the process, or ends it, as is due.
    pub(super) fn advance(&mut self, wanted: Wanted, user: &WorkerUser, now: Instant) {
        let is_wanted = wanted == Wanted::Yes && self.settings.is_some();
        match &mut self.process {
            Some(process) if process.stopping.is_some() => process.stop(now),
            Some(process) if wanted == Wanted::Ended => process.end(now),
            Some(process) if !is_wanted => process.stop(now),
            None if is_wanted && self.restart.due() <= now => self.start(user, now),
            _ => {}
        }
    }

    /// When [`advance`](Self::advance) has something to do.
    pub(super) fn deadline(&self, wanted: Wanted) -> Option<Instant> {
        match &self.process {
            Some(process) => process.stopping.map(|stopping| stopping.deadline()),
            None => (self.settings.is_some() && wanted == Wanted::Yes).then_some(self.restart.due()),
        }
    }

    fn start(&mut self, user: &WorkerUser, now: Instant) {
        let Some(settings) = &self.settings else { return };
        if let Err(trouble) = create_folder(settings, user) {
            // The view works without it, but for a start while etcd is away.
            log::warning(trouble);
        }
        match start_process(settings, user, now) {
            Ok((process, output)) => {
                self.process = Some(process);
                self.output = Some(output);
            }
            Err(error) => log::error(self.restart.note_failed_start(WHO, &error, now)),
        }
    }

    /// This host's node is about to end: front-ends are to choose others.
    pub(super) fn leave(&self) {
        if let Some(process) = &self.process {
            // If the message cannot be sent, the process has ended.
            let _ = channel::send(&process.channel, &ToMembers::Leave, &[]);
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

    /// It has sent messages. Returns the orders that are done, or not.
    pub(super) fn handle_messages(&mut self, now: Instant) -> Vec<(Requester, Order, Option<String>)> {
        let mut done = Vec::new();
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        while let Some(process) = &self.process {
            match channel::receive(&process.channel, &mut buffer) {
                Ok(Some((FromMembers::Report, descriptors))) => {
                    let report = memory_file::read(descriptors.into_iter().next())
                        .and_then(|bytes| Ok(serde_json::from_slice::<Report>(&bytes)?));
                    match report {
                        Ok(report) => self.take(report, now),
                        Err(error) => log::error(format_args!("a view that cannot be read: {error}")),
                    }
                }
                Ok(Some((FromMembers::Ordered { ticket, error }, _))) => {
                    let order = self.orders.remove(&ticket);
                    done.extend(order.map(|(requester, order)| (requester, order, error)));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // It has ended, or is of no use; its end is noted when it is reaped.
                Ok(None) | Err(_) => {
                    supervise::kill(process.pid);
                    break;
                }
            }
        }
        done
    }

    fn take(&mut self, report: Report, now: Instant) {
        // A process that has nothing yet knows less than the view from before.
        let knows_less = report.is_restored && !self.report.members.is_empty();
        let members = if knows_less { std::mem::take(&mut self.report.members) } else { report.members };
        self.report = Report { members, ..report };
        self.news_due = Some(now);
    }

    /// Has an operator's order written to etcd.
    ///
    /// # Errors
    /// There is no process that could.
    pub(super) fn order(&mut self, requester: Requester, order: Order) -> Result<(), String> {
        let process = self.process.as_ref().ok_or("the process that asks etcd does not run")?;
        self.tickets += 1;
        let message = ToMembers::Order { ticket: self.tickets, order: order.clone() };
        channel::send(&process.channel, &message, &[]).map_err(|error| error.to_string())?;
        self.orders.insert(self.tickets, (requester, order));
        Ok(())
    }

    /// A child has ended. Returns whether it was the process, and whose orders are lost.
    pub(super) fn handle_end(&mut self, pid: i32, ended: Ended, now: Instant) -> Option<Vec<Requester>> {
        let process = self.process.take_if(|process| process.pid == pid)?;
        self.handle_output();
        match process.stopping {
            None => log::error(self.restart.note_end(ended, process.since, now).with_restart(WHO)),
            Some(_) => self.restart = Restart::new(now),
        }
        Some(std::mem::take(&mut self.orders).into_values().map(|(requester, _)| requester).collect())
    }

    /// Whether it is gone.
    pub(super) fn is_gone(&self) -> bool {
        self.process.is_none()
    }

    /// Since when there are news; in the future if they were of no use, and are to be looked at again.
    pub(super) fn news_due(&self) -> Option<Instant> {
        self.news_due
    }

    /// Whether there are news since the last call.
    pub(super) fn take_news(&mut self) -> bool {
        self.news_due.take().is_some()
    }

    /// A reload of the nodes has failed: they are looked at again.
    pub(super) fn retry(&mut self, now: Instant) {
        self.news_due.get_or_insert(now + RETRY);
    }

    /// The nodes that it knows.
    pub(super) fn members(&self) -> &[Member] {
        &self.report.members
    }

    /// The nodes of a configuration and those of the view.
    pub(super) fn merged(&mut self, cluster: &Cluster) -> Vec<ClusterNode> {
        let members = if cluster.has_other_sources() { &self.report.members[..] } else { &[] };
        let (nodes, refused) = cluster.with_members(members);
        if self.refused != refused {
            refused.iter().for_each(log::warning);
            self.refused = refused;
        }
        nodes
    }

    /// For the status.
    pub(super) fn report(&self) -> Option<Value> {
        let settings = self.settings.as_ref()?;
        let Report { changes, is_restored, etcd, members } = &self.report;
        let time = |seconds: u64| utc(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let etcd = etcd.as_ref().map(|etcd| {
            let (name, error) = etcd.registered.clone().unzip();
            json!({
                "endpoint": etcd.endpoint,
                "reachable": etcd.error.is_none() && etcd.revision > 0,
                "error": etcd.error,
                "stale_since": etcd.stale_since_s.map(time),
                "age_seconds": self.age_s(),
                "revision": etcd.revision,
                "cluster_id": format!("{:x}", etcd.cluster_id),
                "losses": etcd.losses,
                "compactions": etcd.compactions,
                "skipped": etcd.skipped.iter().map(|(key, why)| json!({ "key": key, "why": why })).collect::<Vec<_>>(),
                "registered_as": name,
                "registration_error": error.flatten(),
            })
        });
        Some(json!({
            "pid": self.process.as_ref().map(|process| process.pid),
            "state_file": settings.state_file,
            "changes": changes,
            "restored": is_restored,
            "members": members.len(),
            "refused": self.refused,
            "etcd": etcd,
        }))
    }

    /// How old the view of etcd is: 0 while etcd answers.
    pub(super) fn age_s(&self) -> Option<u64> {
        let since = self.report.etcd.as_ref()?.stale_since_s;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        Some(since.map_or(0, |since| now.saturating_sub(since)))
    }

    /// What is known of etcd, if it is asked.
    pub(super) fn etcd(&self) -> Option<&baton_members::EtcdReport> {
        self.report.etcd.as_ref()
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

    /// Asks it to end the registration of this host and itself.
    fn end(&mut self, now: Instant) {
        if channel::send(&self.channel, &ToMembers::End, &[]).is_err() {
            supervise::signal(self.pid, Signal::TERM.as_raw());
        }
        self.stopping = Some(Stopping::new(self.pid, now + GRACE));
    }
}

fn start_process(settings: &Settings, user: &WorkerUser, now: Instant) -> io::Result<(Process, Lines)> {
    let (output, theirs) = Lines::open()?;
    let (channel, its_end) = passing::message_pair()?;
    // A process that does not read must not block the master.
    rustix::io::ioctl_fionbio(&channel, true)?;
    let file = memory_file::write("baton-members", &serde_json::to_vec(settings)?)?;
    channel::send(&channel, &ToMembers::Configure, &[file.as_fd()])?;
    let mut command = Command::new(OWN_EXECUTABLE);
    command
        .arg0("baton")
        .args(["members", "--parent", &std::process::id().to_string()])
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

/// Creates the folder of the last view, for the user of the process.
fn create_folder(settings: &Settings, user: &WorkerUser) -> Result<(), Trouble> {
    let Some(folder) = settings.state_file.parent() else { return Ok(()) };
    let create = || {
        if let Some(parent) = folder.parent() {
            fs::create_dir_all(parent)?;
        }
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        match user {
            WorkerUser::Other { identity, .. } if fs::metadata(folder)?.uid() != identity.uid => {
                chown(folder, Some(identity.uid), Some(identity.gid))
            }
            _ => Ok(()),
        }
    };
    create().map_err(|error| {
        Trouble::of(format_args!("create {} for the view of the cluster", folder.display()), &error)
            .about_file(folder, &error)
            .remedy("name another folder: `state_folder` in [cluster]")
    })
}

const WHO: &str = "the process that knows the nodes of the cluster";

/// The time between two tries to take over nodes.
const RETRY: Duration = Duration::from_secs(1);

/// How long the process may take to end: etcd may not answer it.
const GRACE: Duration = Duration::from_secs(5);
