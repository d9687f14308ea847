//! Any bytes as conditional fields.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::http::conditions(input));
