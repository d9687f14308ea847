//! Any bytes as the journal of a store.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::store::journal(input));
