//! Which peer gets a request: the choice of a policy among the peers that are in. No clock, no socket.
//!
//! A balance outlives the peers that it began with: another [`Crew`] follows, and who is in both keeps its number, its load
//! and its targets.

use baton_dispatch::{
    Cluster, FetchChoice, Fit, Fits, NodeId, Policy, PolicyName, PolicySettings, STANDARD_WEIGHT, Target,
    WayChoice, Why,
};

use super::cause::Cause;
use super::checks::{CheckSettings, CheckTimes};
use super::crew::{Crew, Member};
use super::failure_window::Asker;
use super::standing::{Ejection, Standing};
use super::view::{checked, standing};
use crate::origins::{OriginRecord, word};
use crate::retry_budget::RetryBudget;

/// Peers by their numbers, as bits.
type PeerSet = u64;

/// Most peers of an upstream: a set of them is a word.
pub const PEERS_MAX: usize = PeerSet::BITS as usize;

/// How requests are distributed.
#[derive(Clone, Debug)]
pub struct BalanceSettings {
    /// By which policy.
    pub policy: PolicyName,
    /// When a peer is left out; `None`: never.
    pub ejection: Option<Ejection>,
    /// How peers are checked, if they are.
    pub check: Option<CheckSettings>,
    /// Milliseconds in which a peer that returns comes to its full weight; 0: it has that at once.
    pub slow_start_ms: u64,
    /// If they are the nodes of a cluster.
    pub cluster: Option<ClusterSettings>,
}

/// The thresholds of a cluster's policies, in requests under way at a node of usual weight, and how they come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Below this, a node has room.
    pub t_low: u32,
    /// Above this, requests would have to wait at the node.
    pub t_high: u32,
    /// How both go on from there, if they are not set; only if `is_bounded`.
    pub fits: Option<Fits>,
    /// Whether requests wait here while the cluster has all that it can take.
    pub is_bounded: bool,
}

/// What a policy says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decided {
    /// It goes to this peer, and counts for its load from now on.
    To(usize, Why),
    /// The cluster has all that it can take.
    Wait,
    /// All peers are drained.
    Nowhere,
}

/// What the head of a response means for its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// It ejects the peer, for so many milliseconds.
    Ejected { out_ms: u64 },
    /// Its status is a failure.
    Failed,
    /// It is an answer, and counts in the window of failures that began then, if there is one.
    Answered { window_ms: Option<u64> },
}

/// The state that all loops of a process share.
pub(super) struct Balance {
    cluster: Cluster,
    policy: Box<dyn Policy + Send>,
    /// What another crew must have in common with the first one.
    nature: Nature,
    /// Each peer that ever was, by the number that the policy knows it by.
    slots: Vec<Slot>,
    /// The peers of the crew that chose last, in its order.
    present: Vec<NodeId>,
    /// The number of that crew, and of the last one that was enrolled.
    adopted: u64,
    enrolled: u64,
    ejects: bool,
    is_checked: bool,
    /// Room for the loads that the cluster gets.
    loads: Vec<u32>,
    /// What the policy was told last.
    epoch: u64,
    /// The thresholds that the status tells, and the crew whose nodes' records have them.
    told: Option<(Fit, u64)>,
    pub(super) retry_budget: RetryBudget,
    /// How requests get to the nodes of a cluster.
    pub(super) ways: WayChoice,
    /// Whether one of the nodes, which this host is, reads a file or fetches it.
    pub(super) fetches: FetchChoice,
}

/// What loads and targets depend on.
type Nature = (PolicyName, u64, Option<ClusterSettings>);

/// A peer, as the policy knows it.
#[derive(Debug)]
struct Slot {
    name: Box<str>,
    record: OriginRecord,
    is_backup: bool,
    /// The part of its load in the cluster that was handed over.
    handed: u32,
}

