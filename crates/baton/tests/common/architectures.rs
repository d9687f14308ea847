//! One test under every architecture of [`baton_engine::ArchitectureName::ALL`].

/// Makes tests of functions: one for each architecture, in a module of its name. The suite's root has a function
/// `under` that runs a test under an architecture; tests after `by name:` get the architecture's name.
macro_rules! under_every_architecture {
    (by name: $($test:ident),+ $(,)?) => {
        baton_engine::for_each_architecture! { crate::architectures::under_each! [by name: $($test)+] }
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
    ($module:ident $word:literal [$($test:ident)+]) => {
        mod $module {
            $(#[test]
            fn $test() {
                crate::under($word, super::$test);
            })+
        }
    };
}

pub(crate) use {under_architecture, under_each, under_every_architecture};
