//! Any bytes of an origin, as its side of a TLS handshake.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::tls::origin(input));
