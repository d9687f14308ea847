//! Lanes that change hands, and the laws that hold after every step.

use std::collections::HashSet;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use baton_sys::shared::SharedNumbers;
use proptest::prelude::*;

use super::*;
use crate::table::*;

fn opened(slots: usize, lanes: usize, requests_max: Option<u64>) -> ProcessTable {
    let table = ProcessTable::create(slots, lanes).unwrap();
    for slot in 0..slots {
        table.begin(slot, 100 + slot as u32, requests_max);
        table.set_open(slot);
    }
    table
}

#[test]
fn another_process_sees_the_same() {
    let ours = opened(3, 2, None);
    let descriptors = ours.descriptors().map(|fd| fd.try_clone_to_owned().unwrap());
    let theirs = ProcessTable::open(descriptors.into()).unwrap();
    let loop_id = theirs.register_loop().unwrap();
    let lane = theirs.take(loop_id).unwrap();
    assert_eq!(ours.report(), theirs.report());
    assert_eq!(ours.report()[0], ProcessReport { pid: 100, state: "busy", requests: 0 });
    theirs.release(lane, Release::Done);
    assert_eq!(ours.report()[0].state, "idle");
}

#[test]
fn something_else_is_refused() {
    let descriptors = || opened(3, 2, None).descriptors().map(|fd| fd.try_clone_to_owned().unwrap());
    let [numbers, waker, supervisor_waker] = descriptors();
    assert!(ProcessTable::open(vec![waker, numbers, supervisor_waker]).is_err());
    assert!(ProcessTable::open(descriptors().into_iter().take(2).collect()).is_err());
    let short = SharedNumbers::create(9).unwrap();
    let [_, waker, supervisor_waker] = descriptors();
    assert!(
        ProcessTable::open(vec![short.as_fd().try_clone_to_owned().unwrap(), waker, supervisor_waker])
            .is_err()
    );
}

/// Goal: late reports about a process that has ended do not change its replacement.
#[test]
fn late_words_are_not_about_the_next_process() {
    let table = opened(1, 1, None);
    let loop_id = table.register_loop().unwrap();
    let old = table.take(loop_id).unwrap();
    table.end(0);
    table.begin(0, 200, None);
    table.set_open(0);
    let new = table.take(loop_id).unwrap();
    table.release(old, Release::Overdue);
    assert_eq!(table.report()[0].state, "busy");
    table.release(new, Release::Done);
    assert_eq!(table.report()[0].state, "idle");
}

#[test]
fn what_a_dead_loop_has_held_is_looked_at() {
    let table = opened(2, 1, None);
    let (dead, alive) = (table.register_loop().unwrap(), table.register_loop().unwrap());
    table.take(dead).unwrap();
    table.take(alive).unwrap();
    table.want(dead, 3);
    table.want(alive, 1);
    table.loop_cells(dead.into())[LOOP_PID].store(1, SeqCst);
    table.forget(1);
    assert_eq!(table.report().iter().map(|slot| slot.state).collect::<Vec<_>>(), ["unsure", "busy"]);
    assert_eq!(table.waiting(), 1);
    assert_eq!(table.register_loop(), Some(dead));
}

#[test]
fn who_may_ask_and_who_was_asked_keep_processes() {
    let table = Arc::new(opened(1, 2, None));
    assert!(table.is_abandoned());
    let claims = [Claim::new(&table), Claim::new(&table)];
    let loop_id = table.register_loop().unwrap();
    let lane = table.take(loop_id).unwrap();
    assert!(!table.is_abandoned());
    drop(claims);
    assert!(!table.is_abandoned(), "a request is under way");
    table.release(lane, Release::Unsure);
    assert!(!table.is_abandoned(), "its client is gone, which the process may not know");
    table.set_open(0);
    table.want(loop_id, 1);
    assert!(!table.is_abandoned(), "a request waits");
    table.want(loop_id, 0);
    assert!(table.is_abandoned());
}

#[test]
fn the_claims_of_the_dead_are_forgotten_and_none_is_lost() {
    let table = Arc::new(opened(1, 1, None));
    std::mem::forget(Claim::new(&table));
    assert!(!table.is_abandoned());
    table.forget(std::process::id());
    assert!(table.is_abandoned());
    let all: Vec<_> = (0..CLAIMS).map(|_| Claim::new(&table).unwrap()).collect();
    assert!(Claim::new(&table).is_none());
    drop(all);
    assert!(!table.is_abandoned(), "there was no room for a claim");
}