impl Balance {
    /// The peers of a first crew, which serve at once.
    pub(super) fn new(members: Vec<Member>, settings: &BalanceSettings) -> (Self, Crew) {
        let thresholds = settings.cluster.map_or_else(PolicySettings::default, |cluster| PolicySettings {
            t_low: cluster.t_low,
            t_high: cluster.t_high,
            fits: cluster.fits,
            ..PolicySettings::default()
        });
        let policy = match settings.cluster {
            Some(ClusterSettings { is_bounded: true, .. }) => settings.policy.build_bounded(&thresholds),
            _ => settings.policy.build(&thresholds),
        };
        let mut balance = Self {
            cluster: Cluster::new(settings.slow_start_ms.saturating_mul(1_000)),
            policy,
            nature: settings.nature(),
            slots: Vec::new(),
            present: Vec::new(),
            adopted: 0,
            enrolled: 0,
            ejects: false,
            is_checked: false,
            loads: Vec::new(),
            epoch: 0,
            told: None,
            retry_budget: RetryBudget::default(),
            ways: WayChoice::default(),
            fetches: FetchChoice::default(),
        };
        let crew = balance.enroll(members, settings);
        balance.adopt(&crew);
        for (member, node) in crew.members() {
            if !member.is_backup {
                balance.cluster.activate(node);
            }
        }
        balance.tell_policy(0);
        (balance, crew)
    }

    /// Whether other peers, under these settings, can follow those that are there.
    pub(super) fn can_go_on(&self, settings: &BalanceSettings) -> bool {
        self.nature == settings.nature() && self.slots.len() + PEERS_MAX <= SLOTS_MAX
    }

    /// Gives each of these peers a number: its own if a peer of that name ever was. They get no requests before the crew
    /// [chooses](Self::choose).
    pub(super) fn enroll(&mut self, members: Vec<Member>, settings: &BalanceSettings) -> Crew {
        let mut nodes: Vec<NodeId> = Vec::with_capacity(members.len());
        for member in &members {
            let known = (0..self.slots.len() as u32)
                .map(NodeId)
                .find(|node| *self.slots[node.index()].name == *member.name && !nodes.contains(node));
            nodes.push(known.unwrap_or_else(|| self.join(member)));
        }
        self.enrolled += 1;
        Crew::new(self.enrolled, members, nodes, settings.ejection.clone(), settings.check.is_some())
    }

    fn join(&mut self, member: &Member) -> NodeId {
        let node = self.cluster.join_named(member.name.as_bytes(), STANDARD_WEIGHT, 0);
        self.cluster.fail(node);
        self.slots.push(Slot {
            name: member.name.as_str().into(),
            record: member.record.clone(),
            is_backup: member.is_backup,
            handed: 0,
        });
        node
    }

    /// Has the peers of a newer crew chosen from now on, and no others.
    fn adopt(&mut self, crew: &Crew) {
        if crew.serial <= self.adopted {
            return;
        }
        self.adopted = crew.serial;
        (self.ejects, self.is_checked) = (crew.ejection.is_some(), crew.is_checked);
        let gone = std::mem::take(&mut self.present);
        gone.into_iter().filter(|node| !crew.has(*node)).for_each(|node| self.cluster.fail(node));
        for (member, node) in crew.members() {
            self.present.push(node);
            self.cluster.set_weight(node, member.weight.saturating_mul(STANDARD_WEIGHT));
            let slot = &mut self.slots[node.index()];
            (slot.record, slot.is_backup) = (member.record.clone(), member.is_backup);
        }
    }

    /// The peer for a request, and the reason.
    pub(super) fn choose(&mut self, crew: &Crew, hash: u64, now_ms: u64) -> Decided {
        self.adopt(crew);
        if !self.settle(now_ms) {
            return Decided::Nowhere;
        }
        // Nodes of a cluster keep what they answer in memory, so that it matters which one is asked.
        let is_cluster = self.nature.2.is_some();
        if is_cluster {
            self.take_handed_loads();
        }
        let target = Target { dynamic: !is_cluster, ..Target::new(hash) };
        let decision = self.policy.choose(target, &self.cluster, now_ms.saturating_mul(1_000));
        self.tell_fit();
        if decision.why == Why::AdmissionLimit {
            return Decided::Wait;
        }
        // Some peer always serves.
        let chosen = decision.node.or_else(|| self.cluster.serving().first().copied());
        match chosen.and_then(|node| crew.peer(node)) {
            Some(peer) => Decided::To(self.begin(crew, peer), decision.why),
            // A newer crew chooses by now, and it is one of its peers.
            None => match self.choose_other(crew, 0, now_ms) {
                Some(peer) => Decided::To(peer, decision.why),
                None => Decided::Nowhere,
            },
        }
    }

