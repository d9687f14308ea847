//! The process that moves connections between hosts (`baton mover`), as the master knows it.
//!
//! ```text
//!   master ── connects, or starts it ── Hello, Nodes ──► agent
//!          ◄── Reachable, Loads, Status ──                │ ▲
//!   OriginRecords, which workers read                     │ │ connections, by two pairs of sockets
//!   workers ──────────────────────────────────────────────┘ └── for the life of the server
//! ```
//!
//! It lives on when the server ends, since the connections that it forwards would end with it. So a new server first looks
//! for one that runs. While there is none, requests are relayed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use baton_cluster::local::{
    AgentSettings, AgentStatus, Drain, FromMaster, NAME_BYTES_MAX, ToMaster, VERSION,
};
use baton_config::{Config, OWN_EXECUTABLE};
use baton_confine::Limits;
use baton_report::log;
use baton_supervise::Restart;
use baton_sys::passing;
use baton_sys::process::Ended;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde_json::{Value, json};

use super::channel::{self, MESSAGE_BYTES_MAX, ToWorker};
use super::hand_off_costs::HandOffCosts;
use super::origins::Origins;
use super::privileges;
use super::workers::Workers;

/// The agent, and how to get to it.
#[derive(Debug)]
pub(crate) struct HandoffAgent {
    /// `None`: no connection moves to another host, or comes from one.
    settings: Option<AgentSettings>,
    socket: PathBuf,
    limits: Limits,
    ends: Option<Ends>,
    link: Option<OwnedFd>,
    /// The agent that this server has started, while it runs.
    process: Option<(i32, Instant)>,
    restart: Restart,
    /// When to connect again.
    due: Instant,
    status: AgentStatus,
    costs: HandOffCosts,
    /// Why it is of no use, as it says.
    trouble: Option<String>,
    /// Requests that had been handed over to each node when the agent began to count.
    handed_before: BTreeMap<String, u64>,
    /// What operators have said of nodes, at this member or another.
    drains: Vec<Drain>,
    /// Whether this host's node is drained by their word.
    is_drained_here: bool,
    has_drain_news: bool,
    /// Whether workers were told to give connections back.
    gives_back: bool,
}

/// Two pairs of sockets, for the life of the server: an agent that ends closes none for the workers.
#[derive(Debug)]
struct Ends {
    requests: [OwnedFd; 2],
    arrivals: [OwnedFd; 2],
}

/// The ends of a worker.
#[derive(Debug)]
pub(crate) struct WorkerEnds {
    /// Over which it gives connections away.
    pub(crate) requests: OwnedFd,
    /// Over which it gets connections.
    pub(crate) arrivals: OwnedFd,
}

impl HandoffAgent {
    /// For a server that begins with this configuration. Only one that has a key then ever moves connections between hosts.
    ///
    /// # Errors
    /// `EMFILE`.
    pub(crate) fn new(config: &Config, now: Instant) -> io::Result<Self> {
        let pair = || passing::message_pair().map(|(ours, theirs)| [ours, theirs]);
        let ends = config
            .cluster
            .key
            .is_some()
            .then(|| Ok::<_, io::Error>(Ends { requests: pair()?, arrivals: pair()? }));
        Ok(Self {
            settings: config.agent_settings(),
            socket: config.agent_socket(),
            limits: privileges::limits(config),
            ends: ends.transpose()?,
            link: None,
            process: None,
            restart: Restart::new(now),
            due: now,
            status: AgentStatus::default(),
            costs: HandOffCosts::default(),
            trouble: None,
            handed_before: BTreeMap::new(),
            drains: Vec::new(),
            is_drained_here: false,
            has_drain_news: false,
            gives_back: false,
        })
    }

    /// The ends of a worker. `None`: no connection moves between hosts.
    pub(crate) fn into_worker_ends(self) -> Option<WorkerEnds> {
        let Ends { requests: [requests, _], arrivals: [arrivals, _] } = self.ends?;
        Some(WorkerEnds { requests, arrivals })
    }

    /// Moves connections by these settings from now on.
    pub(crate) fn configure(&mut self, config: &Config) {
        let settings = config.agent_settings();
        let before = std::mem::replace(&mut self.settings, settings);
        let (Some(link), Some(before), Some(settings)) = (&self.link, before, &self.settings) else { return };
        if before == *settings {
            return;
        }
        let is_same_but_for_nodes = AgentSettings { nodes: settings.nodes.clone(), ..before } == *settings;
        let nodes = FromMaster::Nodes { nodes: settings.nodes.clone() };
        // With another key, or other addresses, it is told all of it anew.
        if !is_same_but_for_nodes || channel::send(link, &nodes, &[]).is_err() {
            self.link = None;
        }
    }

