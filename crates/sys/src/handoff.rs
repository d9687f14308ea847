//! What this host lacks for connections to be handed over to it, or from it: asked before the first one is.
//!
//! Each probe does what a hand-off would do, without a client: a switch that is there may still be forbidden by a container.

use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};

use rustix::net::{AddressFamily, SocketType};

use crate::flow_table::FlowTable;
use crate::interfaces::{InterfaceAddress, addresses, towards};
use crate::tcp_repair;

/// Something that is missing. Its text says what; [`Lack::cause`] and [`Lack::remedy`] go on.
#[derive(Debug)]
pub enum Lack {
    /// This process may not read and make TCP connections.
    RepairRight(io::Error),
    /// The kernel cannot do so.
    Repair(io::Error),
    /// This process may not bind the VIP's port.
    LowPort(u16),
    /// This process may not load the program that forwards packets.
    ForwardRight(io::Error),
    /// The kernel cannot run that program where packets arrive.
    Forward(io::Error),
    /// A node that is on none of this host's networks.
    NotNeighbour(IpAddr),
    /// The VIP is no address of this host.
    NoVip(IpAddr),
    /// A node answers for the VIP on this interface, as if it were the front-end.
    VipAnnounced(IpAddr, String),
    /// The front-end's VIP is on the loopback interface only, so that nothing leads to it.
    VipSilent(IpAddr),
    /// The interfaces' addresses could not be read.
    Addresses(io::Error),
}

/// What a front-end with this VIP and port lacks to hand connections over to nodes with these addresses.
pub fn front_end_lacks(vip: IpAddr, port: u16, nodes: &[IpAddr]) -> Vec<Lack> {
    let mut lacks = connection_lacks(port);
    lacks.extend(forward_lack());
    let lacks_of_vip = addresses().map(|here| {
        let vips = here.iter().filter(|entry| entry.address == vip).collect::<Vec<_>>();
        match vips.iter().all(|entry| entry.is_loopback) {
            _ if vips.is_empty() => Some(Lack::NoVip(vip)),
            true if !vip.is_loopback() => Some(Lack::VipSilent(vip)),
            _ => None,
        }
    });
    lacks.extend(lacks_of_vip.unwrap_or_else(|error| Some(Lack::Addresses(error))));
    lacks.extend(nodes.iter().filter_map(|node| match towards(*node) {
        Ok(interface) => interface.is_none().then_some(Lack::NotNeighbour(*node)),
        Err(error) => Some(Lack::Addresses(error)),
    }));
    lacks
}

/// What a node lacks to get connections of this VIP and port.
pub fn node_lacks(vip: IpAddr, port: u16) -> Vec<Lack> {
    let mut lacks = connection_lacks(port);
    match addresses() {
        Ok(here) => lacks.extend(vip_lack_of_node(&here, vip)),
        Err(error) => lacks.push(Lack::Addresses(error)),
    }
    lacks
}

fn connection_lacks(port: u16) -> Vec<Lack> {
    let mut lacks = Vec::new();
    match tcp_repair::self_test() {
        Err(error) if is_forbidden(&error) => lacks.push(Lack::RepairRight(error)),
        Err(error) => lacks.push(Lack::Repair(error)),
        Ok(()) => {}
    }
    if !may_bind(port) {
        lacks.push(Lack::LowPort(port));
    }
    lacks
}

/// An empty table at the loopback interface, which passes all packets, for a moment.
fn forward_lack() -> Option<Lack> {
    match FlowTable::create(1).and_then(|mut table| table.attach(LOOPBACK)) {
        Err(error) if is_forbidden(&error) => Some(Lack::ForwardRight(error)),
        Err(error) => Some(Lack::Forward(error)),
        Ok(()) => None,
    }
}

fn vip_lack_of_node(here: &[InterfaceAddress], vip: IpAddr) -> Option<Lack> {
    let mut with_vip = here.iter().filter(|entry| entry.address == vip).peekable();
    if with_vip.peek().is_none() {
        return Some(Lack::NoVip(vip));
    }
    if let Some(announced) = with_vip.find(|entry| !entry.is_loopback) {
        return Some(Lack::VipAnnounced(vip, announced.name.clone()));
    }
    // An IPv6 address is announced only where it is.
    let others = here.iter().filter(|entry| vip.is_ipv4() && entry.address.is_ipv4() && !entry.is_loopback);
    let mut answering = others.filter(|entry| !ignores_arp(&entry.name));
    answering.next().map(|entry| Lack::VipAnnounced(vip, entry.name.clone()))
}

