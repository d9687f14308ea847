//! Any bytes in place of a connection of TLS that another process has packed.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::tls_moved::moved(input));
