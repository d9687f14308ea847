//! Any bytes as a message of another server.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::documents::words(input));
