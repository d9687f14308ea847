//! One test over several protocols.
//!
//! Architectures differ in who runs the steps of a session, protocols in the steps. So a test runs under every architecture
//! over HTTP/1 in clear, and over other protocols under the two architectures that differ most: in `auto`, a loop runs its
//! sessions alone; in `pipeline`, stages hand them to each other.

#[path = "over.rs"]
mod over;

/// For tests of the bytes of HTTP/1: under every architecture in clear, and over TLS.
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
        crate::protocols::over_http1!($($test),+);
        crate::protocols::over! { h2c_auto "auto" H2c [$($test)+] }
        crate::protocols::over! { h2c_pipeline "pipeline" H2c [$($test)+] }
        crate::protocols::over! { h2_auto "auto" H2 [$($test)+] }
        crate::protocols::over! { h2_pipeline "pipeline" H2 [$($test)+] }
    };
}

pub(crate) use over::over;
pub(crate) use {over_every_protocol, over_http1};
