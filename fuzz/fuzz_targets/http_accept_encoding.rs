//! Any bytes as an Accept-Encoding field.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::http::accept_encoding(input));
