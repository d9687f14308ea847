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

/// The same for functions that take an architecture and a protocol, of the bytes of HTTP/1: over TLS under two of those.
macro_rules! over_http1 {
    ($($test:ident),* $(,)?) => {
        over_http1! { auto = "auto", Http, $($test),* }
        over_http1! { sped = "sped", Http, $($test),* }
        over_http1! { pipeline = "pipeline", Http, $($test),* }
        over_http1! { threads = "threads", Http, $($test),* }
        over_http1! { symped = "symped", Http, $($test),* }
        over_http1! { https_auto = "auto", Https, $($test),* }
        over_http1! { https_pipeline = "pipeline", Https, $($test),* }
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

/// The same for functions of requests and responses: over HTTP/2, too.
macro_rules! over_each_protocol {
    ($($test:ident),* $(,)?) => {
        over_http1! { $($test),* }
        over_http1! { h2c_auto = "auto", H2c, $($test),* }
        over_http1! { h2c_pipeline = "pipeline", H2c, $($test),* }
        over_http1! { h2_auto = "auto", H2, $($test),* }
        over_http1! { h2_pipeline = "pipeline", H2, $($test),* }
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
