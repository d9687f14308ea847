//! Any bytes as what a peer returns.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::pool::lent(input));
