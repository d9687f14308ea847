//! Which clients may ask, by their addresses.

use std::net::IpAddr;

use crate::address_range::AddressSet;

/// Clients that are let in. A refusal has precedence: a client in both sets stays outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Clients that may ask; `None`: all.
    pub allow: Option<AddressSet>,
    /// Clients that may not ask.
    pub deny: AddressSet,
}

impl Access {
    /// Whether the client may ask; `None`: a client of a Unix socket.
    pub fn admits(&self, address: Option<IpAddr>) -> bool {
        !self.deny.contains(address) && self.allow.as_ref().is_none_or(|allow| allow.contains(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[&str]) -> AddressSet {
        let ranges = ranges.iter().map(|range| range.parse().unwrap()).collect();
        AddressSet { ranges, has_local: false }
    }

    #[test]
    fn a_refusal_has_precedence() {
        let access = Access { allow: Some(set(&["10.0.0.0/8", "::1"])), deny: set(&["10.9.0.0/16"]) };
        let admits = |address: &str| access.admits(Some(address.parse().unwrap()));
        assert!(admits("10.1.2.3") && admits("::1") && admits("::ffff:10.1.2.3"));
        assert!(!admits("10.9.2.3") && !admits("::ffff:10.9.2.3") && !admits("192.0.2.1") && !admits("::2"));
        assert!(!access.admits(None), "no range holds a Unix socket");
        let open = Access { allow: None, deny: set(&["0.0.0.0/0"]) };
        assert!(open.admits(None) && open.admits(Some("::1".parse().unwrap())));
        assert!(!open.admits(Some("127.0.0.1".parse().unwrap())));
    }
}
