//! Several hosts on one machine: network namespaces that a bridge joins, for tests and measurements of a cluster.
//!
//! ```text
//!   client          front            node1            node2
//!   10.77.0.2       10.77.0.3        10.77.0.4        10.77.0.5       eth0 (and fd77::2, …)
//!                   VIP on eth0      VIP on lo        VIP on lo       10.77.0.100 and fd77::64
//!      └───────────────┴────────────────┴────────────────┘            bridge, in a namespace of its own
//! ```
//!
//! The machine's own namespace stays as it is, but for names below `/run/netns`. Dropping a host ends the processes in it and
//! takes it away; what a killed run has left behind, the next [`Network`] takes away.

mod namespace;

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::programs::output_of;
use namespace::{Namespace, remove_leftovers};

/// The bridge between the hosts. Hosts outlive it, but reach each other no more.
#[derive(Debug)]
pub struct Network {
    bridge: Namespace,
    hosts: u8,
}

impl Network {
    /// Why this process cannot make networks here.
    pub fn hindrance() -> Option<&'static str> {
        namespace::hindrance()
    }

    /// For the first lines of a test: whether networks cannot be made here, which it says on standard error then, past the
    /// test harness.
    pub fn is_left_out() -> bool {
        let hindrance = Self::hindrance();
        if let Some(why) = hindrance {
            let test = std::thread::current().name().unwrap_or_default().to_owned();
            // Ignore a closed standard error.
            let _ = writeln!(std::io::stderr(), "LEFT OUT of {test}: {why}");
        }
        hindrance.is_some()
    }

    /// A bridge without hosts. Removes what runs that were killed have left behind.
    ///
    /// # Errors
    /// What `ip` says; see [`Network::hindrance`].
    pub fn new() -> Result<Self> {
        remove_leftovers();
        let bridge = Namespace::new("bridge")?;
        bridge.ip(&format!("link add {BRIDGE} type bridge mcast_snooping 0\nlink set {BRIDGE} up\n"))?;
        Ok(Self { bridge, hosts: 0 })
    }

    /// A new host on the bridge, which has `name` for its port: letters and digits, at most 15.
    ///
    /// # Errors
    /// If the name is taken or unfit, or there are too many hosts.
    pub fn join(&mut self, name: &str) -> Result<Host> {
        ensure!(self.hosts < HOSTS_MAX, "more than {HOSTS_MAX} hosts on a bridge");
        self.hosts += 1;
        let last = FIRST_HOST + self.hosts - 1;
        let host = Host::apart(name, v4(last), v6(last))?;
        let inside = host.namespace.name();
        self.bridge.ip(&format!(
            "link add {name} type veth peer name {INTERFACE} netns {inside}\nlink set {name} master {BRIDGE} up\n"
        ))?;
        // Without `nodad` an IPv6 address is of no use for a second or two.
        host.namespace.ip(&format!(
            "link set lo up\naddr add {}/24 dev {INTERFACE}\naddr add {}/64 dev {INTERFACE} nodad\nlink set {INTERFACE} up\n",
            host.v4, host.v6
        ))?;
        Ok(host)
    }

    /// Takes the host off the bridge, so that nothing reaches it, and nothing leaves it; or puts it on the bridge again.
    ///
    /// # Errors
    /// If there is no host of this name.
    pub fn plug(&self, name: &str, is_on: bool) -> Result<()> {
        let bridge = if is_on { format!("master {BRIDGE}") } else { "nomaster".to_owned() };
        self.bridge.ip(&format!("link set {name} {bridge}\n"))
    }
}

/// A host of a [`Network`]. Dropping it ends the processes that run in it.
#[derive(Debug)]
pub struct Host {
    namespace: Namespace,
    v4: Ipv4Addr,
    v6: Ipv6Addr,
}

