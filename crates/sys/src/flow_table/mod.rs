//! Connections that live on another host, by their addresses: a program in the kernel holds or forwards their packets.
//!
//! A front-end attaches the table to each interface at which clients' packets arrive (TCX, Linux 6.6). What is not in the
//! table goes to its own stack as ever. Why so: `docs/decisions/0053-who-moves-a-connection.md`.
//!
//! ```text
//!   flows: hash, addresses → slot        next hops: interface, address
//!   slots: array that this process maps: next hop or 0 (held) | packets | bytes | last | what was seen | own packets | over
//! ```
//!
//! Turning a flow from held to forward, and looking at it, is a store or a load in the mapped array: no call, and no
//! moment at which a packet misses the flow. The programs are detached when the table is dropped, or its process ends.

mod program;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::bpf::{Hook, Map, MapKind, MappedNumbers, Program};
use program::{
    KEY_BYTES, Maps, NEXT_HOP_BYTES, SEEN_FIN, SEEN_RST, SEEN_SYN, SLOT_BYTES, SLOT_LAST_NS, SLOT_NEXT_HOP,
    SLOT_NUMBERS, SLOT_OVER, SLOT_OWN_PACKETS, SLOT_PACKETS, SLOT_SEEN, arriving, leaving,
};

/// The addresses of a connection, as packets of the client have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Where they come from.
    pub client: SocketAddr,
    /// Where they go to.
    pub vip: SocketAddr,
}

/// Where packets are sent on: a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The number of the interface on which it is.
    pub interface: u32,
    /// Its address there, which ARP or neighbour discovery resolves. A node with an IPv6 address takes both kinds of packets.
    pub address: IpAddr,
}

/// What the kernel has seen of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowReport {
    /// `None`: held.
    pub next_hop: Option<NextHop>,
    /// Packets of the client since it was added, with those that were dropped while it was held.
    pub packets: u64,
    /// Their bytes, with all headers.
    pub bytes: u64,
    /// For how long none has come.
    pub idle: Duration,
    /// The client has closed its half.
    pub fin: bool,
    /// The client has reset the connection.
    pub rst: bool,
    /// Packets of this host's own stack that were not sent: one of the client came to it as the connection left.
    pub own_packets: u64,
    /// The client uses its addresses for another connection, which went to the own stack. Packets pass this flow by: all
    /// that is left to do is to remove it.
    pub replaced: bool,
}

/// The table, and the programs that read it.
#[derive(Debug)]
pub struct FlowTable {
    maps: Maps,
    slots: MappedNumbers,
    arriving: Program,
    leaving: Program,
    /// Both programs' links, by interface.
    links: HashMap<u32, [OwnedFd; 2]>,
    flows: HashMap<Flow, u32>,
    /// The longest unused first: a slot rests before it is used again.
    free: VecDeque<u32>,
    next_hops: NextHops,
}

/// Most flows of a table: 80 bytes of locked memory each, and an element of a hash while the flow is here.
pub const FLOWS_MAX: u32 = 1 << 20;

/// Most next hops of a table: nodes, and IPv4 and IPv6 of each.
pub const NEXT_HOPS_MAX: u32 = 1024;

impl FlowTable {
    /// An empty table, attached to nothing.
    ///
    /// # Errors
    /// `EPERM`: this process lacks `CAP_BPF` or `CAP_NET_ADMIN`. `EINVAL`: the kernel is older than 6.6, or `flows_max` is 0
    /// or above [`FLOWS_MAX`]. `ENOMEM`.
    pub fn create(flows_max: u32) -> io::Result<Self> {
        if flows_max == 0 || flows_max > FLOWS_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let numbers = SLOT_NUMBERS * flows_max as usize;
        let maps = Maps {
            flows: Map::create("baton_flows", MapKind::Hash, KEY_BYTES, 4, flows_max)?,
            slots: Map::create("baton_slots", MapKind::MappableArray, 4, SLOT_NUMBERS * 8, flows_max)?,
            next_hops: Map::create("baton_nodes", MapKind::Array, 4, NEXT_HOP_BYTES, NEXT_HOPS_MAX + 1)?,
        };
        let slots = MappedNumbers::map(&maps.slots, numbers)?;
        let arriving = Program::load("baton_forward", &arriving(&maps))?;
        let leaving = Program::load("baton_no_reset", &leaving(&maps))?;
        Ok(Self {
            maps,
            slots,
            arriving,
            leaving,
            links: HashMap::new(),
            flows: HashMap::new(),
            free: (0..flows_max).collect(),
            next_hops: NextHops::default(),
        })
    }

