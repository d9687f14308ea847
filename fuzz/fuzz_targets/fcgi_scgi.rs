//! Any bytes as parameters that are to be said in SCGI.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::fcgi::scgi(input));