impl Host {
    /// A host that is not on the bridge, without an interface: the caller gives it one with these addresses.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn apart(name: &str, v4: Ipv4Addr, v6: Ipv6Addr) -> Result<Self> {
        Ok(Self { namespace: Namespace::new(name)?, v4, v6 })
    }

    /// Its address on the bridge.
    pub fn v4(&self) -> Ipv4Addr {
        self.v4
    }

    /// Its other address on the bridge.
    pub fn v6(&self) -> Ipv6Addr {
        self.v6
    }

    /// A command that runs on this host. The process that is spawned is the program itself.
    pub fn command(&self, program: &str) -> Command {
        self.namespace.command(program)
    }

    /// Runs `work` on a thread of this host. Sockets that it makes stay on the host, wherever they are used.
    ///
    /// # Panics
    /// If `work` does, or the kernel refuses the thread.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.namespace.run(work)
    }

    /// Lets a batch of `ip` commands change this host, one a line, without the word `ip`.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn ip(&self, commands: &str) -> Result<()> {
        self.namespace.ip(commands)
    }

    /// Sets a value below `/proc/sys/net`, such as `ipv4/tcp_sack`.
    ///
    /// # Errors
    /// The kernel's, with the name.
    pub fn set(&self, name: &str, value: &str) -> Result<()> {
        self.run(|| std::fs::write(format!("/proc/sys/net/{name}"), value))
            .with_context(|| format!("{value} > /proc/sys/net/{name}"))
    }

    /// Takes an address on the bridge in addition to its own, and answers for it: what a front-end does with the VIP.
    ///
    /// # Errors
    /// If the address is taken.
    pub fn announce(&self, address: IpAddr) -> Result<()> {
        let rest = match address {
            IpAddr::V4(_) => "/32",
            // Deprecated from the start: the host's own address is the source of what the host itself begins.
            IpAddr::V6(_) => "/128 nodad preferred_lft 0",
        };
        self.ip(&format!("addr add {address}{rest} dev {INTERFACE}\n"))
    }

    /// Takes an address without answering for it on the bridge: what a node does with the VIP.
    ///
    /// # Errors
    /// If the address is taken.
    pub fn take_silently(&self, address: IpAddr) -> Result<()> {
        match address {
            IpAddr::V4(_) => {
                // Answer only for addresses of the interface that is asked, and ask with no other as the source.
                self.set("ipv4/conf/all/arp_ignore", "1")?;
                self.set("ipv4/conf/all/arp_announce", "2")?;
                self.ip(&format!("addr add {address}/32 dev lo\n"))
            }
            // The kernel answers neighbours only for addresses of the interface that they ask.
            IpAddr::V6(_) => self.ip(&format!("addr add {address}/128 dev lo nodad preferred_lft 0\n")),
        }
    }

    /// Lets what it sends leave its interface at so many megabits a second, at most. What waits for that is at most 4 MB.
    ///
    /// # Errors
    /// If it is bounded already, or the kernel has no token buckets.
    pub fn bound_link(&self, megabits_per_second: u32) -> Result<()> {
        self.tc(&format!(
            "qdisc add dev {INTERFACE} root tbf rate {megabits_per_second}mbit burst 64kb limit 4mb"
        ))
    }

    /// Undoes [`bound_link`](Self::bound_link).
    ///
    /// # Errors
    /// If it is not bounded.
    pub fn free_link(&self) -> Result<()> {
        self.tc(&format!("qdisc del dev {INTERFACE} root"))
    }

    fn tc(&self, words: &str) -> Result<()> {
        output_of(self.command("tc").args(words.split(' '))).map(drop).with_context(|| format!("tc {words}"))
    }

    /// A counter of this host's kernel, such as (`Tcp`, `OutRsts`) or (`TcpExt`, `TCPTimeouts`).
    ///
    /// # Errors
    /// If the kernel does not count that.
    pub fn counter(&self, group: &str, name: &str) -> Result<u64> {
        let read = |file: &str| std::fs::read_to_string(format!("{STATISTICS}/{file}"));
        let text = self.run(|| anyhow::Ok(read("snmp")? + &read("netstat")?))?;
        counter_in(&text, group, name).with_context(|| format!("the kernel does not count {group} {name}"))
    }

    /// Bytes that have left by its interface on the bridge so far, link headers included.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn sent_bytes(&self) -> Result<u64> {
        let text = self.run(|| std::fs::read_to_string(format!("{STATISTICS}/dev")))?;
        sent_in(&text, INTERFACE).with_context(|| format!("no account of {INTERFACE}"))
    }
}

/// A client, a front-end and nodes: the front-end answers for the VIP, the nodes have it silently.
#[derive(Debug)]
pub struct ClusterHosts {
    /// Neither has the VIP nor knows of the nodes.
    pub client: Host,
    /// Where the VIP leads.
    pub front: Host,
    /// More hosts to which it leads: see [`another_front`](Self::another_front).
    pub more_fronts: Vec<Host>,
    /// They answer with the VIP as their address.
    pub nodes: Vec<Host>,
    /// More hosts may join.
    pub network: Network,
}

impl ClusterHosts {
    /// The VIP.
    pub const VIP_V4: Ipv4Addr = v4(VIP);
    /// The VIP for clients with IPv6.
    pub const VIP_V6: Ipv6Addr = v6(VIP);

