//! Ranges of addresses, as `10.0.0.0/8`, and sets of them.

use std::collections::HashSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// An IPv4 address that is written as one of IPv6 (`::ffff:192.0.2.1`), as sockets for both have them, is one of IPv4.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip if ip == address.ip() => address,
        ip => SocketAddr::new(ip, address.port()),
    }
}

/// The addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressRange {
    first: IpAddr,
    prefix_len: u8,
}

impl AddressRange {
    /// Whether the address is one of them. An IPv4 address that is written as one of IPv6 counts as what it is.
    fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let differs = first.to_bits() ^ address.to_bits();
                differs.leading_zeros() >= u32::from(self.prefix_len)
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let differs = first.to_bits() ^ address.to_bits();
                differs.leading_zeros() >= u32::from(self.prefix_len)
            }
            _ => false,
        }
    }
}

impl AddressRange {
    /// Whether all addresses of the other range are in this one.
    pub fn covers(&self, other: &Self) -> bool {
        self.prefix_len <= other.prefix_len && self.contains(other.first)
    }

    /// Whether it may be a group of proxies, rather than a network in which clients are, too: 256 addresses, or 64 bits of IPv6.
    pub fn is_narrow(&self) -> bool {
        self.prefix_len >= if self.first.is_ipv4() { 24 } else { 64 }
    }
}

impl AddressRange {
    /// By family, then by addresses, a range before those that it covers.
    fn place(&self) -> (bool, u128, u8) {
        let bits = |all: u128, width: u8| {
            let rest = u32::from(width - self.prefix_len);
            all.checked_shr(rest).and_then(|kept| kept.checked_shl(rest)).unwrap_or(0)
        };
        match self.first {
            IpAddr::V4(first) => (false, bits(first.to_bits().into(), 32), self.prefix_len),
            IpAddr::V6(first) => (true, bits(first.to_bits(), 128), self.prefix_len),
        }
    }
}

/// Ranges of which none covers another, in the order of their addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OuterRanges(Vec<AddressRange>);

impl OuterRanges {
    /// The one that covers a range, which may be the range itself.
    pub fn covering(&self, range: &AddressRange) -> Option<&AddressRange> {
        let behind = self.0.partition_point(|one| one.place() <= range.place());
        self.0[..behind].last().filter(|one| one.covers(range))
    }

    /// The one in which an address is.
    pub fn of_address(&self, address: IpAddr) -> Option<&AddressRange> {
        self.covering(&AddressRange::from(address))
    }

    /// Whether a range has an address that one of them has, too.
    pub fn meets(&self, range: &AddressRange) -> bool {
        // Those that the range covers stand behind its own place, one after the other.
        let behind = self.0.partition_point(|one| one.place() < range.place());
        self.covering(range).is_some() || self.0.get(behind).is_some_and(|one| range.covers(one))
    }
}

impl FromIterator<AddressRange> for OuterRanges {
    /// The ranges that are in no other of them.
    fn from_iter<T: IntoIterator<Item = AddressRange>>(ranges: T) -> Self {
        let mut sorted: Vec<_> = ranges.into_iter().collect();
        sorted.sort_by_key(AddressRange::place);
        // Ranges are in each other or apart, so the one before is enough.
        sorted.dedup_by(|one, before| before.covers(one));
        Self(sorted)
    }
}

/// For each range, another one in the list that holds it already: of two that are the same, the first holds the second.
pub fn holders(ranges: &[AddressRange]) -> Vec<Option<AddressRange>> {
    let outer = OuterRanges::from_iter(ranges.iter().copied());
    let mut known = HashSet::new();
    let mut holder = |range: &AddressRange| {
        let by = *outer.covering(range)?;
        let is_first = range.covers(&by) && known.insert(by);
        (!is_first).then_some(by)
    };
    ranges.iter().map(&mut holder).collect()
}

/// Clients by their addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressSet {
    /// Ranges that belong to it.
    pub ranges: OuterRanges,
    /// Whether clients of Unix sockets belong to it.
    pub has_local: bool,
}

