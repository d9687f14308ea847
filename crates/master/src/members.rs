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

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use baton_cluster::local::Drain;
use baton_config::{Cluster, ClusterNode};
use baton_confine::Limits;
use baton_membership::{FromMembers, Member, MembersSettings, Order, Register, Report, ToMembers};
use baton_report::{OperatorError, log, utc};
use baton_sys::process::Ended;
use serde_json::{Value, json};

use super::child::{Child, Kind};
use super::known_drain::{KnownDrain, LeftOf};
use super::management::Requester;
use super::memory_file;
use super::privileges::WorkerUser;

/// The process, and what it has told.
#[derive(Debug)]
pub(super) struct Members {
    /// `None`: the configuration lists all nodes.
    settings: Option<MembersSettings>,
    /// Nodes that the configuration lists, as the file has them.
    listed: Vec<ClusterNode>,
    pub(super) child: Child,
    report: Report,
    /// When the nodes of the report are to be looked at.
    report_due: Option<Instant>,
    /// Nodes that do not count, as the log was told.
    refused: Vec<String>,
    tickets: u64,
    orders: BTreeMap<u64, (Requester, Order)>,
    /// What the process was told is left.
    told_left: Option<u64>,
    /// When requests that are left are counted again.
    left_due: Option<Instant>,
}

/// Whether the process is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The process is to run.
    Yes,
    /// Another server has taken over, or there is nothing to serve: it ends as it is.
    No,
    /// The server has ended: the process ends, and so does the registration of this host.
    Ended,
}

impl Members {
    /// Begins with the nodes that a configuration lists, and with the last view, if a server before this one has left any.
    pub(super) fn new(
        listed: Vec<ClusterNode>,
        settings: Option<MembersSettings>,
        limits: Limits,
        now: Instant,
    ) -> Self {
        let report = settings.as_ref().map(|settings| Report {
            members: baton_membership::last_view(settings),
            is_restored: true,
            ..Report::default()
        });
        Self {
            settings,
            listed,
            child: Child::new(&KIND, limits, now),
            report: report.unwrap_or_default(),
            report_due: None,
            refused: Vec::new(),
            tickets: 0,
            orders: BTreeMap::new(),
            told_left: None,
            left_due: None,
        }
    }

    /// From now on the configuration lists these nodes, and these settings name what to follow.
    pub(super) fn configure(
        &mut self,
        listed: Vec<ClusterNode>,
        settings: Option<MembersSettings>,
        now: Instant,
    ) {
        self.listed = listed;
        if self.settings == settings {
            return;
        }
        if settings.is_none() {
            self.report = Report::default();
        }
        self.settings = settings;
        // Another one begins with the settings. Meanwhile the view counts, and the registration of this host, too.
        self.child.stop(now);
    }

    /// Starts the process, or ends it, as is due.
    pub(super) fn advance(&mut self, wanted: Wanted, user: &WorkerUser, now: Instant) {
        match &self.settings {
            _ if self.child.is_stopping() => self.child.stop(now),
            Some(settings) if wanted == Wanted::Yes => {
                if !self.child.may_start(now) {
                    return;
                }
                let folder = settings.state_file.parent().unwrap_or(&settings.state_file);
                if let Err(trouble) = create_folder(folder, user) {
                    // The view works without it, but for a start while etcd is away.
                    log::warning(trouble);
                }
                self.child.start(&ToMembers::Configure, settings, folder, user, now);
            }
            _ if wanted == Wanted::Ended => self.child.stop_by(&ToMembers::End, now),
            _ => self.child.stop(now),
        }
    }

    /// When [`advance`](Self::advance) has something to do.
    pub(super) fn deadline(&self, wanted: Wanted) -> Option<Instant> {
        self.child.deadline(self.settings.is_some() && wanted == Wanted::Yes)
    }

    /// This host's node is about to end: front-ends are to choose others.
    pub(super) fn leave(&self) {
        // If the message cannot be sent, the process has ended.
        let _ = self.child.tell(&ToMembers::Leave);
    }

