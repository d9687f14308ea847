//! Any file in the place of certificates, keys and revocation lists.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::tls_pem::pem(input));
