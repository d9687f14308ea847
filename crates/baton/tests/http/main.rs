//! HTTP as clients see it: real requests to real servers, every test under every architecture.
//!
//! A test is a function of a server; [`under_every_architecture`] makes a test of it for each architecture, whose name
//! says which. One server per architecture serves the museum, a site of many corners, to all of them.

#[path = "../common/mod.rs"]
mod common;

mod museum;

mod browser;
mod conditions;
mod folders;
mod hosts;
mod libraries;
mod limits;
mod methods;
mod paths;
mod persistence;
mod pipelining;
mod ranges;
mod refusals;
mod representations;
mod routes;
mod sameness;

/// Makes tests of functions that take a server: one for each architecture.
macro_rules! under_every_architecture {
    ($($test:ident),+ $(,)?) => {
        crate::under_architecture!(auto, "auto", $($test)+);
        crate::under_architecture!(sped, "sped", $($test)+);
        crate::under_architecture!(amped, "amped", $($test)+);
        crate::under_architecture!(symped, "symped", $($test)+);
        crate::under_architecture!(shared_symped, "shared-symped", $($test)+);
        crate::under_architecture!(n_copy, "n-copy", $($test)+);
        crate::under_architecture!(pipeline, "pipeline", $($test)+);
        crate::under_architecture!(threads, "threads", $($test)+);
        crate::under_architecture!(threads_cache, "threads-cache", $($test)+);
    };
}

macro_rules! under_architecture {
    ($module:ident, $word:literal, $($test:ident)+) => {
        mod $module {
            $(#[test]
            fn $test() {
                super::$test(crate::museum::server($word));
            })+
        }
    };
}

pub(crate) use {under_architecture, under_every_architecture};
