//! Any bytes as the value of X-ZeroCopy.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::fcgi::zero_copy(input));
