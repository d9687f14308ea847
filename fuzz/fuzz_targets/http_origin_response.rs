//! Any bytes on a connection to an origin.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::origin::response(input));
