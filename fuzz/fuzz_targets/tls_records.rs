//! Any records from a client whose handshake is complete.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::tls::records(input));
