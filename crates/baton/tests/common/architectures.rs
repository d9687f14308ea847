//! One test under several architectures: those of [`crate::common::matrix::USUAL`], and `another`.
//!
//! A suite's root has a function `under` that runs a test under an architecture, with clients of a protocol.

/// Makes tests of functions: one for each usual architecture, in a module of its name, and one in the module `another`, over
/// HTTP/1 in clear. Tests after `by name:` get the architecture's name; those after `with function:` are run by it, which
/// gets the name and the test.
macro_rules! under_every_architecture {
    (by name: $($test:ident),+ $(,)?) => {
        crate::architectures::under_usual! { [by name: $($test)+] }
    };
    (with $run:path: $($test:ident),+ $(,)?) => {
        crate::architectures::under_usual! { [with $run: $($test)+] }
    };
    ($($test:ident),+ $(,)?) => {
        crate::architectures::under_usual! { [$($test)+] }
    };
}

/// The same for tests by name that take long: under `auto`, and under another.
#[allow(unused_macros, reason = "few suites have such tests")]
macro_rules! under_two_architectures {
    (by name: $($test:ident),+ $(,)?) => {
        crate::architectures::under_architecture! { auto "auto" [by name: $($test)+] }
        crate::architectures::under_another! { DEFAULT [by name: $($test)+] }
    };
}

macro_rules! under_usual {
    ($tests:tt) => {
        crate::common::matrix::usual_architectures! { crate::architectures::under_each! $tests }
        crate::architectures::under_another! { USUAL $tests }
    };
}

macro_rules! under_each {
    ($tests:tt $($module:ident $word:literal;)+) => {
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

/// Those that are not of `known`, a list of [`crate::common::matrix`].
macro_rules! under_another {
    ($known:ident [by name: $($test:ident)+]) => {
        crate::architectures::under_another! { $known $($test => super::$test;)+ }
    };
    ($known:ident [with $run:path: $($test:ident)+]) => {
        crate::architectures::under_another! {
            $known $($test => |architecture| $run(architecture, super::$test);)+
        }
    };
    ($known:ident [$($test:ident)+]) => {
        crate::architectures::under_another! {
            $known $($test => |architecture| {
                crate::under(architecture, crate::common::protocol::Protocol::Http, super::$test);
            };)+
        }
    };
    ($known:ident $($test:ident => $run:expr;)+) => {
        mod another {
            $(#[test]
            fn $test() {
                use crate::common::matrix;
                let name = concat!(module_path!(), "::", stringify!($test));
                matrix::another(name, &matrix::$known, $run);
            })+
        }
    };
}

#[allow(unused_imports, reason = "each suite uses a part of it")]
pub(crate) use {
    under_another, under_architecture, under_each, under_every_architecture, under_two_architectures,
    under_usual,
};
