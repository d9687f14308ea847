//! What a configuration says of requests beside their paths: variables in fields, conditions, error pages, and requests that
//! are left unanswered.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/origin.rs"]
mod origin;
#[path = "../common/over.rs"]
mod over;

mod choosing;
mod errors;
mod refusing;
mod site;
mod unanswered;
mod variables;

use common::protocol::Protocol;
use common::server::Server;

/// Makes tests of functions, under architectures that differ most and over HTTP/1 and HTTP/2.
macro_rules! everywhere {
    ($($test:ident),+ $(,)?) => {
        crate::over::over! { http_auto "auto" Http [$($test)+] }
        crate::over::over! { https_auto "auto" Https [$($test)+] }
        crate::over::over! { h2c_pipeline "pipeline" H2c [$($test)+] }
        crate::over::over! { h2_threads "threads" H2 [$($test)+] }
    };
}

pub(crate) use everywhere;

/// Runs a test under an architecture, with clients of a protocol.
fn under(architecture: &str, protocol: Protocol, test: fn(&Server)) {
    test(&site::server(architecture).over(protocol));
}
