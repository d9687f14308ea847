//! Any bytes as a message of a worker to its handoff agent.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| baton_fuzz::cluster::local(input));
