//! Any bytes as the answer of a DNS server.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::names::answer(input));
