//! One test over several protocols.
//!
//! Architectures differ in who runs the steps of a session, protocols in the steps. So a test runs under the architectures
//! over HTTP/1 in clear, and over other protocols under the two that differ most: in `auto`, a loop runs its sessions alone;
//! in `pipeline`, stages hand them to each other. There one of the other protocols is enough, which the test's name chooses.

#[path = "over.rs"]
mod over;

/// For tests of the bytes of HTTP/1: under several architectures in clear, and over TLS.
#[allow(unused_macros, reason = "few suites have such tests")]
macro_rules! over_http1 {
    ($($test:ident),+ $(,)?) => {
        crate::architectures::under_every_architecture!($($test),+);
        crate::protocols::over! { https_auto "auto" Https [$($test)+] }
        crate::protocols::over! { https_pipeline "pipeline" Https [$($test)+] }
    };
}

/// For tests of requests and responses: over HTTP/2 as well.
macro_rules! over_every_protocol {
    ($($test:ident),+ $(,)?) => {
        crate::architectures::under_every_architecture!($($test),+);
        crate::protocols::over! { https_auto "auto" Https [$($test)+] }
        crate::protocols::over! { h2c_auto "auto" H2c [$($test)+] }
        crate::protocols::over! { h2_auto "auto" H2 [$($test)+] }
        mod another_protocol {
            $(#[test]
            fn $test() {
                use crate::common::matrix;
                let name = concat!(module_path!(), "::", stringify!($test));
                matrix::one_of(name, &matrix::OTHER_PROTOCOLS, |protocol| {
                    crate::under("pipeline", protocol, super::$test);
                });
            })+
        }
    };
}

pub(crate) use over::over;
#[allow(unused_imports, reason = "as above")]
pub(crate) use {over_every_protocol, over_http1};
