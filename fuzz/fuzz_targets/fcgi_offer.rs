//! Any bytes as an offer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::fcgi::offer(input));