    /// The peers that serve, and whether one of them reads a file or fetches it. `None`: all are drained.
    pub(super) fn homes(&mut self, crew: &Crew, now_ms: u64) -> Option<(&mut Cluster, &mut FetchChoice)> {
        self.adopt(crew);
        self.settle(now_ms).then_some((&mut self.cluster, &mut self.fetches))
    }

    /// Lets the status know thresholds that are new.
    fn tell_fit(&mut self) {
        let fit = self.policy.fit().map(|fit| (fit, self.adopted));
        if let Some((fit, _)) = fit.filter(|fit| Some(*fit) != self.told) {
            self.present.iter().for_each(|node| self.slots[node.index()].record.set_fit(&fit));
            self.told = Some((fit, self.adopted));
        }
    }

    /// Takes note of requests that were handed over to nodes, and of those that have ended there.
    fn take_handed_loads(&mut self) {
        let mut has_changed = false;
        self.loads.clear();
        for (at, slot) in self.slots.iter_mut().enumerate() {
            let handed = slot.record.under_way_at_node();
            let before = std::mem::replace(&mut slot.handed, handed);
            has_changed |= handed != before;
            // What the cluster has besides are requests of this process.
            let own = self.cluster.load(NodeId(at as u32)).saturating_sub(before);
            self.loads.push(own.saturating_add(handed));
        }
        if has_changed {
            self.cluster.handle_loads(&self.loads);
        }
    }

