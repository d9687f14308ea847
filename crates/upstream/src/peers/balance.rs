//! Which peer gets a request: the choice of a policy among the peers that are in. No clock, no socket.

use baton_dispatch::{
    Admission, Cluster, NodeId, Policy, PolicyName, PolicySettings, STANDARD_WEIGHT, Target, Why,
};

use super::cause::Cause;
use super::checks::{CheckSettings, CheckTimes};
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

/// The thresholds of a cluster's policies, in requests under way at a node of usual weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Below this, a node has room.
    pub t_low: u32,
    /// Above this, requests would have to wait at the node.
    pub t_high: u32,
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

/// A peer, for its balance.
pub(super) struct Member {
    /// By which policies place targets, in a cluster.
    pub(super) name: String,
    pub(super) weight: u32,
    pub(super) is_backup: bool,
    pub(super) record: OriginRecord,
}

/// The state that all loops of a process share.
pub(super) struct Balance {
    cluster: Cluster,
    policy: Box<dyn Policy + Send>,
    /// Verdicts, which all processes share.
    records: Vec<OriginRecord>,
    ejection: Option<Ejection>,
    is_checked: bool,
    /// Whether nodes keep what they answer in memory, so that it matters which one is asked.
    is_cluster: bool,
    /// Peers that are asked only if no other is in.
    backups: PeerSet,
    /// The loads of nodes by requests that were handed over, as the cluster has them now, and room for those that it gets.
    handed: Vec<u32>,
    loads: Vec<u32>,
    /// What the policy was told last.
    epoch: u64,
    pub(super) retry_budget: RetryBudget,
}

impl Balance {
    /// These peers: at least one, at most [`PEERS_MAX`].
    pub(super) fn new(members: Vec<Member>, settings: &BalanceSettings) -> Self {
        let weight = |member: &Member| member.weight.saturating_mul(STANDARD_WEIGHT);
        let slow_start_us = settings.slow_start_ms.saturating_mul(1_000);
        let cluster = match settings.cluster {
            None => Cluster::of(&members.iter().map(weight).collect::<Vec<_>>(), slow_start_us),
            Some(_) => {
                let mut cluster = Cluster::new(slow_start_us);
                for member in &members {
                    cluster.join_named(member.name.as_bytes(), weight(member), 0);
                }
                // No node has returned yet: all have their full weight.
                cluster.handle_timeout(baton_dispatch::Time::MAX);
                cluster
            }
        };
        let thresholds = settings.cluster.map_or_else(PolicySettings::default, |cluster| PolicySettings {
            t_low: cluster.t_low,
            t_high: cluster.t_high,
            ..PolicySettings::default()
        });
        let backup = |(peer, member): (usize, &Member)| u64::from(member.is_backup) << peer;
        let backups = members.iter().enumerate().map(backup).sum();
        let policy = settings.policy.build(&thresholds);
        let policy = match settings.cluster {
            Some(ClusterSettings { is_bounded: true, .. }) => Box::new(Admission::new(policy, &thresholds)),
            _ => policy,
        };
        let mut balance = Self {
            handed: vec![0; members.len()],
            loads: Vec::with_capacity(members.len()),
            cluster,
            policy,
            records: members.into_iter().map(|member| member.record).collect(),
            ejection: settings.ejection.clone(),
            is_checked: settings.check.is_some(),
            is_cluster: settings.cluster.is_some(),
            backups,
            epoch: 0,
            retry_budget: RetryBudget::default(),
        };
        for peer in 0..balance.records.len() {
            if balance.is_backup(peer) {
                balance.cluster.fail(node(peer));
            }
        }
        balance.tell_policy(0);
        balance
    }

    /// The peer for a request, and the reason.
    pub(super) fn choose(&mut self, hash: u64, now_ms: u64) -> Decided {
        if !self.settle(now_ms) {
            return Decided::Nowhere;
        }
        self.take_handed_loads();
        let target = Target { dynamic: !self.is_cluster, ..Target::new(hash) };
        let decision = self.policy.choose(target, &self.cluster, now_ms.saturating_mul(1_000));
        if decision.why == Why::AdmissionLimit {
            return Decided::Wait;
        }
        // Some peer always serves.
        let chosen = decision.node.or_else(|| self.cluster.serving().first().copied());
        Decided::To(self.begin(chosen.map_or(0, NodeId::index)), decision.why)
    }

    /// Takes note of requests that were handed over to nodes, and of those that have ended there.
    fn take_handed_loads(&mut self) {
        if !self.is_cluster {
            return;
        }
        let mut has_changed = false;
        self.loads.clear();
        for (peer, record) in self.records.iter().enumerate() {
            let handed = record.under_way_at_node();
            let before = std::mem::replace(&mut self.handed[peer], handed);
            has_changed |= handed != before;
            // What the cluster has besides are requests of this process.
            self.loads.push(self.cluster.load(node(peer)).saturating_sub(before).saturating_add(handed));
        }
        if has_changed {
            self.cluster.handle_loads(&self.loads);
        }
    }

