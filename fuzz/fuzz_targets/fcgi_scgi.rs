//! Any bytes as parameters of an SCGI request.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::fcgi::scgi(input));
