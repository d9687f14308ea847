//! Tests of functions of a server, under one architecture and with clients of one protocol.

/// Makes a module of tests, which `crate::under` runs.
macro_rules! over {
    ($module:ident $word:literal $protocol:ident [$($test:ident)+]) => {
        mod $module {
            $(#[test]
            fn $test() {
                crate::under($word, crate::common::protocol::Protocol::$protocol, super::$test);
            })+
        }
    };
}

pub(crate) use over;
