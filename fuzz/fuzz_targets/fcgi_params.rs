//! Any bytes as name-value pairs.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::fcgi::params(input));
