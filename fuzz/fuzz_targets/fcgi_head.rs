//! Any bytes as the output of a CGI program.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::fcgi::head(input));
