//! What the search does with goals, little time, and candidates that fail.

use baton_figures::{Comparison, Datum};
use baton_tune::{Budget, Candidate, Choice, Dial, Goal, Measured, Search, ServerKind, Space, TrialOutcome};

const BUDGET: Budget = Budget { total_s: 600.0, start_s: 0.5 };
const PRESENT: Candidate = Candidate { kind: 0, tasks: 1, connections: 1000, cache_mib: 64 };
const AS_NOW: Measured = Measured { rate: 100.0, p99_ms: 10.0, memory_mib: 100.0 };

fn space() -> Space {
    let kind = ServerKind {
        name: "symped".into(),
        tasks: Dial::new(&[1, 4], &[2, 3]),
        connections: Dial::new(&[1000, 4000], &[2000]),
        cache_mib: Dial::new(&[64], &[16]),
    };
    Space { kinds: vec![kind] }
}

/// Searches; returns the search, and the seconds that it took.
fn search(goal: Goal, budget: Budget, outcome: impl Fn(Candidate, usize) -> TrialOutcome) -> (Search, f64) {
    let mut search = Search::new(space(), PRESENT, goal, budget);
    let (mut took_s, mut trials) = (0.0, 0);
    while let Some(trial) = search.poll_trial() {
        assert_ne!(trial.candidate, PRESENT, "the present settings are measured in each pair anyway");
        let took = 2.0 * (trial.seconds + budget.start_s);
        took_s += took;
        trials += 1;
        // A little noise of the machine, the same in both.
        let noise = 1.0 + 0.01 * (trials % 3) as f64;
        let present = Measured { rate: noise * AS_NOW.rate, ..AS_NOW };
        let outcome = match outcome(trial.candidate, trials) {
            TrialOutcome::Fair(measured) => {
                TrialOutcome::Fair(Measured { rate: noise * measured.rate, ..measured })
            }
            other => other,
        };
        search.handle_trial(trial, took, &present, outcome);
    }
    (search, took_s)
}

#[test]
fn without_anything_better_the_present_settings_stay() {
    let (all_alike, _) = search(Goal::Rate, BUDGET, |_, _| TrialOutcome::Fair(AS_NOW));
    let Choice::Keep(Some((_, paired))) = all_alike.choice() else { panic!("{:?}", all_alike.choice()) };
    assert_eq!(paired.comparison, Some(Comparison::Level));
    let (none_starts, _) = search(Goal::Rate, BUDGET, |_, _| TrialOutcome::Failed("no such address".into()));
    assert_eq!(none_starts.choice(), Choice::Keep(None));
}

#[test]
fn a_gain_that_the_interval_does_not_show_is_not_recommended() {
    let (uncertain, _) = search(Goal::Rate, BUDGET, |_, trial| {
        // Four finalists take turns: each has both, about as often.
        let rate = if trial / 4 % 2 == 0 { 160.0 } else { 80.0 };
        TrialOutcome::Fair(Measured { rate, ..AS_NOW })
    });
    assert!(matches!(uncertain.choice(), Choice::Keep(Some((_, paired))) if paired.comparison.is_none()));
}

#[test]
fn an_unfair_cell_never_wins_however_fast_it_is() {
    let (found, _) =
        search(Goal::Rate, BUDGET, |candidate, _| match (candidate.tasks, candidate.connections) {
            (4, 4000) => TrialOutcome::Unfair("one client in ten had no answer".into()),
            (4, _) => TrialOutcome::Fair(Measured { rate: 130.0, ..AS_NOW }),
            _ => TrialOutcome::Fair(AS_NOW),
        });
    let Choice::Change(candidate, paired) = found.choice() else { panic!("{:?}", found.choice()) };
    assert_eq!((candidate.tasks, paired.comparison), (4, Some(Comparison::Ahead)));
    assert_ne!(candidate.connections, 4000);
    let map = found.map();
    let row = map.lines.iter().find(|line| line.name == "symped × 4").expect("its row");
    let unfair: Vec<_> = row
        .points
        .iter()
        .filter(|point| matches!(&point.datum, Datum::Unfair(why) if why.contains("ten")))
        .collect();
    assert_eq!(unfair.len(), 1, "{row:?}");
}

#[test]
fn one_that_becomes_unfair_in_the_finals_is_out() {
    let (found, _) = search(Goal::Rate, BUDGET, |candidate, trial| match candidate.tasks {
        4 if trial > 30 => TrialOutcome::Unfair("its connections starved".into()),
        tasks => TrialOutcome::Fair(Measured { rate: 100.0 + 10.0 * f64::from(tasks), ..AS_NOW }),
    });
    let Choice::Change(candidate, _) = found.choice() else { panic!("{:?}", found.choice()) };
    assert_ne!(candidate.tasks, 4);
}

#[test]
fn less_memory_or_delay_must_not_cost_answers() {
    let measured = |candidate: Candidate, _| {
        let is_small = candidate.cache_mib == 16;
        let memory_mib = if is_small { 50.0 } else { 100.0 - f64::from(candidate.tasks) };
        let rate = if is_small && candidate.tasks > 1 { 60.0 } else { 100.0 };
        TrialOutcome::Fair(Measured { rate, p99_ms: 10.0 - f64::from(candidate.tasks), memory_mib })
    };
    let (memory, _) = search(Goal::Memory, BUDGET, measured);
    let Choice::Change(candidate, paired) = memory.choice() else { panic!("{:?}", memory.choice()) };
    assert_eq!((candidate.tasks, candidate.cache_mib, paired.ratio.median), (1, 16, 0.5));
    let (p99, _) = search(Goal::P99, BUDGET, measured);
    let Choice::Change(candidate, paired) = p99.choice() else { panic!("{:?}", p99.choice()) };
    assert_eq!((candidate.tasks, paired.comparison), (4, Some(Comparison::Ahead)));
    assert_eq!(candidate.cache_mib, 64, "the small cache answers less");
}

#[test]
fn the_time_is_kept() {
    for minutes in [1.0, 2.0, 5.0, 10.0, 60.0] {
        let total_s = 60.0 * minutes;
        let (_, took_s) =
            search(Goal::Rate, Budget { total_s, start_s: 0.5 }, |_, _| TrialOutcome::Fair(AS_NOW));
        assert!(took_s <= 1.1 * total_s, "{took_s} of {total_s} s");
    }
}
