//! Any bytes as what a reader of references says.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::iolite_reader::reader(input));
