//! Any bytes in place of a connection of HTTP/2 that another process has packed.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::http2_moved::moved(input));
