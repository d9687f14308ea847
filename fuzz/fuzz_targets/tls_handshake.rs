//! Any bytes from a client that begins TLS.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::tls::handshake(input));