/// Whether an interface answers ARP requests for its own addresses only. The kernel takes the larger of both settings.
fn ignores_arp(interface: &str) -> bool {
    let value = |name: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{name}/arp_ignore")).ok();
    ["all", interface].iter().any(|name| value(name).is_some_and(|text| text.trim() != "0"))
}

/// Tried on addresses that no server takes, or that are taken only by one that may bind the port.
fn may_bind(port: u16) -> bool {
    let bound = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)
        .and_then(|socket| rustix::net::bind(&socket, &SocketAddrV4::new(UNUSED, port)));
    bound != Err(rustix::io::Errno::ACCESS)
}

fn is_forbidden(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

impl Lack {
    /// Why, most likely.
    pub fn cause(&self) -> &'static str {
        match self {
            Self::RepairRight(_) => {
                "the process lacks the capability CAP_NET_ADMIN, or a container forbids the call"
            }
            Self::Repair(_) => "the kernel was built without CONFIG_CHECKPOINT_RESTORE",
            Self::LowPort(_) => {
                "ports below net.ipv4.ip_unprivileged_port_start need the capability CAP_NET_BIND_SERVICE"
            }
            Self::ForwardRight(_) => {
                "the process lacks the capability CAP_BPF or CAP_NET_ADMIN, or a container or kernel lockdown forbids bpf(2)"
            }
            Self::Forward(_) => {
                "programs at the ingress of interfaces (TCX) need Linux 6.6 or newer, with CONFIG_BPF_SYSCALL"
            }
            Self::NotNeighbour(_) => {
                "packets are sent on to a node by its address on a link, not through routers"
            }
            Self::NoVip(_) => {
                "nodes answer clients with the front-end's address, which has to be an address of theirs, too"
            }
            Self::VipAnnounced(..) => {
                "clients' packets would go to whichever host answers first, and some would never reach the front-end"
            }
            Self::VipSilent(_) => "other hosts find an address only on an interface that leads to them",
            Self::Addresses(_) => "the process has no netlink sockets, or no descriptors left",
        }
    }

    /// What to do.
    pub fn remedy(&self) -> String {
        match self {
            Self::RepairRight(_) | Self::ForwardRight(_) | Self::LowPort(_) => {
                "start Baton as root, or give it CAP_NET_ADMIN, CAP_BPF and CAP_NET_BIND_SERVICE (AmbientCapabilities= in a \
                 systemd unit, --cap-add for a container)"
                    .to_owned()
            }
            Self::Repair(_) | Self::Forward(_) => {
                "use such a kernel, or let requests be relayed: way = \"relay\"".to_owned()
            }
            Self::NotNeighbour(node) => {
                format!("give {node} and this host addresses on one network, or let requests be relayed to it: way = \"relay\"")
            }
            Self::NoVip(vip @ IpAddr::V4(_)) => format!("on a node: ip addr add {vip}/32 dev lo"),
            Self::NoVip(vip @ IpAddr::V6(_)) => format!("on a node: ip addr add {vip}/128 dev lo nodad"),
            Self::VipAnnounced(vip, _) => format!(
                "put {vip} on lo alone, and set net.ipv4.conf.all.arp_ignore=1 and net.ipv4.conf.all.arp_announce=2"
            ),
            Self::VipSilent(vip) => format!("on the front-end: ip addr add {vip} on the interface that clients come by"),
            Self::Addresses(_) => "see the error".to_owned(),
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RepairRight(error) => write!(f, "TCP_REPAIR: {error}: connections cannot be read and made"),
            Self::Repair(error) => write!(f, "TCP_REPAIR: {error}: the kernel cannot move connections"),
            Self::LowPort(port) => write!(f, "port {port} may not be bound: no connection to it can be made"),
            Self::ForwardRight(error) => write!(f, "bpf: {error}: packets cannot be sent on to nodes"),
            Self::Forward(error) => write!(f, "bpf: {error}: the kernel cannot send packets on to nodes"),
            Self::NotNeighbour(node) => write!(f, "the node {node} is on no network of this host"),
            Self::NoVip(vip) => write!(f, "{vip} is no address of this host"),
            Self::VipAnnounced(vip, interface) => write!(f, "this node answers for {vip} on {interface}"),
            Self::VipSilent(vip) => write!(f, "{vip} is on the loopback interface only"),
            Self::Addresses(error) => write!(f, "the addresses of this host: {error}"),
        }
    }
}