    /// Connects to the agent, or starts it, as is due. `may_run`: this server serves, and no other takes its place.
    pub(crate) fn advance(&mut self, may_run: bool, config: &Config, origins: &Origins, now: Instant) {
        if self.settings.is_none() {
            self.link = None;
        }
        if self.deadline(may_run).is_none_or(|due| now < due) {
            return;
        }
        self.due = now + PAUSE;
        match self.connect(config, origins) {
            Ok(()) => {}
            Err(error) if is_absent(&error) && self.process.is_none() && self.restart.due() <= now => {
                self.start(now);
            }
            Err(error) if is_absent(&error) => {}
            Err(error) => {
                log::error(format_args!(
                    "cannot connect to the handoff agent at {}: {error}",
                    self.socket.display()
                ));
                self.due = now + PAUSE_BEHIND_ERROR;
            }
        }
    }

    /// When [`advance`](Self::advance) has something to do.
    pub(crate) fn deadline(&self, may_run: bool) -> Option<Instant> {
        let is_wanted = may_run && self.link.is_none() && self.ends.is_some() && self.settings.is_some();
        is_wanted.then_some(self.due)
    }

    fn connect(&mut self, config: &Config, origins: &Origins) -> io::Result<()> {
        let (Some(settings), Some(ends)) = (&self.settings, &self.ends) else { return Ok(()) };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let link = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        rustix::net::connect(&link, &SocketAddrUnix::new(&self.socket)?)?;
        let hello = FromMaster::Hello { version: VERSION, settings: settings.clone() };
        channel::send(&link, &hello, &[ends.requests[1].as_fd(), ends.arrivals[1].as_fd()])?;
        self.handed_before =
            origins.nodes(config).map(|(node, record)| (node, record.handed_off())).collect();
        self.trouble = None;
        self.link = Some(link);
        Ok(())
    }

    fn start(&mut self, now: Instant) {
        let started = Command::new(OWN_EXECUTABLE)
            .arg0("baton")
            .arg("mover")
            .arg("--socket")
            .arg(&self.socket)
            .args(privileges::options(&self.limits))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // It writes to the error log of the server that has started it.
            .stderr(Stdio::inherit())
            .env_remove("NOTIFY_SOCKET")
            // A Ctrl-C in the terminal must not reach it.
            .process_group(0)
            .spawn();
        // The master waits for it with all other children.
        match started.and_then(|child| i32::try_from(child.id()).map_err(io::Error::other)) {
            Ok(pid) => self.process = Some((pid, now)),
            Err(error) => log::error(self.restart.note_failed_start(WHO, &error, now)),
        }
    }

