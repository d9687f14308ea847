//! Any bytes as a message with a connection.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::passport::message(input));
