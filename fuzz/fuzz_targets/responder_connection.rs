//! Any bytes from a server, for the libraries in applications.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::responder::connection(input));
