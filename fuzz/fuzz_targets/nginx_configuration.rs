//! Any bytes as a configuration of nginx.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    baton_fuzz::nginx::configuration(input);
    baton_fuzz::converted::readable(input);
});
