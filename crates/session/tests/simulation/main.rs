//! A worker in a box: the machines of a client over memory, with a clock of our own, under thousands of seeds.
//!
//! A seed chooses the requests, how input and room for output are split, how long jobs take, how an application
//! answers, when clients leave, and when the worker reloads, drains and stops. The laws that hold for every seed are in
//! [`world`] (after every event, and at the end), in [`http1`] and in [`http2`] (for what a client gets, and for the log).
//! [`request`] and [`expected`] are the model of the answers.
//!
//! `cargo test` runs some thousands; `make simulate SEEDS=n FIRST=m` runs more. A failing seed prints the command that
//! repeats it, and joins [`REGRESSIONS`] with the fix.

mod application;
mod cached;
mod cached_requests;
mod choices;
mod client;
mod clock;
mod delegated;
mod disk;
mod expected;
mod http1;
mod http2;
mod ledger;
mod link;
mod log;
#[expect(dead_code, reason = "tests of the crate use more of it")]
#[path = "../../src/transport/memory.rs"]
mod memory;
mod request;
mod response;
mod site;
mod socket;
#[expect(dead_code, reason = "tests of the crate use more of it")]
#[path = "../../src/transport/tls_client.rs"]
mod tls_client;
mod tls_link;
mod world;

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

// Under the name by which the line in memory knows it.
use baton_session::transport;
use world::{Setting, World};

/// Seeds that have found a defect, and the defect. If the choices change, a seed becomes another scenario.
const REGRESSIONS: [(u64, &str); 8] = [
    (
        701,
        "input that came while the last answer was sent was left unread: the reset could destroy the answer",
    ),
    (52_698, "a body that came before the server knew that it was not wanted kept its window (HTTP/2)"),
    (625, "a cached response's end was never read: its fill waited for a reader that had all of it"),
    (4378, "the same, behind a reader that had got all of it at once"),
    (
        7795,
        "a connection that had moved was never ended: the simulation went on with the socket that had left",
    ),
    (3435, "a loop went round and round for a connection in a backlog, which by another clock was not due"),
    (1175, "the simulated origin confirmed by its date, for one user, the response for all"),
    (10_906, "a HEAD without validators made a stored response fresh again that was of an older version"),
];

#[test]
fn any_scenario_keeps_the_laws() {
    let (first, count) = (variable("SIMULATE_FIRST", 1), variable("SIMULATE_SEEDS", USUAL_SEEDS));
    // One alone is to be looked at.
    let is_alone = count == 1;
    let regressions = REGRESSIONS.map(|(seed, _)| seed).into_iter().filter(|_| !is_alone);
    let seeds: Vec<u64> = regressions.chain(first..first + count).collect();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                let setting = Setting::create();
                while let Some(&seed) = seeds.get(next.fetch_add(1, Relaxed)) {
                    if let Err(panic) = run(&setting, seed, is_alone) {
                        // The other threads end, too.
                        next.store(seeds.len(), Relaxed);
                        resume_unwind(panic);
                    }
                }
            });
        }
    });
}

/// A scenario depends on its seed alone, not on time, machine or chance.
#[test]
fn a_seed_repeats_itself() {
    let setting = Setting::create();
    for seed in 1..100 {
        let mut runs = [Vec::new(), Vec::new()];
        let fingerprints =
            runs.each_mut().map(|run| World::new(&setting, seed, Some(&mut |line| run.push(line))).run());
        let differs = runs[0].iter().zip(&runs[1]).find(|(one, other)| one != other);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(fingerprints[0], fingerprints[1], "seed {seed}");
    }
}

/// Runs one seed; `aloud`: tells what happens.
fn run(setting: &Setting, seed: u64, aloud: bool) -> thread::Result<()> {
    let tell: &mut dyn FnMut(String) = &mut |line| eprintln!("{line}");
    let result = catch_unwind(AssertUnwindSafe(|| World::new(setting, seed, aloud.then_some(tell)).run()));
    if result.is_err() {
        eprintln!(
            "seed {seed} fails; `make simulate FIRST={seed} SEEDS=1` repeats it and tells what happens"
        );
    }
    result.map(drop)
}

fn variable(name: &str, usual: u64) -> u64 {
    let value = std::env::var(name).ok().filter(|value| !value.is_empty());
    value.map_or(usual, |value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

/// Seeds of an ordinary test run: a few seconds.
const USUAL_SEEDS: u64 = 1500;