    /// Shows the programs each packet at an interface of this process's network namespace, by its number. Again for the same
    /// number changes nothing.
    ///
    /// # Errors
    /// `ENODEV`: there is no such interface. `EINVAL`: the kernel is older than 6.6. `EPERM`: this process lacks
    /// `CAP_NET_ADMIN`.
    pub fn attach(&mut self, interface: u32) -> io::Result<()> {
        if !self.links.contains_key(&interface) {
            // In this order no moment has forwarding without its guard.
            let guard = self.leaving.attach(interface, Hook::Egress)?;
            let link = self.arriving.attach(interface, Hook::Ingress)?;
            self.links.insert(interface, [guard, link]);
        }
        Ok(())
    }

    /// Drops the packets of a flow from now on, which is added if it is not here. Nor does this host send any for it: remove
    /// it before its connection goes on here.
    ///
    /// # Errors
    /// `StorageFull`: the table is full. `InvalidInput`: the addresses are of two families.
    pub fn hold(&mut self, flow: Flow) -> io::Result<()> {
        match self.flows.get(&flow).copied() {
            Some(slot) if self.number(slot, SLOT_SEEN) & SEEN_SYN == 0 => {
                self.point(slot, 0);
                Ok(())
            }
            Some(_) => {
                self.remove(flow);
                self.add(flow)
            }
            None => self.add(flow),
        }
    }

    /// Sends the packets of a flow, which is here, to a node from now on.
    ///
    /// # Errors
    /// `NotFound`: the flow is not here, or was replaced. `InvalidInput`: packets of IPv6 cannot go to an IPv4 address.
    /// `StorageFull`: there are [`NEXT_HOPS_MAX`] other next hops.
    pub fn forward(&mut self, flow: Flow, to: NextHop) -> io::Result<()> {
        let slot =
            self.flows.get(&flow).copied().filter(|slot| self.number(*slot, SLOT_SEEN) & SEEN_SYN == 0);
        let slot = slot.ok_or(io::ErrorKind::NotFound)?;
        if flow.client.ip().to_canonical().is_ipv6() && to.address.is_ipv4() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let number = self.next_hops.number_of(&self.maps.next_hops, to)?;
        self.next_hops.taken(number);
        self.point(slot, number);
        Ok(())
    }

    /// The connection of a flow is over. Its last packets are sent on as before, but the client may begin another one.
    pub fn end(&self, flow: Flow) {
        if let Some(slot) = self.flows.get(&flow) {
            self.slots[*slot as usize * SLOT_NUMBERS + SLOT_OVER].store(1, Ordering::Relaxed);
        }
    }

    /// Takes a flow out of the table: its packets go to the own stack. Whether it was here.
    pub fn remove(&mut self, flow: Flow) -> bool {
        let Some(slot) = self.flows.remove(&flow) else { return false };
        // The program has done so if the client has begun another connection.
        let _ = self.maps.flows.remove(&key(flow));
        self.point(slot, 0);
        self.free.push_back(slot);
        true
    }

    /// What the kernel has seen of a flow.
    pub fn report(&self, flow: Flow) -> Option<FlowReport> {
        self.flows.get(&flow).map(|slot| self.report_of(*slot, now_ns()))
    }

    /// All flows, in no order, with what the kernel has seen of each. Without system calls for each flow.
    pub fn reports(&self) -> impl Iterator<Item = (Flow, FlowReport)> {
        let now = now_ns();
        self.flows.iter().map(move |(flow, slot)| (*flow, self.report_of(*slot, now)))
    }

