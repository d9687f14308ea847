//! The state of a TCP connection as a value, and as bytes that travel to another host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A connection as the kernel knows it: what [`dump`](super::dump) reads and [`restore`](super::restore) makes again.
///
/// It lacks what the kernel does not tell: the congestion window, round-trip times, segments that arrived out of order,
/// keepalive and most other options of the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpState {
    /// This end. IPv4 in IPv6 is written as IPv4.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// The largest segment that the peer takes.
    pub mss: u32,
    /// Zeros if the ends did not agree on scaling, which is the same.
    pub window_scales: WindowScales,
    /// Whether the ends acknowledge segments behind a gap (SACK).
    pub selective_acks: bool,
    /// This end's clock for timestamps, when the connection was dumped; its lowest bit says whether it counts microseconds.
    /// `None`: segments have no timestamps.
    pub timestamp: Option<u32>,
    /// The windows.
    pub window: Window,
    /// The sequence number behind `unread`: what this end expects next.
    pub received_up_to: u32,
    /// What was acknowledged and not read: at most [`QUEUE_BYTES_MAX`].
    pub unread: Vec<u8>,
    /// The sequence number behind `unacked`: what this end sends next.
    pub sent_up_to: u32,
    /// What was sent and not acknowledged: at most [`QUEUE_BYTES_MAX`].
    pub unacked: Vec<u8>,
    /// Whether small segments leave at once (`TCP_NODELAY`).
    pub no_delay: bool,
}

/// By how many bits windows are shifted, at most 14.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowScales {
    /// The windows that the peer tells.
    pub send: u8,
    /// The windows that this end tells.
    pub receive: u8,
}

/// `struct tcp_repair_window` of linux/tcp.h, by its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The segment that last changed `snd_wnd`.
    pub snd_wl1: u32,
    /// How much the peer takes.
    pub snd_wnd: u32,
    /// The largest window that the peer has told.
    pub max_window: u32,
    /// How much this end takes, as last told.
    pub rcv_wnd: u32,
    /// What this end expected next when it told `rcv_wnd`.
    pub rcv_wup: u32,
}

/// Most bytes of either queue of a connection that moves: a new socket's buffers hold that without being forced. A longer
/// queue belongs to an upload or a download under way.
pub const QUEUE_BYTES_MAX: usize = 64 << 10;

/// Most bytes of a state.
pub const STATE_BYTES_MAX: usize = 128 + 2 * QUEUE_BYTES_MAX;

impl TcpState {
    /// The state as bytes. Both hosts may differ in their version and byte order.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(128 + self.unread.len() + self.unacked.len());
        let flags = [
            (self.local.is_ipv6(), IPV6),
            (self.selective_acks, SELECTIVE_ACKS),
            (self.timestamp.is_some(), TIMESTAMP),
            (self.no_delay, NO_DELAY),
        ];
        bytes.push(VERSION);
        bytes.push(flags.iter().filter(|(holds, _)| *holds).fold(0, |sum, (_, flag)| sum | flag));
        for address in [self.local, self.peer] {
            match address.ip() {
                IpAddr::V4(ip) => bytes.extend(ip.octets()),
                IpAddr::V6(ip) => bytes.extend(ip.octets()),
            }
            bytes.extend(address.port().to_be_bytes());
        }
        bytes.extend([self.window_scales.send, self.window_scales.receive]);
        let Window { snd_wl1, snd_wnd, max_window, rcv_wnd, rcv_wup } = self.window;
        let numbers = [self.mss, self.timestamp.unwrap_or(0), snd_wl1, snd_wnd, max_window, rcv_wnd, rcv_wup];
        bytes.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        for (up_to, queue) in [(self.received_up_to, &self.unread), (self.sent_up_to, &self.unacked)] {
            bytes.extend(up_to.to_be_bytes());
            bytes.extend((queue.len() as u32).to_be_bytes());
            bytes.extend(queue);
        }
        bytes
    }

    /// Reads a state. `None`: of another version, cut off, with bytes behind it, or beyond the bounds above. What such a
    /// state says may still be nonsense, which the kernel then refuses to make a connection of.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let [version, flags] = take(&mut rest)?;
        if version != VERSION || flags & !FLAGS != 0 {
            return None;
        }
        let mut address = || {
            let ip = match flags & IPV6 {
                0 => IpAddr::V4(Ipv4Addr::from(take::<4>(&mut rest)?)),
                _ => IpAddr::V6(Ipv6Addr::from(take::<16>(&mut rest)?)),
            };
            Some(SocketAddr::new(ip, u16::from_be_bytes(take(&mut rest)?)))
        };
        let (local, peer) = (address()?, address()?);
        let [send, receive] = take(&mut rest)?;
        if send.max(receive) > SCALE_MAX {
            return None;
        }
        let mut number = || take(&mut rest).map(u32::from_be_bytes);
        let (mss, timestamp) = (number()?, number()?);
        if !(1..=MSS_MAX).contains(&mss) {
            return None;
        }
        let window = Window {
            snd_wl1: number()?,
            snd_wnd: number()?,
            max_window: number()?,
            rcv_wnd: number()?,
            rcv_wup: number()?,
        };
        let mut queue = || {
            let up_to = take(&mut rest).map(u32::from_be_bytes)?;
            let length = take(&mut rest).map(u32::from_be_bytes)? as usize;
            let (queue, behind) = rest.split_at_checked(length).filter(|_| length <= QUEUE_BYTES_MAX)?;
            rest = behind;
            Some((up_to, queue.to_vec()))
        };
        let ((received_up_to, unread), (sent_up_to, unacked)) = (queue()?, queue()?);
        rest.is_empty().then_some(Self {
            local,
            peer,
            mss,
            window_scales: WindowScales { send, receive },
            selective_acks: flags & SELECTIVE_ACKS != 0,
            timestamp: (flags & TIMESTAMP != 0).then_some(timestamp),
            window,
            received_up_to,
            unread,
            sent_up_to,
            unacked,
            no_delay: flags & NO_DELAY != 0,
        })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, behind) = rest.split_first_chunk::<N>()?;
    *rest = behind;
    Some(*taken)
}

