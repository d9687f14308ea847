//! Answers of DNS servers.

use std::net::IpAddr;

use baton_dns::message::{DnsAnswer, Family, question, read_answer};

const HOST: &str = "origin.test";

/// Any bytes as an answer: addresses are few, and of the kind that was asked for; a question is none.
pub fn answer(input: &[u8]) {
    let id = input.first_chunk().map_or(0, |id| u16::from_be_bytes(*id));
    for family in [Family::V4, Family::V6] {
        if let DnsAnswer::Found { addresses, .. } = read_answer(input, id, HOST, family) {
            assert!((1..=64).contains(&addresses.len()));
            assert!(addresses.iter().all(|address| IpAddr::is_ipv4(address) == (family == Family::V4)));
        }
        assert_eq!(read_answer(input, !id, HOST, family), DnsAnswer::Other);
        let asked = question(id, HOST, family).expect("a host may have this name");
        assert_eq!(read_answer(&asked, id, HOST, family), DnsAnswer::Other);
    }
}
