//! Any bytes as the path of a request.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::http::path(input));