const VERSION: u8 = 1;
const IPV6: u8 = 1;
const SELECTIVE_ACKS: u8 = 2;
const TIMESTAMP: u8 = 4;
const NO_DELAY: u8 = 8;
const FLAGS: u8 = IPV6 | SELECTIVE_ACKS | TIMESTAMP | NO_DELAY;
/// The option has 16 bits. The kernel takes any number under repair.
const MSS_MAX: u32 = 65_535;
/// RFC 7323, 2.3.
const SCALE_MAX: u8 = 14;

#[cfg(test)]
mod tests {
    use super::*;

    fn states() -> [TcpState; 2] {
        let plain = TcpState {
            local: "10.77.0.100:80".parse().unwrap(),
            peer: "192.0.2.7:40000".parse().unwrap(),
            mss: 1460,
            window_scales: WindowScales { send: 0, receive: 0 },
            selective_acks: false,
            timestamp: None,
            window: Window { snd_wl1: 1, snd_wnd: 2, max_window: 3, rcv_wnd: 4, rcv_wup: 5 },
            received_up_to: u32::MAX,
            unread: Vec::new(),
            sent_up_to: 7,
            unacked: Vec::new(),
            no_delay: false,
        };
        let full = TcpState {
            local: "[fd77::64]:80".parse().unwrap(),
            peer: "[2001:db8::7]:40000".parse().unwrap(),
            window_scales: WindowScales { send: 7, receive: 14 },
            selective_acks: true,
            timestamp: Some(0x8000_0001),
            unread: vec![1; 5],
            unacked: vec![2; QUEUE_BYTES_MAX],
            no_delay: true,
            ..plain.clone()
        };
        [plain, full]
    }

    #[test]
    fn what_is_written_is_read() {
        for state in states() {
            let bytes = state.to_bytes();
            assert!(bytes.len() <= STATE_BYTES_MAX);
            assert_eq!(TcpState::from_bytes(&bytes), Some(state));
        }
    }

    /// Goal: bytes of a hostile host are refused or are a state, which is written as it was read. Method: all prefixes, and
    /// each bit of the state turned round.
    #[test]
    fn no_other_bytes_are_taken_for_it() {
        let [plain, mut full] = states();
        full.unacked.truncate(9);
        for bytes in [plain.to_bytes(), full.to_bytes()] {
            for length in 0..bytes.len() {
                assert_eq!(TcpState::from_bytes(&bytes[..length]), None);
            }
            assert_eq!(TcpState::from_bytes(&[&bytes[..], &[0]].concat()), None);
            for bit in 0..bytes.len() * 8 {
                let mut other = bytes.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                if let Some(state) = TcpState::from_bytes(&other) {
                    assert_eq!(TcpState::from_bytes(&state.to_bytes()), Some(state));
                }
            }
        }
    }

    #[test]
    fn what_is_beyond_a_bound_is_refused() {
        let [plain, mut full] = states();
        for mss in [0, MSS_MAX + 1] {
            assert_eq!(TcpState::from_bytes(&TcpState { mss, ..plain.clone() }.to_bytes()), None);
        }
        full.unacked.push(0);
        assert_eq!(TcpState::from_bytes(&full.to_bytes()), None);
    }
}