    /// The hosts `client`, `front`, `node1`, `node2`, and so on.
    ///
    /// # Errors
    /// What `ip` says; see [`Network::hindrance`].
    pub fn new(nodes: usize) -> Result<Self> {
        let mut network = Network::new()?;
        let (client, front) = (network.join("client")?, network.join("front")?);
        let nodes: Vec<Host> =
            (1..=nodes).map(|number| network.join(&format!("node{number}"))).collect::<Result<_>>()?;
        for vip in [IpAddr::V4(Self::VIP_V4), IpAddr::V6(Self::VIP_V6)] {
            front.announce(vip)?;
            nodes.iter().try_for_each(|node| node.take_silently(vip))?;
        }
        Ok(Self { client, front, more_fronts: Vec::new(), nodes, network })
    }

    /// All hosts to which the VIP leads.
    pub fn fronts(&self) -> impl Iterator<Item = &Host> {
        std::iter::once(&self.front).chain(&self.more_fronts)
    }

    /// Adds a host that answers with the VIP. The client spreads its connections over IPv4 by a hash of addresses and ports, as
    /// routers do (ECMP).
    ///
    /// # Errors
    /// What `ip` says, or a kernel without routes of several hops.
    pub fn another_front(&mut self) -> Result<()> {
        let host = self.network.join(&format!("front{}", self.more_fronts.len() + 2))?;
        host.take_silently(Self::VIP_V4.into())?;
        FOR_LOAD.iter().try_for_each(|(name, value)| host.set(name, value))?;
        self.more_fronts.push(host);
        self.client.set("ipv4/fib_multipath_hash_policy", "1")?;
        let hops: String = self.fronts().map(|host| format!(" nexthop via {}", host.v4)).collect();
        self.client.ip(&format!("route replace {}/32{hops}\n", Self::VIP_V4))
    }

    /// The same, ready for many connections after each other.
    ///
    /// # Errors
    /// As of [`ClusterHosts::new`].
    pub(crate) fn for_load(nodes: usize) -> Result<Self> {
        let hosts = Self::new(nodes)?;
        for host in [&hosts.client, &hosts.front].into_iter().chain(&hosts.nodes) {
            FOR_LOAD.iter().try_for_each(|(name, value)| host.set(name, value))?;
        }
        Ok(hosts)
    }
}

/// Takes away the hosts and networks of this process, which is about to end without dropping them.
pub(crate) fn remove_own() {
    namespace::remove_own();
}

/// From the text of a file of the kernel's network: names and values are in two lines that begin alike.
pub(crate) fn counter_in(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(": ")).filter(|(head, _)| *head == group);
    let (names, values) = (lines.next()?.1, lines.next()?.1);
    let at = names.split(' ').position(|word| word == name)?;
    values.split(' ').nth(at)?.parse().ok()
}

/// From the text of `/proc/net/dev`.
fn sent_in(text: &str, interface: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().nth(8)?.parse().ok()
}

const fn v4(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, last)
}

const fn v6(last: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, last as u16)
}

/// The name of each host's interface on the bridge.
pub const INTERFACE: &str = "eth0";

/// Settings of a network in which many connections follow each other.
pub(crate) const FOR_LOAD: [(&str, &str); 3] =
    [("ipv4/tcp_tw_reuse", "1"), ("ipv4/tcp_max_syn_backlog", "8192"), ("core/somaxconn", "4096")];
const BRIDGE: &str = "bridge0";
/// The statistics of the thread's namespace; `/proc/net` has those of the process.
const STATISTICS: &str = "/proc/thread-self/net";
const FIRST_HOST: u8 = 2;
const VIP: u8 = 100;
/// Hosts of a bridge at most: those with addresses below the VIP.
const HOSTS_MAX: u8 = VIP - FIRST_HOST;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_their_names() {
        let text = "Ip: A B\nIp: 1 2\nTcp: A OutRsts\nTcp: 3 4\n";
        assert_eq!(counter_in(text, "Tcp", "OutRsts"), Some(4));
        assert_eq!(counter_in(text, "Ip", "OutRsts"), None);
        assert_eq!(counter_in(text, "Udp", "A"), None);
    }

    #[test]
    fn what_was_sent_is_found_by_the_interface() {
        let text = "Inter-|   Receive |  Transmit\n face |bytes packets\n   lo: 1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0\n  \
            eth0: 100 3 0 0 0 0 0 0 200 5 0 0 0 0 0 0\n";
        assert_eq!(sent_in(text, "eth0"), Some(200));
        assert_eq!(sent_in(text, "eth1"), None);
    }
}
