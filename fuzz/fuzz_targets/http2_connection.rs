//! Any bytes behind the preface of HTTP/2.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::http2_connection::connection(input));
