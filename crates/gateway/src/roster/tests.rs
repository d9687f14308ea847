//! Lanes that change hands, and laws that hold however they do.

use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;

fn opened(places: usize, lanes: usize, requests_max: Option<u64>) -> Roster {
    let roster = Roster::create(places, lanes).unwrap();
    for place in 0..places {
        roster.begin(place, 100 + place as u32, requests_max);
        roster.set_open(place);
    }
    roster
}

#[test]
fn another_process_sees_the_same() {
    let ours = opened(3, 2, None);
    let descriptors = ours.descriptors().map(|fd| fd.try_clone_to_owned().unwrap());
    let theirs = Roster::open(descriptors.into()).unwrap();
    let seat = theirs.sit_down().unwrap();
    let lane = theirs.take(seat).unwrap();
    assert_eq!(ours.report(), theirs.report());
    assert_eq!(ours.report()[0], PlaceReport { pid: 100, state: "busy", requests: 0 });
    theirs.give_back(lane, Parting::Done);
    assert_eq!(ours.report()[0].state, "idle");
}

#[test]
fn something_else_is_refused() {
    let descriptors = || opened(3, 2, None).descriptors().map(|fd| fd.try_clone_to_owned().unwrap());
    let [numbers, bell, call] = descriptors();
    assert!(Roster::open(vec![bell, numbers, call]).is_err());
    assert!(Roster::open(descriptors().into_iter().take(2).collect()).is_err());
    let short = SharedNumbers::create(9).unwrap();
    let [_, bell, call] = descriptors();
    assert!(Roster::open(vec![short.as_fd().try_clone_to_owned().unwrap(), bell, call]).is_err());
}

/// Goal: what is said of a process that has ended is not said of the one that has taken its place.
#[test]
fn late_words_are_not_about_the_next_process() {
    let roster = opened(1, 1, None);
    let seat = roster.sit_down().unwrap();
    let old = roster.take(seat).unwrap();
    roster.end(0);
    roster.begin(0, 200, None);
    roster.set_open(0);
    let new = roster.take(seat).unwrap();
    roster.give_back(old, Parting::Overdue);
    assert_eq!(roster.report()[0].state, "busy");
    roster.give_back(new, Parting::Done);
    assert_eq!(roster.report()[0].state, "idle");
}

#[test]
fn what_a_dead_loop_has_held_is_looked_at() {
    let roster = opened(2, 1, None);
    let (dead, alive) = (roster.sit_down().unwrap(), roster.sit_down().unwrap());
    roster.take(dead).unwrap();
    roster.take(alive).unwrap();
    roster.want(dead, 3);
    roster.want(alive, 1);
    roster.seat(dead.into())[SEAT_PID].store(1, SeqCst);
    roster.forget(1);
    assert_eq!(roster.report().iter().map(|place| place.state).collect::<Vec<_>>(), ["unsure", "busy"]);
    assert_eq!(roster.waiting(), 1);
    assert_eq!(roster.sit_down(), Some(dead));
}

#[test]
fn who_may_ask_and_who_was_asked_keep_processes() {
    let roster = Arc::new(opened(1, 2, None));
    assert!(roster.is_abandoned());
    let claims = [Claim::new(&roster), Claim::new(&roster)];
    let seat = roster.sit_down().unwrap();
    let lane = roster.take(seat).unwrap();
    assert!(!roster.is_abandoned());
    drop(claims);
    assert!(!roster.is_abandoned(), "a request is under way");
    roster.give_back(lane, Parting::Unsure);
    assert!(!roster.is_abandoned(), "its client is gone, which the process may not know");
    roster.set_open(0);
    roster.want(seat, 1);
    assert!(!roster.is_abandoned(), "a request waits");
    roster.want(seat, 0);
    assert!(roster.is_abandoned());
}

#[test]
fn the_claims_of_the_dead_are_forgotten_and_none_is_lost() {
    let roster = Arc::new(opened(1, 1, None));
    std::mem::forget(Claim::new(&roster));
    assert!(!roster.is_abandoned());
    roster.forget(std::process::id());
    assert!(roster.is_abandoned());
    let all: Vec<_> = (0..CLAIMS).map(|_| Claim::new(&roster).unwrap()).collect();
    assert!(Claim::new(&roster).is_none());
    drop(all);
    assert!(!roster.is_abandoned(), "somebody could not be counted");
}

