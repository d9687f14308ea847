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

/// The same for functions that take an architecture and a protocol: over the others under two of those.
macro_rules! over_each_protocol {
    ($($test:ident),* $(,)?) => {
        over_each_protocol! { auto = "auto", Http, $($test),* }
        over_each_protocol! { sped = "sped", Http, $($test),* }
        over_each_protocol! { pipeline = "pipeline", Http, $($test),* }
        over_each_protocol! { threads = "threads", Http, $($test),* }
        over_each_protocol! { symped = "symped", Http, $($test),* }
        over_each_protocol! { https_auto = "auto", Https, $($test),* }
        over_each_protocol! { https_pipeline = "pipeline", Https, $($test),* }
        over_each_protocol! { h2c_auto = "auto", H2c, $($test),* }
        over_each_protocol! { h2c_pipeline = "pipeline", H2c, $($test),* }
        over_each_protocol! { h2_auto = "auto", H2, $($test),* }
        over_each_protocol! { h2_pipeline = "pipeline", H2, $($test),* }
    };
    ($module:ident = $architecture:literal, $protocol:ident, $($test:ident),*) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    super::$test($architecture, crate::common::protocol::Protocol::$protocol);
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
