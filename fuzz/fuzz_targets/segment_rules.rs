//! Any request and response, through the rules of the cache.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::segment::rules(input));