    /// Another peer than those that were tried and those that are drained: the one with the least load for its weight, those
    /// that are in first.
    pub(super) fn choose_other(&mut self, crew: &Crew, tried: PeerSet, now_ms: u64) -> Option<usize> {
        self.settle(now_ms);
        let rank = |peer: &usize| {
            let node = crew.node(*peer);
            let pressure = f64::from(self.cluster.load(node) + 1) / f64::from(self.cluster.weight(node));
            (self.is_out(&crew.member(*peer).record, now_ms), crew.member(*peer).is_backup, pressure)
        };
        let untried =
            (0..crew.len()).filter(|peer| tried & bit(*peer) == 0 && !crew.member(*peer).record.is_drained());
        let least =
            untried.min_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(std::cmp::Ordering::Equal))?;
        Some(self.begin(crew, least))
    }

    /// A request has left its peer.
    pub(super) fn end(&mut self, crew: &Crew, peer: usize) {
        self.cluster.end(crew.node(peer));
    }

    /// A peer has failed. `answered_in`: the window that its answer to the same request counts in. Returns for how long that
    /// ejects it, in milliseconds, if it does.
    pub(super) fn handle_failure(
        &mut self,
        crew: &Crew,
        peer: usize,
        cause: Cause,
        asker: Asker,
        answered_in: Option<u64>,
        now_ms: u64,
    ) -> Option<u64> {
        let ejection = crew.ejection.as_ref()?;
        let record = &crew.member(peer).record;
        let (evidence, may_leave) = (cause.evidence(asker), self.may_lose(crew, peer, now_ms));
        let out_ms = judge(record, |standing| {
            standing.handle_failure(ejection, evidence, answered_in, may_leave, now_ms)
        })?;
        record.store(word::EJECTION_CAUSE, cause.code());
        record.note_ejection();
        // Now: a peer that returns before the next request begins slowly nevertheless.
        self.settle(now_ms);
        Some(out_ms)
    }

    /// The head of a response has come, for a request that the peer got at `begun_ms`.
    pub(super) fn handle_status(
        &mut self,
        crew: &Crew,
        peer: usize,
        status: u16,
        asker: Asker,
        begun_ms: u64,
        now_ms: u64,
    ) -> Judged {
        let record = &crew.member(peer).record;
        if crew.ejection.as_ref().is_some_and(|ejection| ejection.statuses.contains(&status)) {
            record.note_bad_status();
            let out_ms = self.handle_failure(crew, peer, Cause::Status(status), asker, None, now_ms);
            return out_ms.map_or(Judged::Failed, |out_ms| Judged::Ejected { out_ms });
        }
        let window_ms = crew.ejection.as_ref().map_or(0, |ejection| ejection.window_ms);
        let window_ms = judge(record, |standing| standing.handle_answer(window_ms, begun_ms, now_ms));
        Judged::Answered { window_ms }
    }

    /// Whether at least half of the peers are in without this one. Those that an operator has drained are no part of the group:
    /// their share is the others' already. Two processes that decide this at the same moment may eject one peer more.
    fn may_lose(&self, crew: &Crew, peer: usize, now_ms: u64) -> bool {
        let (mut group, mut others_in) = (0, 0);
        for (at, (member, _)) in crew.members().enumerate() {
            if !member.record.is_drained() {
                group += 1;
                others_in += usize::from(at != peer && !self.is_out(&member.record, now_ms));
            }
        }
        others_in * 2 >= group
    }

    /// The result of a check. Returns whether it turns the peer's state.
    pub(super) fn handle_check(
        &mut self,
        crew: &Crew,
        peer: usize,
        check: &CheckSettings,
        failed: Option<Cause>,
        now_ms: u64,
    ) -> bool {
        let record = &crew.member(peer).record;
        CheckTimes(record).note_result(check, now_ms);
        if let Some(cause) = failed {
            record.store(word::CHECK_CAUSE, cause.code());
        }
        let before = checked(record);
        let mut after = before;
        let turns = after.handle_result(check, failed.is_none());
        record.store_changed(word::CHECKED, before.to_words(), after.to_words());
        if turns {
            self.settle(now_ms);
        }
        turns
    }

    /// Requests that are under way at a peer.
    #[cfg(test)]
    pub(super) fn load(&self, node: NodeId) -> u32 {
        self.cluster.load(node)
    }

    fn is_out(&self, record: &OriginRecord, now_ms: u64) -> bool {
        // Verdicts of a configuration that judged otherwise do not count.
        (self.ejects && standing(record).is_out(now_ms)) || (self.is_checked && checked(record).is_down())
    }

    fn begin(&mut self, crew: &Crew, peer: usize) -> usize {
        self.cluster.begin(crew.node(peer));
        peer
    }

    /// Lets those serve that are in; else the backups that are in; else all, since any answer is better than none. Those that
    /// are drained never serve. Returns whether there is any other.
    fn settle(&mut self, now_ms: u64) -> bool {
        let of = |set: &dyn Fn(&Slot) -> bool| -> PeerSet {
            let slots = self.present.iter().map(|node| &self.slots[node.index()]);
            slots.enumerate().filter(|(_, slot)| set(slot)).map(|(at, _)| bit(at)).sum()
        };
        let backups = of(&|slot| slot.is_backup);
        let all = of(&|slot| !slot.record.is_drained());
        let well = all & of(&|slot| !self.is_out(&slot.record, now_ms));
        let choices = [well & !backups, well & backups, all & !backups, all];
        let serving = choices.into_iter().find(|set| *set != 0).unwrap_or(all);
        let now = now_ms.saturating_mul(1_000);
        for (at, node) in self.present.iter().enumerate() {
            match (serving & bit(at) != 0, self.cluster.is_serving(*node)) {
                (true, false) => {
                    self.cluster.recover(*node, now);
                    self.slots[node.index()].record.store(word::RETURNED, now_ms);
                }
                (false, true) => self.cluster.fail(*node),
                _ => {}
            }
        }
        self.cluster.handle_timeout(now);
        if self.epoch != self.cluster.epoch() {
            self.tell_policy(now);
        }
        all != 0
    }

    fn tell_policy(&mut self, now: baton_dispatch::Time) {
        self.epoch = self.cluster.epoch();
        self.policy.handle_membership(&self.cluster, now);
    }
}

