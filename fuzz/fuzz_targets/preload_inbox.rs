//! Any bytes from a server, for the preload library.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::preload::inbox(input));
