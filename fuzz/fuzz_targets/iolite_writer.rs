//! Any bytes as what a writer of references sends.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::iolite::writer(input));