impl std::error::Error for Lack {}

/// The loopback interface has this number in each network namespace.
const LOOPBACK: u32 = 1;
/// A loopback address that no server has a reason to listen on.
const UNUSED: Ipv4Addr = Ipv4Addr::new(127, 77, 0, 54);

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use super::*;

    /// Runs the work on a thread that has only these capabilities. `None`: this process has fewer.
    fn with<T: Send + 'static>(set: CapabilitySet, work: fn() -> T) -> Option<T> {
        let thread = std::thread::spawn(move || {
            let mut sets = capabilities(None).unwrap();
            if !sets.effective.contains(set | ALL_NEEDED) {
                eprintln!("LEFT OUT of the tests of handoff: needs root");
                return None;
            }
            (sets.effective, sets.permitted) = (set, set);
            set_capabilities(None, sets).unwrap();
            Some(work())
        });
        thread.join().unwrap()
    }

    const ALL_NEEDED: CapabilitySet =
        CapabilitySet::NET_ADMIN.union(CapabilitySet::BPF).union(CapabilitySet::NET_BIND_SERVICE);

    const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// Goal: three capabilities are enough for all that a handoff agent does, and each that is missing is named.
    #[test]
    fn missing_rights_are_named() {
        let lacks = || front_end_lacks(LOCAL, 81, &[]);
        let Some(none) = with(ALL_NEEDED, lacks) else { return };
        assert!(none.is_empty(), "{none:?}");
        let mut all = with(CapabilitySet::empty(), lacks).unwrap();
        let first_free = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap();
        let may_bind = first_free.trim().parse::<u16>().unwrap() <= 81;
        assert_eq!(all.iter().any(|lack| matches!(lack, Lack::LowPort(81))), !may_bind, "{all:?}");
        all.retain(|lack| !matches!(lack, Lack::LowPort(_)));
        assert!(matches!(all[..], [Lack::RepairRight(_), Lack::ForwardRight(_)]), "{all:?}");
        assert!(all.iter().all(|lack| lack.remedy().contains("CAP_BPF")));
        let bpf = with(ALL_NEEDED.difference(CapabilitySet::BPF), lacks).unwrap();
        assert!(matches!(bpf[..], [Lack::ForwardRight(_)]), "{bpf:?}");
        let net = with(ALL_NEEDED.difference(CapabilitySet::NET_ADMIN), lacks).unwrap();
        assert!(matches!(net[..], [Lack::RepairRight(_), Lack::ForwardRight(_)]), "{net:?}");
    }

    #[test]
    fn a_vip_that_is_missing_or_answered_for_is_named() {
        let vip = "10.77.0.100".parse().unwrap();
        let entry = |name: &str, address| InterfaceAddress {
            name: name.to_owned(),
            number: 1,
            address,
            prefix_bits: 32,
            is_loopback: name == "lo",
            is_up: true,
        };
        let lack = |here: &[InterfaceAddress]| vip_lack_of_node(here, vip);
        assert!(matches!(lack(&[entry("lo", LOCAL)]), Some(Lack::NoVip(_))));
        assert!(lack(&[entry("lo", vip)]).is_none());
        let both = [entry("lo", vip), entry("eth7", vip)];
        assert!(matches!(lack(&both), Some(Lack::VipAnnounced(_, name)) if name == "eth7"));
        assert!(matches!(
            &front_end_lacks(vip, 8080, &[LOCAL])[..],
            [.., Lack::NoVip(_), Lack::NotNeighbour(_)]
        ));
        let v6 = Ipv6Addr::LOCALHOST.into();
        assert!(
            vip_lack_of_node(&[entry("lo", v6), entry("eth7", "fd77::1".parse().unwrap())], v6).is_none()
        );
    }
}
