//! One test under every architecture of [`baton_engine::ArchitectureName::ALL`].
//!
//! A suite's root has a function `under` that runs a test under an architecture, with clients of a protocol.

/// Makes tests of functions: one for each architecture, in a module of its name, over HTTP/1 in clear. Tests after
/// `by name:` get the architecture's name; those after `with function:` are run by it, which gets the name and the test.
macro_rules! under_every_architecture {
    (by name: $($test:ident),+ $(,)?) => {
        baton_engine::for_each_architecture! { crate::architectures::under_each! [by name: $($test)+] }
    };
    (with $run:path: $($test:ident),+ $(,)?) => {
        baton_engine::for_each_architecture! { crate::architectures::under_each! [with $run: $($test)+] }
    };
    ($($test:ident),+ $(,)?) => {
        baton_engine::for_each_architecture! { crate::architectures::under_each! [$($test)+] }
    };
}

macro_rules! under_each {
    ($tests:tt $($variant:ident $module:ident $word:literal $summary:literal;)+) => {
        $(crate::architectures::under_architecture! { $module $word $tests })+
    };
}

macro_rules! under_architecture {
    ($module:ident $word:literal [by name: $($test:ident)+]) => {
        mod $module {
            $(#[test]
            fn $test() {
                super::$test($word);
            })+
        }
    };
    ($module:ident $word:literal [with $run:path: $($test:ident)+]) => {
        mod $module {
            $(#[test]
            fn $test() {
                $run($word, super::$test);
            })+
        }
    };
    ($module:ident $word:literal [$($test:ident)+]) => {
        mod $module {
            $(#[test]
            fn $test() {
                crate::under($word, crate::common::protocol::Protocol::Http, super::$test);
            })+
        }
    };
}

pub(crate) use {under_architecture, under_each, under_every_architecture};
