//! The choice of ways, by a table, over a matrix and by laws.

use proptest::prelude::*;

use super::*;

/// What a machine really costs.
const TRUE: Prices =
    Prices { begin_ns: 30e3, answer_ns: 50e3, kb_ns: 1_000.0, give_ns: 50e3, agent_ns: 150e3 };

const SEEN: HandOffSeen = HandOffSeen { agent_ns: 150_000, delay_us: 500 };

/// Has the choice measure these prices, often enough to forget its guesses. `noise`: factors of the samples, in turn.
fn measure(choice: &mut WayChoice, prices: &Prices, noise: &[f64]) {
    for factor in noise.iter().cycle().take(400.max(noise.len())) {
        let ns = |ns: f64| (ns * factor) as u64;
        choice.note_relayed(RelayWork { begun: 1, ..RelayWork::default() }, ns(prices.begin_ns));
        choice.note_relayed(RelayWork { answers: 1, ..RelayWork::default() }, ns(prices.answer_ns));
        let bytes = 64 << 10;
        choice.note_relayed(RelayWork { bytes, ..RelayWork::default() }, ns(prices.kb_ns * 64.0));
        choice.note_given(ns(prices.give_ns));
    }
}

/// A choice that knows the prices, and a target of each size.
fn measured(prices: &Prices, sizes: &[u64]) -> WayChoice {
    let mut choice = WayChoice::with_prices(*prices);
    sizes.iter().enumerate().for_each(|(target, bytes)| choice.note_size(target as u64, *bytes));
    choice
}

#[test]
fn the_table_of_ways() {
    // A hand-off costs 470 µs, relaying 80 and 0.7 more for each KB.
    let (kb, mb) = (1 << 10, 1 << 20);
    let table = [
        (kb, 0, WayReason::RelayIsCheaper),
        (100 * kb, 0, WayReason::RelayIsCheaper),
        (400 * kb, 0, WayReason::RelayIsCheaper),
        (mb, 0, WayReason::HandOffIsCheaper),
        (10 * mb, 0, WayReason::HandOffIsCheaper),
        (kb, 1, WayReason::RelayIsCheaper),
        (kb, 5, WayReason::HandOffIsCheaper),
        (100 * kb, 1, WayReason::RelayIsCheaper),
        (100 * kb, 3, WayReason::HandOffIsCheaper),
    ];
    for (bytes, before, reason) in table {
        let choice = measured(&TRUE, &[bytes]);
        let compared = choice.compare(0, before, SEEN);
        assert_eq!(compared.reason, reason, "{bytes} bytes behind {before} requests: {compared:?}");
    }
}

#[test]
fn a_hand_off_may_take_as_long_as_relaying_and_no_longer() {
    let choice = measured(&TRUE, &[10 << 20, 1 << 20]);
    let reasons =
        |delay_us| [0, 1].map(|target| choice.compare(target, 0, HandOffSeen { delay_us, ..SEEN }).reason);
    assert_eq!(reasons(1_900), [WayReason::HandOffIsCheaper; 2]);
    assert_eq!(reasons(5_000), [WayReason::HandOffIsCheaper, WayReason::TooLate], "10 MB take 7 ms anyway");
    assert_eq!(reasons(50_000), [WayReason::TooLate; 2]);
}

#[test]
fn a_target_is_relayed_until_its_size_is_known() {
    let mut choice = WayChoice::default();
    choice.note_size(1, 20 << 20);
    assert!(choice.choose(1, 0, SEEN));
    assert!((2..1_000).all(|target| !choice.choose(target, 0, SEEN)), "although large answers are usual");
    assert!(choice.choose(2, 1, SEEN), "of a kept connection, what has come is expected to come again");
}

#[test]
fn guesses_give_way_to_what_is_measured() {
    let mut choice = WayChoice::default();
    measure(&mut choice, &TRUE, &[1.0]);
    choice.choose(0, 0, SEEN);
    let pairs = [
        (choice.prices().relay_ns(64 << 10), TRUE.relay_ns(64 << 10)),
        (choice.prices().hand_off_ns(), TRUE.hand_off_ns()),
    ];
    pairs
        .iter()
        .for_each(|(measured, real)| assert!((measured / real - 1.0).abs() < 0.1, "{measured}, {real}"));
}

#[test]
fn both_ways_are_tried() {
    for (bytes, trials) in [(1 << 10, 0), (100 << 10, 10), (1 << 20, 10), (10 << 20, 0)] {
        let mut choice = measured(&TRUE, &[bytes]);
        let is_usual = choice.compare(0, 0, SEEN).hands_over();
        let others = (0..10 * TRIAL_EVERY).filter(|_| choice.choose(0, 0, SEEN) != is_usual).count();
        assert_eq!(others, trials, "{bytes} bytes: what is far dearer is not tried");
    }
}

