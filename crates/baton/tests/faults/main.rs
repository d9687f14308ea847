//! Faults caused on purpose: clients, files, disks, descriptors and processes fail in every phase.
//!
//! Each test starts its own server, breaks something, and checks from outside: bytes on the wire, metrics, log,
//! descriptors of the processes. No test asserts a duration; each waits for its events.

#[path = "../common/architectures.rs"]
mod architectures;
#[path = "../common/mod.rs"]
mod common;

/// Makes tests of functions that take an architecture, for those in which a fault can have different effects: one
/// loop, loops with helpers, stages, a stack per client, several processes.
macro_rules! under_each_architecture {
    ($($test:ident),* $(,)?) => {
        under_each_architecture! { auto = "auto", $($test),* }
        under_each_architecture! { sped = "sped", $($test),* }
        under_each_architecture! { pipeline = "pipeline", $($test),* }
        under_each_architecture! { threads = "threads", $($test),* }
        under_each_architecture! { symped = "symped", $($test),* }
    };
    ($module:ident = $architecture:literal, $($test:ident),*) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    super::$test($architecture);
                }
            )*
        }
    };
}

mod bounds;
mod crowd;
mod files;
mod gone;
mod log;
mod peer;
mod site;
mod slow;
mod still;
mod storm;
mod waiting;
mod workers;

use common::watched;