/// The supervisor is woken once in time, and once at the end.
#[test]
fn the_supervisor_is_woken_before_a_process_is_spent() {
    let table = opened(1, 1, Some(10));
    let loop_id = table.register_loop().unwrap();
    let mut heard = Vec::new();
    for request in 1..=10 {
        let lane = table.take(loop_id).unwrap();
        table.count(lane);
        if rustix::io::read(table.wakeups(), &mut [0; 8]).is_ok() {
            heard.push((request, table.is_almost_spent(0), table.is_spent(0)));
        }
        table.take_wakeup();
        table.release(lane, Release::Done);
    }
    assert_eq!(heard, [(8, true, false), (10, true, true)]);
    assert_eq!(table.take(loop_id), None);
    assert!(table.is_vacated(0));
}

/// Goal: a process that answers several at a time can be told to end when the last of them is over, though it had room
/// for more.
#[test]
fn unused_lanes_do_not_keep_a_process() {
    let table = opened(1, 3, Some(2));
    let loop_id = table.register_loop().unwrap();
    let lanes = [table.take(loop_id).unwrap(), table.take(loop_id).unwrap()];
    lanes.iter().for_each(|lane| table.count(*lane));
    assert!(table.is_spent(0) && table.take(loop_id).is_none() && !table.is_vacated(0));
    table.release(lanes[0], Release::Done);
    assert!(!table.is_vacated(0));
    table.release(lanes[1], Release::Done);
    assert!(table.is_vacated(0));
}

#[derive(Clone, Debug)]
enum Step {
    Take(usize),
    GiveBack { which: usize, release: Release },
    Begin(usize),
    Open(usize),
    Retire(usize),
    RetireIfIdle(usize),
    End(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let slot = || 0_usize..3;
    let release =
        prop_oneof![6 => Just(Release::Done), 1 => Just(Release::Unsure), 1 => Just(Release::Overdue)];
    let step = prop_oneof![
        6 => (0_usize..2).prop_map(Step::Take),
        6 => (0_usize..6, release).prop_map(|(which, release)| Step::GiveBack { which, release }),
        1 => slot().prop_map(Step::Begin),
        3 => slot().prop_map(Step::Open),
        1 => slot().prop_map(Step::Retire),
        1 => slot().prop_map(Step::RetireIfIdle),
        1 => slot().prop_map(Step::End),
    ];
    proptest::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// No lane has two holders, no loop gets one of a retired process, and a vacated process has no held lane.
    #[test]
    fn lanes_have_one_holder(steps in steps(), lanes in 1_usize..3) {
        let table = opened(3, lanes, None);
        let loop_ids = [table.register_loop().unwrap(), table.register_loop().unwrap()];
        let mut held: Vec<Lane> = Vec::new();
        let mut retired = HashSet::new();
        for step in steps {
            match step {
                Step::Take(loop_id) => {
                    if let Some(lane) = table.take(loop_ids[loop_id]) {
                        prop_assert!(!retired.contains(&lane.slot(&table)));
                        prop_assert!(held.iter().all(|other| other.index() != lane.index()));
                        held.push(lane);
                    }
                }
                Step::GiveBack { which, release } if which < held.len() => {
                    table.release(held.swap_remove(which), release);
                }
                Step::GiveBack { .. } => {}
                Step::Begin(slot) => {
                    table.end(slot);
                    table.begin(slot, 7, None);
                    retired.remove(&slot);
                    held.retain(|lane| lane.slot(&table) != slot);
                }
                Step::Open(slot) => table.set_open(slot),
                Step::Retire(slot) => {
                    table.retire(slot);
                    retired.insert(slot);
                }
                Step::RetireIfIdle(slot) => {
                    let is_idle = table.retire_if_idle(slot);
                    prop_assert!(!is_idle || held.iter().all(|lane| lane.slot(&table) != slot));
                    if is_idle {
                        retired.insert(slot);
                    }
                }
                Step::End(slot) => {
                    table.end(slot);
                    held.retain(|lane| lane.slot(&table) != slot);
                }
            }
            for slot in 0..3 {
                let is_held = held.iter().any(|lane| lane.slot(&table) == slot);
                prop_assert!(!(table.is_vacated(slot) && is_held));
            }
        }
    }
}