    /// How many flows are here, replaced ones included.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether no flow is here.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Adds a flow that is not here, as held.
    fn add(&mut self, flow: Flow) -> io::Result<()> {
        if flow.client.ip().to_canonical().is_ipv6() != flow.vip.ip().to_canonical().is_ipv6() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let slot = self.free.pop_front().ok_or(io::ErrorKind::StorageFull)?;
        for number in 0..SLOT_NUMBERS {
            self.slots[slot as usize * SLOT_NUMBERS + number].store(0, Ordering::Relaxed);
        }
        self.slots[slot as usize * SLOT_NUMBERS + SLOT_LAST_NS].store(now_ns(), Ordering::Relaxed);
        // The call is a barrier: the program finds the slot as it was just written.
        if let Err(error) = self.maps.flows.insert(&key(flow), &slot.to_ne_bytes()) {
            self.free.push_front(slot);
            return Err(error);
        }
        self.flows.insert(flow, slot);
        Ok(())
    }

    /// Turns a slot to a next hop, or to 0: held.
    fn point(&mut self, slot: u32, next_hop: u32) {
        // Release: the program that reads the number finds the next hop as it was written.
        let before =
            self.slots[slot as usize * SLOT_NUMBERS + SLOT_NEXT_HOP].swap(next_hop.into(), Ordering::AcqRel);
        self.next_hops.left(before as u32);
    }

    fn number(&self, slot: u32, number: usize) -> u64 {
        self.slots[slot as usize * SLOT_NUMBERS + number].load(Ordering::Relaxed)
    }

    fn report_of(&self, slot: u32, now: u64) -> FlowReport {
        let seen = self.number(slot, SLOT_SEEN);
        FlowReport {
            next_hop: self.next_hops.get(self.number(slot, SLOT_NEXT_HOP) as u32),
            packets: self.number(slot, SLOT_PACKETS),
            bytes: self.number(slot, SLOT_BYTES),
            idle: Duration::from_nanos(now.saturating_sub(self.number(slot, SLOT_LAST_NS))),
            fin: seen & SEEN_FIN != 0,
            rst: seen & SEEN_RST != 0,
            own_packets: self.number(slot, SLOT_OWN_PACKETS),
            replaced: seen & SEEN_SYN != 0,
        }
    }
}

/// Next hops by number from 1 on, with how many flows each has. One without flows makes room for another.
#[derive(Debug, Default)]
struct NextHops(Vec<(NextHop, u32)>);

impl NextHops {
    fn get(&self, number: u32) -> Option<NextHop> {
        self.0.get((number as usize).checked_sub(1)?).map(|(next_hop, _)| *next_hop)
    }

    /// The number of a next hop, which is told to the kernel if it is new.
    fn number_of(&mut self, map: &Map, to: NextHop) -> io::Result<u32> {
        let known = self.0.iter().position(|(next_hop, _)| *next_hop == to);
        if let Some(at) = known {
            return Ok(at as u32 + 1);
        }
        let unused = self.0.iter().position(|(_, flows)| *flows == 0).unwrap_or(self.0.len());
        if unused == NEXT_HOPS_MAX as usize {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let number = unused as u32 + 1;
        map.set(&number.to_ne_bytes(), &next_hop_bytes(to))?;
        match self.0.get_mut(unused) {
            Some(entry) => *entry = (to, 0),
            None => self.0.push((to, 0)),
        }
        Ok(number)
    }

    fn taken(&mut self, number: u32) {
        self.0[number as usize - 1].1 += 1;
    }

    /// A flow goes elsewhere; 0: it was held.
    fn left(&mut self, number: u32) {
        if let Some(at) = (number as usize).checked_sub(1) {
            self.0[at].1 -= 1;
        }
    }
}

fn next_hop_bytes(to: NextHop) -> [u8; NEXT_HOP_BYTES] {
    let mut bytes = [0; NEXT_HOP_BYTES];
    bytes[..4].copy_from_slice(&to.interface.to_ne_bytes());
    let family = if to.address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    bytes[4..8].copy_from_slice(&family.to_ne_bytes());
    match to.address {
        IpAddr::V4(address) => bytes[8..12].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes[8..24].copy_from_slice(&address.octets()),
    }
    bytes
}

fn key(flow: Flow) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    for (at, address) in [flow.client, flow.vip].into_iter().enumerate() {
        let ip = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        key[at * 16..][..16].copy_from_slice(&ip.octets());
        key[32 + at * 2..][..2].copy_from_slice(&address.port().to_be_bytes());
    }
    key
}

/// On the clock of the program.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests;
