//! Any bytes as a stream of another handoff agent.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::cluster::peer(input));
