//! Any bytes as an access log, plain or compressed.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::sim::access_log(input));