    /// Another peer than those that were tried and those that are drained: the one with the least load for its weight, those
    /// that are in first.
    pub(super) fn choose_other(&mut self, tried: PeerSet, now_ms: u64) -> Option<usize> {
        self.settle(now_ms);
        let rank = |peer: &usize| {
            let pressure =
                f64::from(self.cluster.load(node(*peer)) + 1) / f64::from(self.cluster.weight(node(*peer)));
            (self.is_out(*peer, now_ms), self.is_backup(*peer), pressure)
        };
        let untried = (0..self.records.len())
            .filter(|peer| tried & bit(*peer) == 0 && !self.records[*peer].is_drained());
        let least =
            untried.min_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(std::cmp::Ordering::Equal))?;
        Some(self.begin(least))
    }

    /// A request has left its peer.
    pub(super) fn end(&mut self, peer: usize) {
        self.cluster.end(node(peer));
    }

    /// A peer has failed. Returns for how long that ejects it, in milliseconds, if it does.
    pub(super) fn handle_failure(&mut self, peer: usize, cause: Cause, now_ms: u64) -> Option<u64> {
        let ejection = self.ejection.as_ref()?;
        let out_ms = self.judge(peer, |standing| standing.handle_failure(ejection, now_ms))?;
        self.records[peer].store(word::EJECTION_CAUSE, cause.code());
        self.records[peer].note_ejection();
        // Now: a peer that returns before the next request begins slowly nevertheless.
        self.settle(now_ms);
        Some(out_ms)
    }

    /// The head of a response has come, for a request that the peer got at `begun_ms`. Returns what `handle_failure` does.
    pub(super) fn handle_status(
        &mut self,
        peer: usize,
        status: u16,
        begun_ms: u64,
        now_ms: u64,
    ) -> Option<u64> {
        if self.ejection.as_ref().is_some_and(|ejection| ejection.statuses.contains(&status)) {
            self.records[peer].note_bad_status();
            return self.handle_failure(peer, Cause::Status(status), now_ms);
        }
        self.judge(peer, |standing| standing.handle_success(begun_ms, now_ms));
        None
    }

    fn judge<R>(&self, peer: usize, judge: impl FnOnce(&mut Standing) -> R) -> R {
        let record = &self.records[peer];
        let before = standing(record);
        let mut after = before;
        let result = judge(&mut after);
        record.store_changed(word::STANDING, before.to_words(), after.to_words());
        result
    }

    /// A peer whose check is due. The caller makes the check.
    pub(super) fn take_due_check(&self, check: &CheckSettings, now_ms: u64) -> Option<usize> {
        self.records.iter().position(|record| CheckTimes(record).take_due(check, now_ms))
    }

    /// When the next check is due; `u64::MAX`: never.
    pub(super) fn next_check_ms(&self) -> u64 {
        self.records.iter().map(|record| CheckTimes(record).due_ms()).min().unwrap_or(u64::MAX)
    }

    /// The result of a check. Returns whether it turns the peer's state.
    pub(super) fn handle_check(
        &mut self,
        peer: usize,
        check: &CheckSettings,
        failed: Option<Cause>,
        now_ms: u64,
    ) -> bool {
        let record = &self.records[peer];
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

    fn is_out(&self, peer: usize, now_ms: u64) -> bool {
        let record = &self.records[peer];
        // Verdicts of a configuration that judged otherwise do not count.
        (self.ejection.is_some() && standing(record).is_out(now_ms))
            || (self.is_checked && checked(record).is_down())
    }

    pub(super) fn is_backup(&self, peer: usize) -> bool {
        self.backups & bit(peer) != 0
    }

    fn begin(&mut self, peer: usize) -> usize {
        self.cluster.begin(node(peer));
        peer
    }

    /// Lets those serve that are in; else the backups that are in; else all, since any answer is better than none. Those that
    /// are drained never serve. Returns whether there is any other.
    fn settle(&mut self, now_ms: u64) -> bool {
        let of = |set: &dyn Fn(usize) -> bool| -> PeerSet {
            (0..self.records.len()).filter(|peer| set(*peer)).map(bit).sum()
        };
        let all = of(&|peer| !self.records[peer].is_drained());
        let well = all & of(&|peer| !self.is_out(peer, now_ms));
        let choices = [well & !self.backups, well & self.backups, all & !self.backups, all];
        let serving = choices.into_iter().find(|set| *set != 0).unwrap_or(all);
        let now = now_ms.saturating_mul(1_000);
        for peer in 0..self.records.len() {
            match (serving & bit(peer) != 0, self.cluster.is_serving(node(peer))) {
                (true, false) => {
                    self.cluster.recover(node(peer), now);
                    self.records[peer].store(word::RETURNED, now_ms);
                }
                (false, true) => self.cluster.fail(node(peer)),
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

impl std::fmt::Debug for Balance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cluster, policy, records, .. } = self;
        let mut shown = f.debug_struct("Balance");
        shown.field("policy", &policy.name()).field("cluster", cluster).field("records", records).finish()
    }
}

const fn bit(peer: usize) -> PeerSet {
    1 << peer
}

const fn node(peer: usize) -> NodeId {
    NodeId(peer as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn settings(policy: PolicyName) -> BalanceSettings {
        let ejection =
            Ejection { failures: 1, window_ms: 1_000, out_ms: 1_000, out_ms_max: 8_000, statuses: vec![503] };
        BalanceSettings { policy, ejection: Some(ejection), check: None, slow_start_ms: 0, cluster: None }
    }

    const FAILED: Cause = Cause::Status(500);

    fn new(peers: &[(u32, bool)], settings: &BalanceSettings) -> Balance {
        let member = |(weight, is_backup): &(u32, bool)| Member {
            name: String::new(),
            weight: *weight,
            is_backup: *is_backup,
            record: OriginRecord::default(),
        };
        Balance::new(peers.iter().map(member).collect(), settings)
    }

    fn balance(peers: &[(u32, bool)]) -> Balance {
        new(peers, &settings(PolicyName::Wrr))
    }

    fn chosen(balance: &mut Balance, hash: u64, now_ms: u64) -> usize {
        match balance.choose(hash, now_ms) {
            Decided::To(peer, _) => peer,
            other => panic!("not all are drained: {other:?}"),
        }
    }

    /// How many of these requests, one after the other, each peer gets.
    fn shares(balance: &mut Balance, requests: u64, now_ms: u64) -> Vec<u64> {
        let mut shares = vec![0; balance.records.len()];
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
        balance.handle_status(1, 200, 2, 3);
        assert_eq!(shares(&mut balance, 10, 3), [0, 10, 0], "the one that has answered");
    }

    #[test]
    fn backups_are_asked_if_no_other_is_in() {
        let mut balance = balance(&[(1, false), (1, false), (1, true)]);
        assert_eq!(shares(&mut balance, 10, 1), [5, 5, 0]);
        balance.handle_failure(0, FAILED, 1);
        assert_eq!(shares(&mut balance, 10, 1), [0, 10, 0]);
        balance.handle_status(1, 503, 1, 1);
        assert_eq!(shares(&mut balance, 10, 1), [0, 0, 10]);
        assert_eq!(shares(&mut balance, 10, 1_001), [5, 5, 0]);
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
        balance.records[0].set_drained(true);
        assert_eq!(shares(&mut balance, 10, 1), [0, 10, 0]);
        (1..3).for_each(|peer| _ = balance.handle_failure(peer, FAILED, 1));
        assert_eq!(shares(&mut balance, 10, 1), [0, 10, 0]);
        assert_eq!((balance.choose_other(0b010, 1), balance.choose_other(0b110, 1)), (Some(2), None));
        balance.records[1..].iter().for_each(|record| record.set_drained(true));
        assert_eq!(balance.choose(0, 1), Decided::Nowhere);
        balance.records[0].set_drained(false);
        assert_eq!(shares(&mut balance, 10, 1), [10, 0, 0]);
    }

    /// Goal: what one process has found out holds for another, and for the configuration that follows.
    #[test]
    fn verdicts_are_shared() {
        let mut first = balance(&[(1, false), (1, false)]);
        let members = first.records.iter().map(|record| Member {
            name: String::new(),
            weight: 1,
            is_backup: false,
            record: record.clone(),
        });
        let mut second = Balance::new(members.collect(), &settings(PolicyName::Wrr));
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

    fn cluster(nodes: usize, policy: PolicyName, is_bounded: bool) -> Balance {
        let cluster = Some(ClusterSettings { t_low: 2, t_high: 4, is_bounded });
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
        balance.records[1].note_handed_over();
        assert_eq!(balance.choose(99, 1), Decided::Wait, "one was handed over meanwhile");
        balance.records[1].set_settled(1);
        chosen(&mut balance, 99, 1);
        assert_eq!(balance.choose(100, 1), Decided::Wait);
        let mut unbounded = cluster(3, PolicyName::LardH, false);
        (0..2 * limit).for_each(|hash| _ = chosen(&mut unbounded, hash, 1));
    }

    #[test]
    fn what_was_handed_over_is_load() {
        let mut balance = cluster(2, PolicyName::LeastConnections, false);
        (0..3).for_each(|_| balance.records[0].note_handed_over());
        let peers: Vec<_> = (0..4).map(|hash| chosen(&mut balance, hash, 1)).collect();
        assert_eq!(peers[..3], [1, 1, 1]);
        balance.records[0].set_settled(3);
        balance.end(peers[3]);
        assert_eq!(chosen(&mut balance, 9, 1), 0);
    }

    proptest! {
        /// Whatever is handed over, begins, ends and is asked, in whatever order: a load of the cluster is what this process has
        /// at the node, and what it was handed.
        #[test]
        fn loads_are_those_here_and_those_handed_over(
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
                        balance.records[peer].note_handed_over();
                        handed[peer] += 1;
                    }
                    _ => {
                        ended[peer] += 1;
                        balance.records[peer].set_settled(ended[peer]);
                    }
                }
                balance.take_handed_loads();
                for peer in 0..3 {
                    let remote = handed[peer].saturating_sub(ended[peer]) as u32;
                    prop_assert_eq!(balance.cluster.load(node(peer)), here[peer] + remote);
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