    /// The process has sent messages. Returns the orders that are done, or not.
    pub(super) fn handle_messages(&mut self, now: Instant) -> Vec<(Requester, Order, Option<String>)> {
        let mut done = Vec::new();
        for (message, descriptors) in self.child.receive() {
            match message {
                FromMembers::Report => {
                    let report = memory_file::read(descriptors.into_iter().next())
                        .and_then(|bytes| Ok(serde_json::from_slice::<Report>(&bytes)?));
                    match report {
                        Ok(report) => self.take(report, now),
                        Err(error) => log::error(format_args!("a view that cannot be read: {error}")),
                    }
                }
                FromMembers::Ordered { ticket, error } => {
                    let order = self.orders.remove(&ticket);
                    done.extend(order.map(|(requester, order)| (requester, order, error)));
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
        self.report_due = Some(now);
    }

    /// Has an operator's order written to etcd.
    ///
    /// # Errors
    /// There is no process that could.
    pub(super) fn order(&mut self, requester: Requester, order: Order) -> Result<(), String> {
        if self.child.pid().is_none() {
            return Err("the process that asks etcd does not run".to_owned());
        }
        self.tickets += 1;
        let message = ToMembers::Order { ticket: self.tickets, order: order.clone() };
        self.child.tell(&message).map_err(|error| error.to_string())?;
        self.orders.insert(self.tickets, (requester, order));
        Ok(())
    }

    /// A child has ended. Returns whether it was the process, and whose orders are lost.
    pub(super) fn handle_end(&mut self, pid: i32, ended: Ended, now: Instant) -> Option<Vec<Requester>> {
        if !self.child.handle_end(pid, ended, now) {
            return None;
        }
        self.told_left = None;
        Some(std::mem::take(&mut self.orders).into_values().map(|(requester, _)| requester).collect())
    }

    /// When a report is to be looked at; in the future if it was of no use, and is to be looked at again.
    pub(super) fn report_due(&self) -> Option<Instant> {
        self.report_due
    }

    /// Whether there is a report to look at.
    pub(super) fn take_report_due(&mut self) -> bool {
        self.report_due.take().is_some()
    }

    /// A reload of the nodes has failed: they are looked at again.
    pub(super) fn retry(&mut self, now: Instant) {
        self.report_due.get_or_insert(now + RETRY);
    }

    /// The nodes that it knows.
    pub(super) fn members(&self) -> &[Member] {
        &self.report.members
    }

    /// The nodes that the configuration lists, as the file has them.
    pub(super) fn listed(&self) -> &[ClusterNode] {
        &self.listed
    }

    /// A node that is known from elsewhere than the configuration.
    pub(super) fn member(&self, name: &str) -> Option<&Member> {
        // A node that is listed, too, is known from there.
        let is_listed = self.listed.iter().any(|node| !node.each_address && node.name() == name);
        self.report.members.iter().find(|member| member.name == name && !is_listed)
    }

    /// Names of nodes that get no requests: they are drained, or about to end.
    pub(super) fn out(&self) -> BTreeSet<String> {
        let is_out = |member: &&Member| member.drained || member.leaving;
        self.report.members.iter().filter(is_out).map(|member| member.name.clone()).collect()
    }

    /// Whether this host's own node is drained.
    pub(super) fn is_own_drained(&self) -> bool {
        self.own_drained().is_some()
    }

    /// Whether requests are what this host's node, drained in etcd, has left: it has no handoff agent.
    pub(super) fn tells_requests(&self) -> bool {
        self.own_drained().is_some_and(|own| own.tells_left && own.mover.is_none())
    }

    /// Lets etcd know what this host has left, while its node is drained there.
    pub(super) fn tell_left(&mut self, left: Option<u64>, now: Instant) {
        let left = left.filter(|_| self.is_own_drained());
        self.left_due = self.tells_requests().then_some(now + LEFT_EACH);
        if self.told_left != left && self.child.tell(&ToMembers::Left { left }).is_ok() {
            self.told_left = left;
        }
    }

    /// When requests that are left are to be counted and told again.
    pub(super) fn left_due(&self) -> Option<Instant> {
        self.left_due
    }

    fn own_drained(&self) -> Option<&Register> {
        let own = self.settings.as_ref()?.etcd.as_ref()?.register.as_ref()?;
        let is_drained = |member: &Member| member.name == own.name && member.drained;
        self.report.members.iter().any(is_drained).then_some(own)
    }

    /// The nodes that are drained in etcd and can say what they have left.
    pub(super) fn drains(&self) -> impl Iterator<Item = KnownDrain> {
        let members = self.report.members.iter().filter(|member| member.drained && member.tells_left);
        members.map(|member| KnownDrain {
            word: Drain {
                node: member.name.clone(),
                // etcd keeps the order and not the time.
                said_ms: 0,
                is_drained: true,
                reports: u64::from(member.left.is_some()),
                left: member.left.unwrap_or(0),
            },
            counts: if member.mover.is_some() { LeftOf::Connections } else { LeftOf::Requests },
        })
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
            "pid": self.child.pid(),
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
    pub(super) fn etcd(&self) -> Option<&baton_membership::EtcdReport> {
        self.report.etcd.as_ref()
    }
}

/// Creates the folder of the last view, for the user of the process.
fn create_folder(folder: &Path, user: &WorkerUser) -> Result<(), OperatorError> {
    user.create_folder(folder).map_err(|error| {
        OperatorError::of(format_args!("create {} for the view of the cluster", folder.display()), &error)
            .about_file(folder, &error)
            .remedy("name another folder: `state_folder` in [cluster]")
    })
}

const KIND: Kind = Kind {
    command: "members",
    who: "the process that knows the nodes of the cluster",
    // etcd may not answer it.
    grace: Duration::from_secs(5),
};

/// The time between two tries to take over nodes.
const RETRY: Duration = Duration::from_secs(1);

/// The time between two counts of requests that are left.
const LEFT_EACH: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use baton_config::Config;

    use super::*;

    fn members(listed: &[&str], known: &[(&str, bool, bool)]) -> Members {
        let listed: String = listed.iter().map(|to| format!("[[cluster.node]]\nto = '{to}'\n")).collect();
        let text = format!("[[site]]\nroot = '/'\n{listed}");
        let config = Config::from_toml(&text).unwrap_or_else(|error| panic!("{error}"));
        let limits = crate::privileges::limits(&config);
        let mut members = Members::new(config.cluster.nodes, None, limits, Instant::now());
        let known = known.iter().map(|&(name, drained, leaving)| Member {
            name: name.to_owned(),
            to: format!("http://{name}"),
            weight: 1,
            drained,
            leaving,
            held: false,
            mover: None,
            public: None,
            epoch: 1,
            tells_left: true,
            left: None,
            source: baton_membership::Source::Etcd,
            host: None,
        });
        members.report.members = known.collect();
        members
    }

    #[test]
    fn nodes_that_are_drained_or_leave_are_out() {
        let members = members(&[], &[("a", false, false), ("b", true, false), ("c", false, true)]);
        assert_eq!(members.out(), BTreeSet::from(["b".into(), "c".into()]));
        assert!(members.member("a").is_some() && members.member("d").is_none());
    }

    #[test]
    fn a_view_is_looked_at_once_and_again_after_a_failure() {
        let mut members = members(&[], &[]);
        let now = Instant::now();
        members.take(Report::default(), now);
        assert_eq!(members.report_due(), Some(now));
        assert_eq!([members.take_report_due(), members.take_report_due()], [true, false]);
        members.retry(now);
        assert_eq!(members.report_due(), Some(now + RETRY));
    }

    #[test]
    fn a_process_that_has_just_begun_does_not_take_nodes_away() {
        let mut members = members(&[], &[("a", false, false)]);
        members.take(Report { is_restored: true, ..Report::default() }, Instant::now());
        assert_eq!(members.members().len(), 1);
        members.take(Report::default(), Instant::now());
        assert_eq!(members.members().len(), 0);
    }
}
