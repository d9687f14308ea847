//! Reloads, as a machine: which one is under way, who waits for it, and how the last one ended.
//!
//! What a reload changes is the [master](crate::master)'s business; this says when it may go on.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

use baton_config::{ClusterNode, Config};
use baton_report::utc;
use serde_json::{Value, json};

use super::certificates::Certificates;
use super::listeners::Listening;
use super::logs::Logs;
use super::management::Requester;

/// The reload under way, if there is one, and what is known of those before.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    current: Option<Reload>,
    generations: u64,
    /// Who has asked for another one meanwhile.
    waiting: Vec<Requester>,
    last: Option<LastReload>,
    done: u64,
    refused: u64,
}

/// A reload under way.
#[derive(Debug)]
pub(crate) struct Reload {
    pub(crate) subject: Subject,
    /// The master's changes once all workers are prepared; `None` after the message to commit.
    pub(crate) change: Option<Change>,
    /// The workers that have not answered yet.
    pub(crate) awaited: BTreeSet<usize>,
    pub(crate) needs_restart: Vec<String>,
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
    pub(crate) acme: Option<baton_acme::AcmeSettings>,
    /// What the process of documents is told.
    pub(crate) documents: Option<baton_dcws::DocumentsSettings>,
    pub(crate) members: Option<baton_membership::MembersSettings>,
    /// The nodes that the configuration lists; its own are these and those that others know.
    pub(crate) listed_nodes: Vec<ClusterNode>,
}

/// How a reload ended, for the status.
#[derive(Clone, Debug)]
struct LastReload {
    at: SystemTime,
    /// Why it was refused, if it was.
    error: Option<String>,
    /// Changed settings that need a restart.
    needs_restart: Vec<String>,
}

impl Reload {
    /// Time for opening trees on a slow disk; a worker that needs longer would keep its clients waiting, too.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

    fn is_complete(&self) -> bool {
        self.awaited.is_empty()
    }
}

impl Reloads {
    /// Whether one is under way.
    pub(crate) fn is_under_way(&self) -> bool {
        self.current.is_some()
    }

    /// The number of the last reload that has begun.
    pub(crate) fn generation(&self) -> u64 {
        self.generations
    }

