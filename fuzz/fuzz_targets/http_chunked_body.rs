//! Any bytes as a chunked body.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::http::chunked_body(input));