impl BalanceSettings {
    fn nature(&self) -> Nature {
        (self.policy, self.slow_start_ms, self.cluster)
    }
}

fn judge<R>(record: &OriginRecord, judge: impl FnOnce(&mut Standing) -> R) -> R {
    let before = standing(record);
    let mut after = before;
    let result = judge(&mut after);
    record.store_changed(word::STANDING, before.to_words(), after.to_words());
    result
}

impl std::fmt::Debug for Balance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cluster, slots, .. } = self;
        f.debug_struct("Balance").field("cluster", cluster).field("slots", slots).finish_non_exhaustive()
    }
}

const fn bit(peer: usize) -> PeerSet {
    1 << peer
}

/// Most peers that ever were, in one balance: those that are gone keep their numbers, and each decision passes over them.
/// Beyond it, loads and targets begin anew with the next change of peers.
const SLOTS_MAX: usize = 8 * PEERS_MAX;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustix::io::Errno;

    use baton_shares::ClientKey;

    use super::*;
    use crate::FailureReason;

    fn settings(policy: PolicyName) -> BalanceSettings {
        let ejection =
            Ejection { failures: 1, window_ms: 1_000, out_ms: 1_000, out_ms_max: 8_000, statuses: vec![503] };
        BalanceSettings { policy, ejection: Some(ejection), check: None, slow_start_ms: 0, cluster: None }
    }

    const FAILED: Cause = Cause::Failure(FailureReason::NoConnection(Errno::CONNREFUSED));

    fn asker(client: u8, path: &str) -> Asker {
        Asker::new(Some(ClientKey::of([192, 0, 2, client].into())), path.as_bytes())
    }

    /// A balance with its only crew.
    struct Alone {
        balance: Balance,
        crew: Crew,
    }

    impl Alone {
        fn of(members: Vec<Member>, settings: &BalanceSettings) -> Self {
            let (balance, crew) = Balance::new(members, settings);
            Self { balance, crew }
        }

        fn choose(&mut self, hash: u64, now_ms: u64) -> Decided {
            self.balance.choose(&self.crew, hash, now_ms)
        }

        fn choose_other(&mut self, tried: PeerSet, now_ms: u64) -> Option<usize> {
            self.balance.choose_other(&self.crew, tried, now_ms)
        }

        fn end(&mut self, peer: usize) {
            self.balance.end(&self.crew, peer);
        }

        fn handle_failure(&mut self, peer: usize, cause: Cause, now_ms: u64) -> Option<u64> {
            self.balance.handle_failure(&self.crew, peer, cause, asker(1, "/"), None, now_ms)
        }

        fn handle_status(&mut self, peer: usize, status: u16, asker: Asker, now_ms: u64) -> Judged {
            self.balance.handle_status(&self.crew, peer, status, asker, now_ms, now_ms)
        }

        fn handle_check(
            &mut self,
            peer: usize,
            check: &CheckSettings,
            failed: Option<Cause>,
            now_ms: u64,
        ) -> bool {
            self.balance.handle_check(&self.crew, peer, check, failed, now_ms)
        }

        fn record(&self, peer: usize) -> &OriginRecord {
            &self.crew.member(peer).record
        }

        fn is_out(&self, peer: usize, now_ms: u64) -> bool {
            self.balance.is_out(self.record(peer), now_ms)
        }
    }

    fn new(peers: &[(u32, bool)], settings: &BalanceSettings) -> Alone {
        let member = |(at, (weight, is_backup)): (usize, &(u32, bool))| Member {
            name: format!("http://{at}"),
            weight: *weight,
            is_backup: *is_backup,
            record: OriginRecord::default(),
        };
        Alone::of(peers.iter().enumerate().map(member).collect(), settings)
    }

    fn balance(peers: &[(u32, bool)]) -> Alone {
        new(peers, &settings(PolicyName::Wrr))
    }

    fn chosen(balance: &mut Alone, hash: u64, now_ms: u64) -> usize {
        match balance.choose(hash, now_ms) {
            Decided::To(peer, _) => peer,
            other => panic!("not all are drained: {other:?}"),
        }
    }

    /// How many of these requests, one after the other, each peer gets.
    fn shares(balance: &mut Alone, requests: u64, now_ms: u64) -> Vec<u64> {
        let mut shares = vec![0; balance.crew.len()];
        for request in 0..requests {
            let peer = chosen(balance, request, now_ms);
            balance.end(peer);
            shares[peer] += 1;
        }
        shares
    }

    #[test]
    fn turns_are_given_by_weight() {
        assert_eq!(shares(&mut balance(&[(1, false), (2, false), (5, false)]), 80, 1), [10, 20, 50]);
    }

    #[test]
    fn an_ejected_peer_gets_nothing_until_it_returns() {
        let mut balance = balance(&[(1, false), (1, false)]);
        balance.handle_failure(0, FAILED, 1);
        assert_eq!(shares(&mut balance, 10, 1_000), [0, 10]);
        assert_eq!(shares(&mut balance, 10, 1_001), [5, 5]);
    }

    #[test]
    fn all_are_asked_if_all_are_out() {
        let mut balance = balance(&[(1, false), (1, false), (1, true)]);
        (0..3).for_each(|peer| _ = balance.handle_failure(peer, FAILED, 1));
        assert_eq!(shares(&mut balance, 10, 2), [5, 5, 0]);
        balance.handle_status(1, 200, asker(1, "/"), 3);
        assert_eq!(shares(&mut balance, 10, 3), [0, 10, 0], "the one that has answered");
    }

    #[test]
    fn backups_are_asked_if_no_other_is_in() {
        let mut balance = balance(&[(1, false), (1, false), (1, true)]);
        assert_eq!(shares(&mut balance, 10, 1), [5, 5, 0]);
        balance.handle_failure(0, FAILED, 1);
        assert_eq!(shares(&mut balance, 10, 1), [0, 10, 0]);
        balance.handle_failure(1, FAILED, 1);
        assert_eq!(shares(&mut balance, 10, 1), [0, 0, 10]);
        assert_eq!(shares(&mut balance, 10, 1_001), [5, 5, 0]);
    }

    /// Goal: statuses that two clients meet on two paths eject half of the peers, and no more. Drained ones are no part of the
    /// group, and those that fail their checks are out of it.
    #[test]
    fn half_of_the_peers_stay_in() {
        let fail = |balance: &mut Alone, peer| {
            let judged =
                ["/a", "/b"].map(|path| balance.handle_status(peer, 503, asker(path.as_bytes()[1], path), 1));
            matches!(judged[1], Judged::Ejected { .. })
        };
        for (peers, ejected) in [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)] {
            let mut balance = balance(&vec![(1, false); peers]);
            assert_eq!((0..peers).filter(|peer| fail(&mut balance, *peer)).count(), ejected, "of {peers}");
        }
        let mut balance = balance(&[(1, false); 4]);
        (0..2).for_each(|peer| balance.record(peer).set_drained(true));
        assert!(fail(&mut balance, 2) && !fail(&mut balance, 3));
        let check = CheckSettings { interval_ms: 10, timeout_ms: 5, rise: 1, fall: 1, statuses: Vec::new() };
        let settings = BalanceSettings { check: Some(check.clone()), ..settings(PolicyName::Wrr) };
        let mut balance = new(&[(1, false); 4], &settings);
        (0..2).for_each(|peer| _ = balance.handle_check(peer, &check, Some(FAILED), 1));
        assert!(!fail(&mut balance, 2));
        assert!(balance.handle_failure(2, FAILED, 1).is_some(), "it cannot be reached");
    }

    #[test]
    fn a_peer_that_returns_begins_slowly() {
        let settings = BalanceSettings { slow_start_ms: 10_000, ..settings(PolicyName::Wrr) };
        let mut balance = new(&[(1, false), (1, false)], &settings);
        assert_eq!(shares(&mut balance, 100, 1), [50, 50], "not at the start");
        balance.handle_failure(0, FAILED, 1);
        let (mut last, mut shares_of_it) = (0, Vec::new());
        for now_ms in [1_001, 4_001, 8_001, 11_001] {
            let share = shares(&mut balance, 100, now_ms)[0];
            shares_of_it.push(share);
            assert!(share > last, "{shares_of_it:?}");
            last = share;
        }
        assert!(shares_of_it[0] < 20 && last == 50, "{shares_of_it:?}");
    }

    #[test]
    fn a_peer_that_fails_its_checks_gets_nothing() {
        let check = CheckSettings { interval_ms: 10, timeout_ms: 5, rise: 1, fall: 2, statuses: Vec::new() };
        let settings = BalanceSettings { check: Some(check.clone()), ..settings(PolicyName::Wrr) };
        let mut balance = new(&[(1, false), (1, false)], &settings);
        assert!(!balance.handle_check(0, &check, Some(FAILED), 1));
        assert_eq!(shares(&mut balance, 10, 1), [5, 5]);
        assert!(balance.handle_check(0, &check, Some(FAILED), 1));
        assert_eq!(shares(&mut balance, 10, 1), [0, 10]);
        assert!(balance.handle_check(0, &check, None, 1));
        assert_eq!(shares(&mut balance, 10, 1), [5, 5]);
    }

    #[test]
    fn a_drained_peer_gets_nothing_even_if_all_others_are_out() {
        let mut balance = balance(&[(1, false), (1, false), (1, true)]);
        balance.record(0).set_drained(true);
        assert_eq!(shares(&mut balance, 10, 1), [0, 10, 0]);
        (1..3).for_each(|peer| _ = balance.handle_failure(peer, FAILED, 1));
        assert_eq!(shares(&mut balance, 10, 1), [0, 10, 0]);
        assert_eq!((balance.choose_other(0b010, 1), balance.choose_other(0b110, 1)), (Some(2), None));
        (1..3).for_each(|peer| balance.record(peer).set_drained(true));
        assert_eq!(balance.choose(0, 1), Decided::Nowhere);
        balance.record(0).set_drained(false);
        assert_eq!(shares(&mut balance, 10, 1), [10, 0, 0]);
    }

    /// Goal: what one process has found out holds for another, and for the configuration that follows.
    #[test]
    fn verdicts_are_shared() {
        let mut first = balance(&[(1, false), (1, false)]);
        let members = first.crew.members().map(|(member, _)| member.clone()).collect();
        let mut second = Alone::of(members, &settings(PolicyName::Wrr));
        assert_eq!(first.handle_failure(0, FAILED, 1), Some(1_000));
        assert_eq!(shares(&mut second, 10, 2), [0, 10]);
        assert_eq!(shares(&mut second, 10, 1_001), [5, 5]);
        assert_eq!(second.handle_failure(0, FAILED, 1_001), Some(2_000), "on probation");
        assert_eq!(shares(&mut first, 10, 1_002), [0, 10]);
    }

    #[test]
    fn another_peer_is_one_that_was_not_tried() {
        let mut balance = balance(&[(1, false), (1, false), (1, true)]);
        assert_eq!(balance.choose_other(0b001, 1), Some(1));
        assert_eq!(balance.choose_other(0b011, 1), Some(2), "rather a backup than an error");
        assert_eq!(balance.choose_other(0b111, 1), None);
    }

    #[test]
    fn the_same_target_goes_to_the_same_peer() {
        for policy in [PolicyName::ConsistentHash, PolicyName::Maglev, PolicyName::LardR] {
            let mut balance = new(&[(1, false); 4], &settings(policy));
            for hash in (0..50).map(|number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15)) {
                let first = chosen(&mut balance, hash, 1);
                balance.end(first);
                let second = chosen(&mut balance, hash, 2);
                balance.end(second);
                assert_eq!(first, second, "{policy}");
            }
        }
    }

    fn cluster(nodes: usize, policy: PolicyName, is_bounded: bool) -> Alone {
        let cluster = Some(ClusterSettings { t_low: 2, t_high: 4, fits: None, is_bounded });
        new(&vec![(1, false); nodes], &BalanceSettings { cluster, ..settings(policy) })
    }

    /// Goal: the published bound, (n - 1) * T_high + T_low - 1: what is beyond it waits, and goes on when something ends, here or
    /// at a node that it was handed over to.
    #[test]
    fn requests_beyond_the_bound_wait() {
        let mut balance = cluster(3, PolicyName::LardH, true);
        let limit = 2 * 4 + 2 - 1;
        let peers: Vec<_> = (0..limit).map(|hash| chosen(&mut balance, hash, 1)).collect();
        assert_eq!(balance.choose(99, 1), Decided::Wait);
        balance.end(peers[0]);
        balance.record(1).note_handed_off();
        assert_eq!(balance.choose(99, 1), Decided::Wait, "one was handed over meanwhile");
        balance.record(1).set_settled(1);
        chosen(&mut balance, 99, 1);
        assert_eq!(balance.choose(100, 1), Decided::Wait);
        let mut unbounded = cluster(3, PolicyName::LardH, false);
        (0..2 * limit).for_each(|hash| _ = chosen(&mut unbounded, hash, 1));
    }

    #[test]
    fn what_was_handed_off_is_load() {
        let mut balance = cluster(2, PolicyName::LeastConnections, false);
        (0..3).for_each(|_| balance.record(0).note_handed_off());
        let peers: Vec<_> = (0..4).map(|hash| chosen(&mut balance, hash, 1)).collect();
        assert_eq!(peers[..3], [1, 1, 1]);
        balance.record(0).set_settled(3);
        balance.end(peers[3]);
        assert_eq!(chosen(&mut balance, 9, 1), 0);
    }

    proptest! {
        /// Whatever is handed over, begins, ends and is asked, in whatever order: a load of the cluster is what this process has
        /// at the node, and what it was handed.
        #[test]
        fn loads_are_those_here_and_those_handed_off(
            steps in prop::collection::vec((0..4_u8, 0..3_usize, any::<u64>()), 0..80),
        ) {
            let mut balance = cluster(3, PolicyName::LardH, false);
            let (mut here, mut handed, mut ended) = ([0_u32; 3], [0_u64; 3], [0_u64; 3]);
            for (step, peer, hash) in steps {
                match step {
                    0 => here[chosen(&mut balance, hash, 1)] += 1,
                    1 if here[peer] > 0 => {
                        balance.end(peer);
                        here[peer] -= 1;
                    }
                    2 => {
                        balance.record(peer).note_handed_off();
                        handed[peer] += 1;
                    }
                    _ => {
                        ended[peer] += 1;
                        balance.record(peer).set_settled(ended[peer]);
                    }
                }
                balance.balance.take_handed_loads();
                for peer in 0..3 {
                    let remote = handed[peer].saturating_sub(ended[peer]) as u32;
                    prop_assert_eq!(balance.balance.load(balance.crew.node(peer)), here[peer] + remote);
                }
            }
        }
    }

    proptest! {
        /// Under any policy, and whatever fails: a peer that is out is chosen only if none is in.
        #[test]
        fn a_peer_that_is_out_gives_way_to_one_that_is_in(
            policy in prop::sample::select(PolicyName::ALL.to_vec()),
            peers in prop::collection::vec((1..5_u32, any::<bool>()), 1..6),
            steps in prop::collection::vec((any::<u64>(), 0..1_500_u64, 0..6_usize), 1..40),
        ) {
            let mut balance = new(&peers, &settings(policy));
            let mut now_ms = 1;
            for (hash, pause_ms, fails) in steps {
                now_ms += pause_ms;
                let peer = chosen(&mut balance, hash, now_ms);
                let is_well = |peer: usize| !balance.is_out(peer, now_ms);
                let some_is_well = |is_backup: bool| (0..peers.len()).any(|peer| is_well(peer) && peers[peer].1 == is_backup);
                if some_is_well(false) {
                    prop_assert!(is_well(peer) && !peers[peer].1);
                } else if some_is_well(true) {
                    prop_assert!(is_well(peer) && peers[peer].1);
                }
                balance.end(peer);
                if fails < peers.len() {
                    balance.handle_failure(fails, FAILED, now_ms);
                }
            }
        }
    }
}