    /// Its connection, to poll.
    pub(crate) fn link(&self) -> Option<BorrowedFd<'_>> {
        self.link.as_ref().map(AsFd::as_fd)
    }

    /// The agent has sent messages.
    pub(crate) fn handle_messages(&mut self, config: &Config, origins: &Origins) {
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        while let Some(link) = &self.link {
            match channel::receive(link, &mut buffer) {
                Ok(Some((message, _))) => self.handle(message, config, origins),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Ok(None) | Err(_) => self.lose(config, origins),
            }
        }
    }

    fn handle(&mut self, message: ToMaster, config: &Config, origins: &Origins) {
        match message {
            ToMaster::Refused { trouble } => self.trouble = Some(trouble),
            ToMaster::Reachable { node, reachable } => {
                if let Some(record) = origins.node(config, &node) {
                    record.set_takes_connections(reachable);
                }
            }
            ToMaster::Loads(loads) => {
                let Some(record) = origins.node(config, &loads.node) else { return };
                let before = self.handed_before.get(&loads.node).copied().unwrap_or(0);
                record.set_settled(before.wrapping_add(loads.ended).wrapping_sub(loads.begun_kept));
                record.set_connections_at_node(loads.active);
            }
            ToMaster::Drains { drains, here } => {
                (self.drains, self.is_drained_here, self.has_drain_news) = (drains, here, true);
            }
            ToMaster::Status(status) => {
                self.costs.handle(&self.status, &status);
                for node in &status.nodes {
                    if let Some(record) = origins.node(config, &node.node) {
                        record.set_hand_off_seen(self.costs.of(node));
                    }
                }
                self.status = status;
            }
        }
    }

    /// The agent has ended, and with it all requests that were handed over; or another server has taken its place here.
    fn lose(&mut self, config: &Config, origins: &Origins) {
        self.link = None;
        self.status = AgentStatus::default();
        for (_, record) in origins.nodes(config) {
            record.set_takes_connections(false);
            record.set_connections_at_node(0);
            record.set_settled(record.handed_off());
        }
    }

    /// Has all members of the cluster know what an operator says of a node. False: there is no agent that could tell them.
    ///
    /// # Errors
    /// The name is none.
    pub(crate) fn drain(&self, node: &str, is_drained: bool) -> Result<bool, String> {
        if !(1..=NAME_BYTES_MAX).contains(&node.len()) {
            return Err(format!("the name of a node has 1 to {NAME_BYTES_MAX} bytes"));
        }
        let link = self.link.as_ref().filter(|_| self.status.spreads_drains);
        let message = FromMaster::Drain { node: node.to_owned(), is_drained };
        Ok(link.is_some_and(|link| channel::send(link, &message, &[]).is_ok()))
    }

    /// Whether there is another word on nodes. True once.
    pub(crate) fn take_drain_news(&mut self) -> bool {
        std::mem::take(&mut self.has_drain_news)
    }

    /// Connections of front-ends that this host has; `None`: the agent has not said so yet.
    pub(crate) fn left(&self) -> Option<u64> {
        (self.status.pid > 0).then_some(self.status.kept)
    }

    /// What operators have said of nodes.
    pub(crate) fn drains(&self) -> &[Drain] {
        &self.drains
    }

    /// Nodes that are drained by their word.
    pub(crate) fn drained(&self) -> BTreeSet<String> {
        self.drains.iter().filter(|drain| drain.is_drained).map(|drain| drain.node.clone()).collect()
    }

    /// Lets workers give connections back, or keep them. `is_drained`: others than members say that this host's node is drained.
    pub(crate) fn follow_drains(&mut self, is_drained: bool, workers: &Workers) {
        let gives_back = is_drained || self.is_drained_here;
        if std::mem::replace(&mut self.gives_back, gives_back) != gives_back {
            let words =
                if gives_back { "drained: connections go back to front-ends" } else { "no longer drained" };
            log::notice(format_args!("this node is {words}"));
            workers.tell_all(&ToWorker::GiveBack { gives_back }, &[]);
        }
    }

    /// A worker begins to serve.
    pub(crate) fn introduce(&self, index: usize, workers: &Workers) {
        if self.gives_back {
            // If the message cannot be sent, the worker has ended.
            let _ = workers.tell(index, &ToWorker::GiveBack { gives_back: true }, &[]);
        }
    }

    /// A child has ended. Returns whether it was the agent.
    pub(crate) fn handle_end(&mut self, pid: i32, ended: Ended, now: Instant) -> bool {
        let Some((_, since)) = self.process.take_if(|(of_agent, _)| *of_agent == pid) else { return false };
        // It ends by itself when no server needs it.
        if ended != Ended::Exited(0) {
            log::error(self.restart.note_end(ended, since, now).with_restart(WHO));
        }
        true
    }

    /// A worker has ended before its time: connections of front-ends that it had are closed.
    pub(crate) fn handle_worker_end(&mut self, pid: i32) {
        let Ok(worker) = u32::try_from(pid) else { return };
        if let Some(link) = &self.link
            && channel::send(link, &FromMaster::WorkerEnded { worker }, &[]).is_err()
        {
            // It has ended, or does not read. It is told all of it anew; what it was not told now expires.
            self.link = None;
        }
    }

    /// For the status.
    pub(crate) fn report(&self) -> Option<Value> {
        self.settings.as_ref()?;
        let AgentStatus { pid, cpu_us, flows, kept, front_ends, nodes, .. } = &self.status;
        Some(json!({
            "socket": self.socket,
            "connected": self.link.is_some(),
            "trouble": self.trouble,
            "pid": pid,
            "cpu_us": cpu_us,
            "connections_at_nodes": flows,
            "connections_of_front_ends": kept,
            "front_ends": front_ends,
            "nodes": nodes,
            "gives_back": self.gives_back,
        }))
    }
}

/// Whether no agent listens at the socket.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

const WHO: &str = "the process that moves connections";

/// Between two tries to connect to an agent that begins.
const PAUSE: Duration = Duration::from_millis(20);

/// Between two tries to connect to one that cannot be connected to.
const PAUSE_BEHIND_ERROR: Duration = Duration::from_secs(5);
