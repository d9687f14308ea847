//! The addresses of this host's network interfaces.

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::check;

/// An address of an interface; one with several addresses is listed as often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The interface's name.
    pub name: String,
    /// The interface's number.
    pub number: u32,
    /// The address.
    pub address: IpAddr,
    /// How many bits of it name the network that the interface is on.
    pub prefix_bits: u32,
    /// Whether it is the loopback interface.
    pub is_loopback: bool,
    /// Whether the interface is up.
    pub is_up: bool,
}

/// All addresses of the network namespace of the calling thread.
///
/// # Errors
/// `ENOMEM`, `EMFILE`.
pub fn addresses() -> io::Result<Vec<InterfaceAddress>> {
    let mut list = std::ptr::null_mut();
    // SAFETY: the call stores the head of a list, which is freed below.
    check(unsafe { libc::getifaddrs(&raw mut list) })?;
    let mut found = Vec::new();
    let mut next = list;
    // SAFETY: the pointer is null, or an entry of the list that is not yet freed.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: as the entry's own pointers.
        let pair = unsafe { (ip_of(entry.ifa_addr), ip_of(entry.ifa_netmask)) };
        let (Some(address), Some(mask)) = pair else { continue };
        // SAFETY: the name is a string with a zero at its end, part of the list.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        let prefix_bits = match mask {
            IpAddr::V4(mask) => mask.to_bits().leading_ones(),
            IpAddr::V6(mask) => mask.to_bits().leading_ones(),
        };
        found.push(InterfaceAddress {
            name: name.to_string_lossy().into_owned(),
            // SAFETY: as above.
            number: unsafe { libc::if_nametoindex(name.as_ptr()) },
            address,
            prefix_bits,
            is_loopback: entry.ifa_flags & libc::IFF_LOOPBACK as u32 != 0,
            is_up: entry.ifa_flags & libc::IFF_UP as u32 != 0,
        });
    }
    // SAFETY: the list is the one of the call above, and nothing points into it any more.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}

/// The number of the interface that has this address on its network: the one with the longest prefix. `None`: it is no
/// neighbour of this host.
///
/// # Errors
/// Those of [`addresses`].
pub fn towards(neighbour: IpAddr) -> io::Result<Option<u32>> {
    let addresses = addresses()?;
    let on_link =
        addresses.iter().filter(|here| here.is_up && !here.is_loopback && here.is_network_of(neighbour));
    Ok(on_link.max_by_key(|here| here.prefix_bits).map(|here| here.number))
}

impl InterfaceAddress {
    fn is_network_of(&self, other: IpAddr) -> bool {
        match (self.address, other) {
            (IpAddr::V4(here), IpAddr::V4(other)) => {
                (here.to_bits() ^ other.to_bits()).leading_zeros() >= self.prefix_bits && here != other
            }
            (IpAddr::V6(here), IpAddr::V6(other)) => {
                (here.to_bits() ^ other.to_bits()).leading_zeros() >= self.prefix_bits && here != other
            }
            _ => false,
        }
    }
}

/// The address in a socket address of the kernel.
///
/// # Safety
/// The pointer is null, or points to a socket address of the length of its family.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: each socket address begins with its family.
    match i32::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            // SAFETY: the family says so; it may lie unaligned.
            let v4 = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from_bits(u32::from_be(v4.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_listed() {
        let addresses = addresses().unwrap();
        let loopback = addresses.iter().find(|here| here.address == IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        assert!(loopback.is_loopback && loopback.is_up && loopback.number > 0);
        assert_eq!((loopback.name.as_str(), loopback.prefix_bits), ("lo", 8));
        assert_eq!(towards("127.0.0.2".parse().unwrap()).unwrap(), None);
    }

    #[test]
    fn networks_are_told_by_their_prefix() {
        let here = |address: &str, prefix_bits| InterfaceAddress {
            name: String::new(),
            number: 1,
            address: address.parse().unwrap(),
            prefix_bits,
            is_loopback: false,
            is_up: true,
        };
        let other = |text: &str| text.parse().unwrap();
        assert!(here("10.0.1.1", 23).is_network_of(other("10.0.0.9")));
        assert!(!here("10.0.1.1", 24).is_network_of(other("10.0.0.9")));
        assert!(!here("10.0.1.1", 32).is_network_of(other("10.0.1.1")));
        assert!(here("fd77::1", 64).is_network_of(other("fd77::2")));
        assert!(!here("fd77::1", 64).is_network_of(other("fd78::2")));
        assert!(!here("fd77::1", 0).is_network_of(other("10.0.0.9")));
    }
}
