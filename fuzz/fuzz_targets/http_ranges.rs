//! Any bytes as a Range field.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::http::ranges(input));
