//! Work that takes the master several turns of its loop: a reload, and the collection of the workers' status.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime};

use baton_acme::Settings;
use baton_cache::PurgeOrder;
use baton_config::{ClusterNode, Config};
use serde_json::Value;

use crate::certificates::Certificates;
use crate::listeners::Listening;
use crate::logs::Logs;
use crate::management::Requester;

/// A reload under way.
#[derive(Debug)]
pub(crate) struct Reload {
    pub(crate) generation: u64,
    pub(crate) subject: Subject,
    /// The master's changes once all workers are prepared; `None` after the message to commit.
    pub(crate) change: Option<Change>,
    pub(crate) needs_restart: Vec<String>,
    /// The workers that have not answered yet.
    pub(crate) awaited: BTreeSet<usize>,
    pub(crate) deadline: Instant,
    pub(crate) requesters: Vec<Requester>,
}

/// What is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The configuration and all that it names.
    Configuration,
    /// The certificates of the configuration that is used.
    Certificates,
    /// The nodes of its cluster.
    Nodes,
}

impl Subject {
    /// The word in messages.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Certificates => "certificates",
            Self::Nodes => "nodes of the cluster",
        }
    }
}

/// The master's changes.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) config: Config,
    pub(crate) fresh: Vec<Listening>,
    pub(crate) logs: Logs,
    pub(crate) certificates: Certificates,
    pub(crate) acme: Option<Settings>,
    /// What the process of documents is told.
    pub(crate) documents: Option<baton_dcws::Settings>,
    pub(crate) members: Option<baton_membership::Settings>,
    /// The nodes that the configuration lists; its own are these and those that others know.
    pub(crate) listed_nodes: Vec<ClusterNode>,
}

/// How a reload ended, for the status.
#[derive(Clone, Debug)]
pub(crate) struct LastReload {
    /// When it ended.
    pub(crate) at: SystemTime,
    /// Why it was refused, if it was.
    pub(crate) error: Option<String>,
    /// Changed settings that need a restart.
    pub(crate) needs_restart: Vec<String>,
}

impl Reload {
    /// Time for opening trees on a slow disk; a worker that needs longer would keep its clients waiting, too.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

    /// When [`Master::handle_reload_timeout`] has something to do.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }
}

/// A purge that not all workers have confirmed.
#[derive(Debug)]
pub(crate) struct PendingPurge {
    pub(crate) ticket: u64,
    pub(crate) orders: Vec<PurgeOrder>,
    pub(crate) awaited: BTreeSet<usize>,
    /// Workers that have confirmed.
    pub(crate) confirmed: u64,
    /// Responses that they have dropped.
    pub(crate) responses: u64,
    pub(crate) deadline: Instant,
    pub(crate) requester: Requester,
}

impl PendingPurge {
    /// Workers confirm within milliseconds, unless they make a plan, or stand still.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
}

/// A request to all workers for their status, on behalf of one or several requesters.
#[derive(Debug)]
pub(crate) struct StatusCollection {
    pub(crate) ticket: u64,
    pub(crate) awaited: BTreeSet<usize>,
    pub(crate) answers: BTreeMap<usize, Value>,
    pub(crate) deadline: Instant,
    pub(crate) requesters: Vec<Requester>,
}

impl StatusCollection {
    /// After this time the status omits the report of a worker that is too busy.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

    /// When [`Master::finish_status`] has something to do.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }
}
