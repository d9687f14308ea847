//! Any bytes as the header blocks of a connection.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::http2::request_block(input));
