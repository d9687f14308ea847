//! Tests: one crew follows another in the same balance.

use std::collections::BTreeMap;

use baton_dispatch::PolicyName;
use proptest::prelude::*;

use super::balance::{Balance, BalanceSettings, Decided, PEERS_MAX};
use super::crew::{Crew, Member};
use crate::origins::OriginRecord;

fn settings(policy: PolicyName) -> BalanceSettings {
    BalanceSettings { policy, ejection: None, check: None, slow_start_ms: 0, cluster: None }
}

fn members(names: &[u64]) -> Vec<Member> {
    let member = |name: &u64| Member {
        name: format!("http://10.0.0.{name}"),
        weight: 1,
        is_backup: false,
        record: OriginRecord::default(),
    };
    names.iter().map(member).collect()
}

/// Where each of these targets goes, if one is asked for after the other.
fn places(balance: &mut Balance, crew: &Crew, targets: u64, now_ms: u64) -> Vec<String> {
    let place = |target: u64| {
        let peer = chosen(balance, crew, hash(target), now_ms);
        balance.end(crew, peer);
        crew.member(peer).name.clone()
    };
    (0..targets).map(place).collect()
}

fn hash(target: u64) -> u64 {
    target.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn chosen(balance: &mut Balance, crew: &Crew, hash: u64, now_ms: u64) -> usize {
    match balance.choose(crew, hash, now_ms) {
        Decided::To(peer, _) => peer,
        other => panic!("no peer is drained: {other:?}"),
    }
}

/// Goal: targets stay where they are when another node joins (all of them, where the policy maps them; most, where it
/// hashes them), and their order in the list is of no matter.
#[test]
fn targets_keep_their_nodes_when_an_unrelated_node_joins() {
    for policy in [PolicyName::Lard, PolicyName::LardR, PolicyName::LardH, PolicyName::ConsistentHash] {
        let settings = settings(policy);
        let (mut balance, first) = Balance::new(members(&[1, 2, 3]), &settings);
        let before = places(&mut balance, &first, 300, 1);
        let second = balance.enroll(members(&[4, 3, 2, 1]), &settings);
        let after = places(&mut balance, &second, 300, 2);
        let moved = before.iter().zip(&after).filter(|(before, after)| before != after);
        let is_to_new = moved.clone().all(|(_, after)| after.ends_with(".4"));
        match policy {
            PolicyName::ConsistentHash => assert!(is_to_new && moved.count() < 150, "{policy}"),
            _ => assert_eq!(before, after, "{policy}"),
        }
        // Only the targets of the node that leaves move.
        let third = balance.enroll(members(&[1, 3, 4]), &settings);
        let last = places(&mut balance, &third, 300, 3);
        for (after, last) in after.iter().zip(&last) {
            assert!(after == last || after.ends_with(".2"), "{policy}: from {after} to {last}");
        }
    }
}

#[test]
fn a_node_gets_nothing_before_its_crew_chooses_and_nothing_after_it_has_left() {
    let settings = settings(PolicyName::Wrr);
    let (mut balance, first) = Balance::new(members(&[1]), &settings);
    let second = balance.enroll(members(&[1, 2]), &settings);
    assert_eq!(places(&mut balance, &first, 10, 1), vec!["http://10.0.0.1"; 10]);
    assert_eq!(places(&mut balance, &second, 10, 2).iter().filter(|name| name.ends_with(".2")).count(), 5);
    let third = balance.enroll(members(&[2]), &settings);
    assert_eq!(places(&mut balance, &third, 10, 3), vec!["http://10.0.0.2"; 10]);
    // A request that began with the old peers still finds one of them.
    assert_eq!(places(&mut balance, &first, 3, 4), vec!["http://10.0.0.1"; 3]);
}

#[test]
fn another_policy_begins_anew_and_so_do_too_many_names() {
    let settings = settings(PolicyName::Wrr);
    let (mut balance, _) = Balance::new(members(&[1]), &settings);
    assert!(balance.can_go_on(&settings));
    assert!(!balance.can_go_on(&BalanceSettings { policy: PolicyName::LardH, ..settings.clone() }));
    let mut names = 0;
    while balance.can_go_on(&settings) {
        let some: Vec<_> = (names..names + PEERS_MAX as u64).collect();
        balance.enroll(members(&some), &settings);
        names += PEERS_MAX as u64;
        assert!(names < 10_000);
    }
}

proptest! {
    /// Whatever joins and leaves while requests are under way: each begins at a peer of its crew, each ends where it
    /// began, and loads end at zero.
    #[test]
    fn loads_end_at_zero(
        policy in prop::sample::select(PolicyName::ALL.to_vec()),
        steps in prop::collection::vec((0..4_u8, any::<u64>(), prop::collection::btree_set(0..9_u64, 1..6)), 1..80),
    ) {
        let settings = settings(policy);
        let (mut balance, first) = Balance::new(members(&[0, 1, 2]), &settings);
        let mut crews = vec![first];
        let mut under_way: Vec<(usize, usize)> = Vec::new();
        let mut loads: BTreeMap<String, i64> = BTreeMap::new();
        for (now_ms, (step, number, names)) in (1..).zip(steps) {
            match step {
                0 => crews.push(balance.enroll(members(&names.into_iter().collect::<Vec<_>>()), &settings)),
                1 if !under_way.is_empty() => {
                    let (crew, peer) = under_way.swap_remove(number as usize % under_way.len());
                    balance.end(&crews[crew], peer);
                    *loads.entry(crews[crew].member(peer).name.clone()).or_default() -= 1;
                }
                _ => {
                    // Mostly by the newest crew; now and then by one that is about to be forgotten.
                    let newest = crews.len() - 1;
                    let crew = if number % 8 == 0 { newest.saturating_sub(1) } else { newest };
                    let peer = chosen(&mut balance, &crews[crew], number, now_ms);
                    prop_assert!(peer < crews[crew].len());
                    under_way.push((crew, peer));
                    *loads.entry(crews[crew].member(peer).name.clone()).or_default() += 1;
                }
            }
            for crew in &crews {
                for (member, node) in crew.members() {
                    let expected = loads.get(&member.name).copied().unwrap_or(0);
                    prop_assert_eq!(i64::from(balance.load(node)), expected);
                }
            }
        }
        for (crew, peer) in under_way {
            balance.end(&crews[crew], peer);
        }
        for (_, node) in crews.iter().flat_map(Crew::members) {
            prop_assert_eq!(balance.load(node), 0);
        }
    }
}
