//! Any bytes as the parameters of a request, for the libraries in applications.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::responder::variables_of_params(input));
