//! Any bytes as the head of a request that goes on to an origin.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::origin::forwarded_head(input));
