//! What suites of the agents share.

use baton_passport::{Address, Passport};

/// A connection of this client that has asked for `/`.
pub(crate) fn passport(client: &str) -> Passport {
    Passport {
        listener: Address::Tcp("10.0.0.1:80".parse().unwrap()),
        peer: Some(client.parse().unwrap()),
        requests: 0,
        written: 0,
        was_passed: false,
        flow: None,
        stay: false,
        unread: b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        left_ms: None,
        begins_with_tls: false,
        parts: Vec::new(),
    }
}