#[test]
fn a_slower_agent_makes_hand_offs_rarer() {
    let mut choice = measured(&TRUE, &[1 << 20]);
    assert!(choice.choose(0, 0, SEEN));
    assert!(!choice.choose(0, 0, HandOffSeen { agent_ns: 600_000, ..SEEN }));
    assert_eq!(choice.handed_from_bytes().map(|bytes| bytes >> 10), Some(2_357));
}

/// Goal: one interruption of a second moves no price by more than the bound of an outlier.
#[test]
fn an_interruption_changes_little() {
    let mut choice = measured(&TRUE, &[1 << 10]);
    let before = choice.prices();
    choice.note_given(1_000_000_000);
    choice.note_relayed(RelayWork { answers: 1, ..RelayWork::default() }, 1_000_000_000);
    assert_eq!(choice.prices(), before);
}

/// What a connection with so many requests costs, if it is handed over with that one; `None`: never.
fn cost_ns(bytes: u64, requests: u64, handed_at: Option<u64>) -> f64 {
    let relayed = handed_at.unwrap_or(requests).min(requests);
    let moves = handed_at.is_some_and(|at| at < requests);
    relayed as f64 * TRUE.relay_ns(bytes) + if moves { TRUE.hand_off_ns() } else { 0.0 }
}

/// Goal: of the matrix of sizes on connections that close, the choice costs at most 5 % more than the better way, its trials
/// among it.
#[test]
fn connections_that_close_take_the_better_way() {
    for bytes in [1 << 10, 16 << 10, 100 << 10, 1 << 20, 10 << 20] {
        let mut choice = measured(&TRUE, &[bytes]);
        let count = 10_000;
        let spent: f64 = (0..count).map(|_| cost_ns(bytes, 1, choice.choose(0, 0, SEEN).then_some(0))).sum();
        let best = cost_ns(bytes, 1, None).min(cost_ns(bytes, 1, Some(0))) * f64::from(count);
        assert!(spent <= best * 1.05, "{bytes} bytes: {:.3}", spent / best);
    }
}

proptest! {
    /// However many requests a connection has, it costs at most about twice the better way: what is said of a lease.
    #[test]
    fn kept_connections_cost_at_most_twice_the_better_way(
        bytes in prop::sample::select(vec![1_u64 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20]),
        requests in 1_u64..500,
    ) {
        let choice = measured(&TRUE, &[bytes]);
        let handed_at = (0..requests).find(|before| choice.compare(0, *before, SEEN).hands_over());
        let best = cost_ns(bytes, requests, None).min(cost_ns(bytes, requests, Some(0)));
        prop_assert!(cost_ns(bytes, requests, handed_at) <= best * 2.2);
    }

    /// Measurements that are less than a tenth off change no way: prices that settled decide the same for ever.
    #[test]
    fn noise_changes_no_way(noise in prop::collection::vec(0.95_f64..1.05, 1..50), bytes in 0_u64..20 << 20) {
        let mut choice = measured(&TRUE, &[bytes]);
        let before = (choice.compare(0, 0, SEEN), choice.prices());
        measure(&mut choice, &TRUE, &noise);
        prop_assert_eq!((choice.compare(0, 0, SEEN), choice.prices()), before);
    }

    /// More bytes and more requests never speak for relaying.
    #[test]
    fn what_costs_more_is_rather_handed_over(
        bytes in 0_u64..20 << 20, more in 0_u64..20 << 20, before in 0_u64..50, longer in 0_u64..50,
    ) {
        let choice = measured(&TRUE, &[bytes, bytes + more]);
        let small = choice.compare(0, before, SEEN);
        let large = choice.compare(1, before + longer, SEEN);
        prop_assert!(!small.hands_over() || large.hands_over());
    }

    /// A size is known to within a fifth, and another target's is never taken for it.
    #[test]
    fn sizes_are_known_to_within_a_fifth(targets in prop::collection::vec((any::<u64>(), 1024_u64..64 << 20), 1..200)) {
        let mut sizes = Sizes::default();
        for (target, bytes) in &targets {
            sizes.note(*target, *bytes);
            let known = sizes.of(*target).unwrap() as f64;
            prop_assert!((known / *bytes as f64 - 1.0).abs() < 0.2);
            prop_assert_eq!(sizes.of(target ^ 1 << 45), None);
        }
    }
}
