//! Applications behind the server, as clients see them: every transport under every architecture.
//!
//! A test is a function of a server and the path of a transport. What a client gets must not depend on either.

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod failures;
mod files;
mod program;
mod requests;
mod site;

/// Makes tests of functions that take a server and a path: one for each architecture.
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
                for path in crate::site::PATHS.iter() {
                    eprintln!("below {path}:");
                    super::$test(crate::site::server($word), path);
                }
            })+
        }
    };
}

pub(crate) use {under_architecture, under_every_architecture};
