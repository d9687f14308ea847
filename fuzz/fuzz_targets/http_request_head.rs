//! Any bytes as the head of a request.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::http::request_head(input));
