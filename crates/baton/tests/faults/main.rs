//! Faults caused on purpose: clients, files, disks, descriptors and processes fail in every phase.
//!
//! Each test starts its own server, breaks something, and checks from outside: bytes on the wire, metrics, log,
//! descriptors of the processes. No test asserts a duration; each waits for its events.

#[path = "../common/architectures.rs"]
mod architectures;
#[path = "../common/mod.rs"]
mod common;

/// Makes tests of functions that take an architecture, for those in which a fault can have different effects: loops with
/// helpers, stages, a stack per client, and, by turns, one loop alone or several processes.
macro_rules! under_each_architecture {
    ($($test:ident),* $(,)?) => {
        under_each_architecture! { auto = "auto", $($test),* }
        under_each_architecture! { pipeline = "pipeline", $($test),* }
        under_each_architecture! { threads = "threads", $($test),* }
        mod another {
            $(
                #[test]
                fn $test() {
                    let name = concat!(module_path!(), "::", stringify!($test));
                    crate::common::matrix::one_of(name, &["sped", "symped"], super::$test);
                }
            )*
        }
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
        over_http1! { in_clear: $($test),* }
        over_http1! { https_auto = "auto", Https, $($test),* }
        over_http1! { https_pipeline = "pipeline", Https, $($test),* }
    };
    (in_clear: $($test:ident),*) => {
        over_http1! { auto = "auto", Http, $($test),* }
        over_http1! { pipeline = "pipeline", Http, $($test),* }
        over_http1! { threads = "threads", Http, $($test),* }
        one_of! { another = ["sped", "symped"], $($test),*; |architecture| (architecture, Protocol::Http) }
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
        over_http1! { in_clear: $($test),* }
        over_http1! { https_auto = "auto", Https, $($test),* }
        over_http1! { h2c_auto = "auto", H2c, $($test),* }
        over_http1! { h2_auto = "auto", H2, $($test),* }
        one_of! { another_protocol = OTHER_PROTOCOLS, $($test),*; |protocol| ("pipeline", protocol) }
    };
}

/// Makes tests of the same functions, each with one of several variants.
macro_rules! one_of {
    ($module:ident = $variants:expr, $($test:ident),*; |$variant:ident| ($architecture:expr, $protocol:expr)) => {
        mod $module {
            #[allow(unused_imports, reason = "some variants name them")]
            use crate::common::{matrix::{OTHER_PROTOCOLS, one_of}, protocol::Protocol};
            $(
                #[test]
                fn $test() {
                    let name = concat!(module_path!(), "::", stringify!($test));
                    one_of(name, &$variants, |$variant| super::$test($architecture, $protocol));
                }
            )*
        }
    };
}

mod bounds;
mod crowd;
mod disk;
mod files;
mod gone;
mod log;
mod peer;
mod site;
mod slow;
mod slow_disk;
mod still;
mod storm;
mod waiting;
mod workers;

use common::watched;
