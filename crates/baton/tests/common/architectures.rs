//! One test under every architecture.

/// Makes tests of functions: one for each architecture, whose name says which. The suite says what it is to run them
/// under an architecture, in a function `under` of its root.
macro_rules! under_every_architecture {
    ($($test:ident),+ $(,)?) => {
        crate::architectures::under_architecture!(auto, "auto", $($test)+);
        crate::architectures::under_architecture!(sped, "sped", $($test)+);
        crate::architectures::under_architecture!(amped, "amped", $($test)+);
        crate::architectures::under_architecture!(symped, "symped", $($test)+);
        crate::architectures::under_architecture!(shared_symped, "shared-symped", $($test)+);
        crate::architectures::under_architecture!(n_copy, "n-copy", $($test)+);
        crate::architectures::under_architecture!(pipeline, "pipeline", $($test)+);
        crate::architectures::under_architecture!(threads, "threads", $($test)+);
        crate::architectures::under_architecture!(threads_cache, "threads-cache", $($test)+);
    };
}

macro_rules! under_architecture {
    ($module:ident, $word:literal, $($test:ident)+) => {
        mod $module {
            $(#[test]
            fn $test() {
                crate::under($word, super::$test);
            })+
        }
    };
}

pub(crate) use {under_architecture, under_every_architecture};
