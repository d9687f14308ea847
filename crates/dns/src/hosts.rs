//! The file `/etc/hosts` (hosts(5)): an address and its names in a line.

use std::net::IpAddr;

/// The addresses of a host in the text of the file, those of IPv4 first.
pub(crate) fn find(text: &str, host: &str) -> Vec<IpAddr> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let mut found: Vec<IpAddr> = lines
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let address = words.next()?.parse().ok()?;
            words.any(|name| name.eq_ignore_ascii_case(host)).then_some(address)
        })
        .collect();
    found.sort_by_key(IpAddr::is_ipv6);
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_line_counts() {
        let text = "127.0.0.1\tlocalhost\n::1 localhost ip6-localhost # local\n\n# 192.0.2.9 origin\n\
                    192.0.2.1 Origin.test origin\nnonsense origin\n192.0.2.2 origin\n192.0.2.1 origin\n";
        let found = |host| find(text, host).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(found("LOCALHOST"), "127.0.0.1 ::1");
        assert_eq!(found("origin.test"), "192.0.2.1");
        assert_eq!(found("origin"), "192.0.2.1 192.0.2.2 192.0.2.1");
        assert_eq!(found("local"), "");
        assert_eq!(found("192.0.2.1"), "");
    }
}