    /// How many took effect, and how many were refused.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.done, self.refused)
    }

    /// Another one begins: its generation.
    pub(crate) fn next_generation(&mut self) -> u64 {
        self.generations += 1;
        self.generations
    }

    /// A reload begins to wait for its workers.
    pub(crate) fn begin(&mut self, reload: Reload) {
        self.current = Some(reload);
    }

    /// One is asked for during another one: the file may have changed meanwhile.
    pub(crate) fn ask_again(&mut self, requester: Requester) {
        self.waiting.push(requester);
    }

    /// Who has asked for another one.
    pub(crate) fn take_waiting(&mut self) -> Vec<Requester> {
        std::mem::take(&mut self.waiting)
    }

    /// When the reload has waited for too long.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.current.as_ref().map(|reload| reload.deadline)
    }

    /// Why the reload cannot go on if it has waited for too long.
    pub(crate) fn lateness(&self, now: Instant) -> Option<String> {
        let reload = self.current.as_ref().filter(|reload| reload.deadline <= now)?;
        let late: Vec<String> = reload.awaited.iter().map(ToString::to_string).collect();
        Some(format!("no answer within {} s from worker {}", Reload::PATIENCE.as_secs(), late.join(", ")))
    }

    /// Whether a message is about the reload under way.
    pub(crate) fn is_current(&self, generation: u64) -> bool {
        self.is_under_way() && self.generations == generation
    }

    /// A worker has made its plan, or serves by it.
    pub(crate) fn handle_step_done(&mut self, index: usize, generation: u64) {
        if self.is_current(generation)
            && let Some(reload) = &mut self.current
        {
            reload.awaited.remove(&index);
        }
    }

    /// A worker has ended. Returns why the reload cannot go on, if the new plan may be the cause. Once workers have been told to
    /// commit, the next one begins with the new configuration.
    pub(crate) fn handle_death(&mut self, index: usize) -> Option<String> {
        let reload = self.current.as_mut()?;
        (reload.awaited.remove(&index) && reload.change.is_some())
            .then(|| format!("worker {index} died before it was prepared"))
    }

    /// The changes, once all workers are prepared.
    pub(crate) fn take_prepared(&mut self) -> Option<Change> {
        self.current.as_mut().filter(|reload| reload.is_complete())?.change.take()
    }

    /// These workers have been told to commit.
    pub(crate) fn await_commit(&mut self, workers: BTreeSet<usize>) {
        if let Some(reload) = &mut self.current {
            reload.awaited = workers;
        }
    }

    /// The reload, once all workers have committed.
    pub(crate) fn take_committed(&mut self) -> Option<Reload> {
        self.current.take_if(|reload| reload.is_complete() && reload.change.is_none())
    }

    /// The reload, whatever it waits for.
    pub(crate) fn take(&mut self) -> Option<Reload> {
        self.current.take()
    }

    /// Notes how one has ended.
    pub(crate) fn note(&mut self, error: Option<String>, needs_restart: Vec<String>) {
        match error {
            None => self.done += 1,
            Some(_) => self.refused += 1,
        }
        self.last = Some(LastReload { at: SystemTime::now(), error, needs_restart });
    }

    /// The last one, for the status.
    pub(crate) fn report(&self) -> Option<Value> {
        self.last.as_ref().map(|last| {
            json!({
                "at": utc(last.at),
                "error": last.error,
                "needs_restart": last.needs_restart,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reload that waits for two workers.
    fn begun(now: Instant) -> Reloads {
        let config = Config::from_toml("[[site]]\nroot = '/'\n").unwrap();
        let change = Change {
            fresh: Vec::new(),
            logs: Logs::open(&config).unwrap(),
            certificates: Certificates::read(&config).unwrap(),
            acme: None,
            documents: None,
            members: None,
            listed_nodes: Vec::new(),
            config,
        };
        let mut reloads = Reloads::default();
        assert_eq!(reloads.next_generation(), 1);
        reloads.begin(Reload {
            subject: Subject::Configuration,
            change: Some(change),
            awaited: BTreeSet::from([0, 1]),
            needs_restart: Vec::new(),
            deadline: now + Reload::PATIENCE,
            requesters: vec![Requester::Signal],
        });
        reloads
    }

    #[test]
    fn no_worker_commits_before_all_are_prepared() {
        let mut reloads = begun(Instant::now());
        reloads.handle_step_done(0, 1);
        reloads.handle_step_done(1, 7);
        assert!(reloads.take_prepared().is_none(), "an answer to another reload");
        reloads.handle_step_done(1, 1);
        assert!(reloads.take_committed().is_none());
        assert!(reloads.take_prepared().is_some());
        reloads.await_commit(BTreeSet::from([1]));
        assert!(reloads.take_prepared().is_none() && reloads.take_committed().is_none());
        assert_eq!(reloads.handle_death(1), None, "the next worker begins with the new configuration");
        assert!(reloads.take_committed().is_some() && !reloads.is_under_way());
    }

    #[test]
    fn a_worker_that_dies_or_is_silent_ends_a_reload() {
        let now = Instant::now();
        let mut reloads = begun(now);
        assert_eq!(reloads.lateness(now), None);
        let why = reloads.lateness(now + Reload::PATIENCE).unwrap();
        assert_eq!(why, "no answer within 10 s from worker 0, 1");
        assert_eq!(reloads.handle_death(1).unwrap(), "worker 1 died before it was prepared");
        assert_eq!(reloads.handle_death(1), None, "it was not awaited");
        assert!(reloads.take().is_some());
        reloads.note(Some("no".into()), Vec::new());
        assert_eq!((reloads.counts(), &reloads.report().unwrap()["error"]), ((0, 1), &json!("no")));
    }
}
