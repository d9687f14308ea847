//! Any value of Cache-Control.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::segment::cache_control(input));
