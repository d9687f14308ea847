//! Any bytes as the header of a load balancer's connection.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::http::proxy_header(input));
