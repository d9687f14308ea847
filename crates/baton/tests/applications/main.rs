//! Applications as clients see them: every transport under every architecture.
//!
//! A test is a function of a server and the path of a transport. Responses must not depend on either.

#[path = "../common/architectures.rs"]
mod architectures;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/protocols.rs"]
mod protocols;

/// Makes tests of functions of an architecture's name and a protocol, which start servers of their own.
macro_rules! by_name {
    ($module:ident $word:literal $protocol:ident [$($test:ident)+]) => {
        mod $module {
            $(#[test]
            fn $test() {
                super::$test($word, crate::common::protocol::Protocol::$protocol);
            })+
        }
    };
}

mod answers;
mod browsers;
mod cut;
mod descriptors;
mod failures;
mod files;
mod holders;
mod hostile;
mod lent;
mod named_hosts;
mod passed_sockets;
mod program;
mod requests;
mod resets;
mod scgi;
mod site;
mod tags;
mod temporary;
mod trust;
mod uploads;

/// Runs a test under an architecture, with clients that speak a protocol, by every transport.
fn under(architecture: &str, protocol: common::protocol::Protocol, test: fn(&common::server::Server, &str)) {
    for path in site::PATHS.iter() {
        eprintln!("below {path}:");
        test(&site::server(architecture).over(protocol), path);
    }
}