impl AddressSet {
    /// Whether the client belongs to it; `None`: one of a Unix socket.
    pub fn contains(&self, address: Option<IpAddr>) -> bool {
        match address {
            Some(address) => self.ranges.of_address(address).is_some(),
            None => self.has_local,
        }
    }
}

impl From<IpAddr> for AddressRange {
    /// One address. One of IPv4 that is written as one of IPv6 counts as what it is.
    fn from(address: IpAddr) -> Self {
        let first = address.to_canonical();
        Self { first, prefix_len: if first.is_ipv4() { 32 } else { 128 } }
    }
}

impl FromStr for AddressRange {
    type Err = &'static str;

    /// Reads an address, perhaps with `/` and the number of bits that count.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (first, bits) = text.split_once('/').map_or((text, None), |(first, bits)| (first, Some(bits)));
        let first: IpAddr = first.parse().map_err(|_| "it is not an IP address")?;
        let bits_max = if first.is_ipv4() { 32 } else { 128 };
        let prefix_len = bits.map_or(Ok(bits_max), str::parse).ok().filter(|bits| *bits <= bits_max);
        let prefix_len =
            prefix_len.ok_or("behind `/` goes the number of bits that count: 0 to 32, or 128")?;
        Ok(Self { first: first.to_canonical(), prefix_len })
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the shortcut by order says what comparing with each range says.
    #[test]
    fn outer_ranges_cover_what_one_of_all_covers() {
        let texts = [
            "10.0.0.0/8",
            "10.1.0.0/16",
            "10.1.2.3",
            "11.0.0.0/8",
            "0.0.0.0/1",
            "::1",
            "::/0",
            "2001:db8::/32",
            "10.1.2.9/24",
            "10.1.2.0/24",
        ];
        let all = texts.map(|text| text.parse::<AddressRange>().unwrap());
        for mask in 0_u32..1 << all.len() {
            let some: Vec<_> =
                all.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1).map(|(_, one)| *one).collect();
            let outer = OuterRanges::from_iter(some.iter().copied());
            for range in &all {
                let expected = some.iter().any(|one| one.covers(range));
                assert_eq!(outer.covering(range).is_some(), expected, "{range} in {some:?}");
                let meets = expected || some.iter().any(|one| range.covers(one));
                assert_eq!(outer.meets(range), meets, "{range} and {some:?}");
            }
            for (at, (range, holder)) in some.iter().zip(holders(&some)).enumerate() {
                let holds = |(other, by): (usize, &AddressRange)| {
                    other != at && by.covers(range) && (!range.covers(by) || other < at)
                };
                assert_eq!(holder.is_some(), some.iter().enumerate().any(holds), "{range} in {some:?}");
            }
        }
    }

    #[test]
    fn an_address_is_in_its_range_and_in_no_other() {
        for (range, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("192.0.2.7", "::ffff:192.0.2.7", "192.0.2.6"),
            ("2001:db8::/32", "2001:db8:1::1", "2001:db9::1"),
            ("0.0.0.0/0", "255.1.2.3", "::1"),
        ] {
            let range: AddressRange = range.parse().unwrap();
            assert!(range.contains(inside.parse().unwrap()), "{range} {inside}");
            assert!(!range.contains(outside.parse().unwrap()), "{range} {outside}");
        }
        let covers = |one: &str, other: &str| {
            one.parse::<AddressRange>().unwrap().covers(&other.parse::<AddressRange>().unwrap())
        };
        assert!(covers("10.0.0.0/8", "10.1.0.0/16") && covers("::1", "::1"));
        assert!(!covers("10.1.0.0/16", "10.0.0.0/8") && !covers("0.0.0.0/0", "::/0"));
        for wrong in ["10.0.0.0/33", "10.0.0", "::/129", "example.org", "10.0.0.0/"] {
            assert!(wrong.parse::<AddressRange>().is_err(), "{wrong}");
        }
    }
}