/// The keeper is called once in time, and once at the end.
#[test]
fn the_keeper_hears_of_who_is_about_to_be_spent() {
    let roster = opened(1, 1, Some(10));
    let seat = roster.sit_down().unwrap();
    let mut heard = Vec::new();
    for request in 1..=10 {
        let lane = roster.take(seat).unwrap();
        roster.count(lane);
        if rustix::io::read(roster.calls(), &mut [0; 8]).is_ok() {
            heard.push((request, roster.is_almost_spent(0), roster.is_spent(0)));
        }
        roster.hear();
        roster.give_back(lane, Parting::Done);
    }
    assert_eq!(heard, [(8, true, false), (10, true, true)]);
    assert_eq!(roster.take(seat), None);
    assert!(roster.is_vacated(0));
}

/// Goal: a process that answers several at a time can be told to end when the last of them is over, though it had room
/// for more.
#[test]
fn lanes_that_nobody_has_used_do_not_keep_a_process() {
    let roster = opened(1, 3, Some(2));
    let seat = roster.sit_down().unwrap();
    let lanes = [roster.take(seat).unwrap(), roster.take(seat).unwrap()];
    lanes.iter().for_each(|lane| roster.count(*lane));
    assert!(roster.is_spent(0) && roster.take(seat).is_none() && !roster.is_vacated(0));
    roster.give_back(lanes[0], Parting::Done);
    assert!(!roster.is_vacated(0));
    roster.give_back(lanes[1], Parting::Done);
    assert!(roster.is_vacated(0));
}

#[derive(Clone, Debug)]
enum Step {
    Take(usize),
    GiveBack { which: usize, parting: Parting },
    Begin(usize),
    Open(usize),
    Retire(usize),
    RetireIfIdle(usize),
    End(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || 0_usize..3;
    let parting =
        prop_oneof![6 => Just(Parting::Done), 1 => Just(Parting::Unsure), 1 => Just(Parting::Overdue)];
    let step = prop_oneof![
        6 => (0_usize..2).prop_map(Step::Take),
        6 => (0_usize..6, parting).prop_map(|(which, parting)| Step::GiveBack { which, parting }),
        1 => place().prop_map(Step::Begin),
        3 => place().prop_map(Step::Open),
        1 => place().prop_map(Step::Retire),
        1 => place().prop_map(Step::RetireIfIdle),
        1 => place().prop_map(Step::End),
    ];
    proptest::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// No lane has two holders, nobody gets one of a process that was retired, and one that is vacated is held by nobody.
    #[test]
    fn lanes_have_one_holder(steps in steps(), lanes in 1_usize..3) {
        let roster = opened(3, lanes, None);
        let seats = [roster.sit_down().unwrap(), roster.sit_down().unwrap()];
        let mut held: Vec<Lane> = Vec::new();
        let mut retired = HashSet::new();
        for step in steps {
            match step {
                Step::Take(seat) => {
                    if let Some(lane) = roster.take(seats[seat]) {
                        prop_assert!(!retired.contains(&lane.place(&roster)));
                        prop_assert!(held.iter().all(|other| other.index != lane.index));
                        held.push(lane);
                    }
                }
                Step::GiveBack { which, parting } if which < held.len() => {
                    roster.give_back(held.swap_remove(which), parting);
                }
                Step::GiveBack { .. } => {}
                Step::Begin(place) => {
                    roster.end(place);
                    roster.begin(place, 7, None);
                    retired.remove(&place);
                    held.retain(|lane| lane.place(&roster) != place);
                }
                Step::Open(place) => roster.set_open(place),
                Step::Retire(place) => {
                    roster.retire(place);
                    retired.insert(place);
                }
                Step::RetireIfIdle(place) => {
                    let is_idle = roster.retire_if_idle(place);
                    prop_assert!(!is_idle || held.iter().all(|lane| lane.place(&roster) != place));
                    if is_idle {
                        retired.insert(place);
                    }
                }
                Step::End(place) => {
                    roster.end(place);
                    held.retain(|lane| lane.place(&roster) != place);
                }
            }
            for place in 0..3 {
                let is_held = held.iter().any(|lane| lane.place(&roster) == place);
                prop_assert!(!(roster.is_vacated(place) && is_held));
            }
        }
    }
}
