//! Any bytes as a page.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::documents::page(input));
