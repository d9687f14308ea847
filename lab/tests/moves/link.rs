//! A link between two hosts that delays, loses and reorders packets: the kernels here have no `netem`.
//!
//! Each host has a TUN interface, and a thread carries packets from one to the other. Which packets are lost is chosen by a
//! seed; when packets come is not.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use baton_lab::network::{ClusterHosts, Host};

/// What a link does to packets, in each direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkSettings {
    /// Each packet takes so long.
    pub(crate) delay: Duration,
    /// One packet of so many is lost; 0: none.
    pub(crate) loses_one_in: u32,
    /// One packet of so many takes three times as long, so that others overtake it; 0: none.
    pub(crate) delays_one_in: u32,
    /// Chooses which ones.
    pub(crate) seed: u64,
}

/// A link. Dropping it takes it away.
#[derive(Debug)]
pub(crate) struct Link {
    lost: Arc<AtomicU64>,
    /// Hanging up stops the thread.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Link {
    /// Carries packets between two TUN interfaces from now on.
    fn start(ends: [OwnedFd; 2], settings: LinkSettings) -> Result<Self> {
        let (stopped, stop) = rustix::pipe::pipe()?;
        let lost = Arc::new(AtomicU64::new(0));
        let carrier = Carrier {
            ends,
            settings,
            random: fastrand::Rng::with_seed(settings.seed),
            under_way: BinaryHeap::new(),
            carried: 0,
            lost: Arc::clone(&lost),
        };
        let thread = std::thread::spawn(move || carrier.run(&stopped));
        Ok(Self { lost, stop: Some(stop), thread: Some(thread) })
    }

    /// How many packets it has lost.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(!matches!(ended, Some(Err(_))) || std::thread::panicking(), "the link's thread has failed");
    }
}

/// When a packet arrives, its number, to which end it goes, its bytes.
type UnderWay = (Instant, u64, usize, Vec<u8>);

struct Carrier {
    ends: [OwnedFd; 2],
    settings: LinkSettings,
    random: fastrand::Rng,
    under_way: BinaryHeap<Reverse<UnderWay>>,
    carried: u64,
    lost: Arc<AtomicU64>,
}

impl Carrier {
    fn run(mut self, stopped: &OwnedFd) {
        loop {
            let next = self.under_way.peek().map(|Reverse((due, ..))| *due);
            let timeout = next.map(|due| {
                let wait = due.saturating_duration_since(Instant::now());
                Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() }
            });
            let mut ready = [
                PollFd::new(&self.ends[0], PollFlags::IN),
                PollFd::new(&self.ends[1], PollFlags::IN),
                PollFd::new(stopped, PollFlags::IN),
            ];
            if poll(&mut ready, timeout.as_ref()).is_err_and(|error| error != rustix::io::Errno::INTR)
                || !ready[2].revents().is_empty()
            {
                return;
            }
            for from in 0..self.ends.len() {
                self.take(from);
            }
            let now = Instant::now();
            while let Some(Reverse((due, ..))) = self.under_way.peek()
                && *due <= now
                && let Some(Reverse((.., to, packet))) = self.under_way.pop()
            {
                // An interface that is down loses it.
                let _ = rustix::io::write(self.ends[to].as_fd(), &packet);
            }
        }
    }

    /// Takes all packets that have left one host.
    fn take(&mut self, from: usize) {
        let mut packet = [0; PACKET_BYTES_MAX];
        while let Ok(length) = rustix::io::read(self.ends[from].as_fd(), &mut packet) {
            self.carried += 1;
            let mut one_in = |many: u32| many > 0 && self.random.u32(0..many) == 0;
            if one_in(self.settings.loses_one_in) || self.under_way.len() >= PACKETS_MAX {
                self.lost.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let times = if one_in(self.settings.delays_one_in) { 3 } else { 1 };
            let due = Instant::now() + self.settings.delay * times;
            self.under_way.push(Reverse((due, self.carried, 1 - from, packet[..length].to_vec())));
        }
    }
}

/// A client that is not on the bridge.
#[derive(Debug)]
pub(crate) struct DistantClient {
    /// Its packets go to the VIP by way of the router.
    pub(crate) host: Host,
    /// Between host and router.
    pub(crate) link: Link,
    /// Forwards between link and bridge.
    _router: Host,
}

impl DistantClient {
    /// A client behind a router and a link that does this to packets.
    ///
    /// ```text
    ///   client ── link ── router ── bridge
    ///   10.78.0.2         10.78.0.1 and an address on the bridge
    /// ```
    pub(crate) fn new(hosts: &mut ClusterHosts, settings: LinkSettings) -> Result<Self> {
        let router = hosts.network.join("router")?;
        for name in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            router.set(name, "1")?;
        }
        let (v4, v6) = (Ipv4Addr::new(10, 78, 0, 2), Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, 2));
        let host = Host::apart("distant", v4, v6)?;
        let [client_end, router_end] = [(&host, 2), (&router, 1)].map(|(host, last)| {
            let end = host.run(|| baton_sys::tun::create(TUNNEL)).context("a TUN interface")?;
            host.ip(&format!(
                "link set lo up\naddr add 10.78.0.{last}/24 dev {TUNNEL}\n\
                 addr add fd78::{last}/64 dev {TUNNEL} nodad\nlink set {TUNNEL} up\n"
            ))?;
            anyhow::Ok(end)
        });
        let link = Link::start([client_end?, router_end?], settings)?;
        host.ip(&format!("route add default dev {TUNNEL}\nroute add ::/0 dev {TUNNEL}\n"))?;
        for other in [&hosts.front].into_iter().chain(&hosts.nodes) {
            other.ip(&format!(
                "route add 10.78.0.0/24 via {}\nroute add fd78::/64 via {}\n",
                router.v4(),
                router.v6()
            ))?;
        }
        Ok(Self { host, link, _router: router })
    }
}

/// The name of the interfaces of a link.
const TUNNEL: &str = "tun0";
/// More than the interfaces' MTU of 1,500.
const PACKET_BYTES_MAX: usize = 2048;
/// A router's queue: what comes beyond is lost.
const PACKETS_MAX: usize = 2000;
