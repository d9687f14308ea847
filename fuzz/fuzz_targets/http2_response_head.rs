//! Any lines as the head of a response, for HTTP/2.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::http2::response_head(input));
