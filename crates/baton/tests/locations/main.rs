//! Which route answers, and where requests are sent from there: exact paths, globs and regular expressions, as clients and
//! attackers ask for them.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/origin.rs"]
mod origin;

mod matching;
mod refused;
mod rewriting;
mod site;
mod trying;

use common::protocol::Protocol;
use common::server::Server;

/// Makes tests of functions, under architectures that differ most and over HTTP/1 and HTTP/2.
macro_rules! everywhere {
    ($($test:ident),+ $(,)?) => {
        crate::over! { http_auto "auto" Http [$($test)+] }
        crate::over! { http_sped "sped" Http [$($test)+] }
        crate::over! { h2c_pipeline "pipeline" H2c [$($test)+] }
        crate::over! { h2_threads "threads" H2 [$($test)+] }
    };
}

macro_rules! over {
    ($module:ident $word:literal $protocol:ident [$($test:ident)+]) => {
        mod $module {
            $(#[test]
            fn $test() {
                crate::under($word, crate::common::protocol::Protocol::$protocol, super::$test);
            })+
        }
    };
}

pub(crate) use {everywhere, over};

/// Runs a test under an architecture, with clients of a protocol.
fn under(architecture: &str, protocol: Protocol, test: fn(&Server)) {
    test(&site::server(architecture).over(protocol));
}
