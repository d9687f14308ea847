//! Looks a name up, and waits for it: `/etc/hosts`, then DNS, then what else the system knows.
//!
//! DNS is asked here and not by `getaddrinfo`, which does not tell how long its answers hold. The files are read each time:
//! they change while a server runs, and a lookup is rare.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpStream, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use resolv_conf::{Config, ScopedIp};

use crate::message::{DnsAnswer, Family, question, read_answer};
use crate::{LookupError, Outcome, hosts};

/// Where names are looked up.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// The file of hosts(5).
    pub hosts: PathBuf,
    /// The file of resolv.conf(5).
    pub resolv_conf: PathBuf,
    /// DNS servers to ask instead of those in the file. The system is not asked then.
    pub servers: Vec<SocketAddr>,
}

impl Default for Lookup {
    fn default() -> Self {
        Self { hosts: "/etc/hosts".into(), resolv_conf: "/etc/resolv.conf".into(), servers: Vec::new() }
    }
}

impl Lookup {
    /// Looks `host` up, which is no address. Takes as long as the servers do, some [`PATIENCE_S_MAX`] seconds each.
    pub fn look_up(&self, host: &str) -> Outcome {
        let text = std::fs::read(&self.hosts).unwrap_or_default();
        let mut local = hosts::find(&String::from_utf8_lossy(&text), host.trim_end_matches('.'));
        if is_localhost(host) {
            // The file of a container may lack one, where a server listens all the same.
            let loopback = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            local.extend(loopback.into_iter().filter(|own| !local.contains(own)).collect::<Vec<IpAddr>>());
        }
        if !local.is_empty() {
            return Outcome::Found { addresses: local, ttl_s: HOSTS_TTL_S };
        }
        let outcome = self.ask_dns(host);
        match outcome {
            Outcome::Absent | Outcome::Failed(LookupError::NoServer) if self.servers.is_empty() => {
                ask_system(host).unwrap_or(outcome)
            }
            outcome => outcome,
        }
    }

    fn ask_dns(&self, host: &str) -> Outcome {
        let text = std::fs::read(&self.resolv_conf).unwrap_or_default();
        let (config, _) = Config::parse_with_errors(&text);
        let servers: Vec<_> = match &self.servers[..] {
            [] => config.nameservers.iter().filter_map(address_of).take(SERVERS_MAX).collect(),
            servers => servers.to_vec(),
        };
        if servers.is_empty() {
            return Outcome::Failed(LookupError::NoServer);
        }
        let patience = Duration::from_secs(u64::from(config.timeout).clamp(1, PATIENCE_S_MAX));
        let attempts = config.attempts.clamp(1, ATTEMPTS_MAX);
        let mut last = Outcome::Absent;
        for name in candidates(host, &config, self.servers.is_empty()) {
            match ask_both(&servers, &name, patience, attempts) {
                Outcome::Absent => {}
                outcome => last = outcome,
            }
            if matches!(last, Outcome::Found { .. }) {
                return last;
            }
        }
        last
    }
}

/// The names to ask for, in order: as resolv.conf(5) describes it for `search` and `ndots`.
fn candidates(host: &str, config: &Config, searches: bool) -> Vec<String> {
    if let Some(absolute) = host.strip_suffix('.') {
        return vec![absolute.to_owned()];
    }
    let dots = host.bytes().filter(|byte| *byte == b'.').count();
    let domains = config.get_last_search_or_domain().filter(|domain| *domain != ".");
    let mut names: Vec<_> = match searches {
        true => domains.take(SEARCHES_MAX).map(|domain| format!("{host}.{domain}")).collect(),
        false => Vec::new(),
    };
    let at = if dots >= config.ndots as usize { 0 } else { names.len() };
    names.insert(at, host.to_owned());
    names
}

/// Asks for the addresses of both kinds.
fn ask_both(servers: &[SocketAddr], name: &str, patience: Duration, attempts: u32) -> Outcome {
    let mut found: (Vec<IpAddr>, u32) = (Vec::new(), u32::MAX);
    let mut trouble = None;
    for family in [Family::V4, Family::V6] {
        match ask_until_answered(servers, name, family, patience, attempts) {
            DnsAnswer::Found { addresses, ttl_s } => {
                found.0.extend(addresses);
                found.1 = found.1.min(ttl_s);
            }
            DnsAnswer::Absent => {}
            DnsAnswer::Failed(why) => trouble = Some(why),
            DnsAnswer::Truncated | DnsAnswer::Other => trouble = Some(LookupError::Malformed),
        }
    }
    match (found, trouble) {
        ((addresses, ttl_s), _) if !addresses.is_empty() => Outcome::Found { addresses, ttl_s },
        (_, Some(why)) => Outcome::Failed(why),
        (_, None) => Outcome::Absent,
    }
}

fn ask_until_answered(
    servers: &[SocketAddr],
    name: &str,
    family: Family,
    patience: Duration,
    attempts: u32,
) -> DnsAnswer {
    let mut last = DnsAnswer::Failed(LookupError::NoServer);
    for server in servers.iter().cycle().take(servers.len() * attempts as usize) {
        last = ask(*server, name, family, patience);
        if !matches!(last, DnsAnswer::Failed(_)) {
            break;
        }
    }
    last
}

/// Asks one server once, by a datagram, and over TCP if the answer needs it.
fn ask(server: SocketAddr, name: &str, family: Family, patience: Duration) -> DnsAnswer {
    // Keyed by the system's random numbers.
    let id = RandomState::new().build_hasher().finish() as u16;
    // A name that no host can have is absent.
    let Some(question) = question(id, name, family) else { return DnsAnswer::Absent };
    let answer = by_datagram(server, &question, patience, |bytes| read_answer(bytes, id, name, family));
    match answer {
        Ok(DnsAnswer::Truncated) => by_stream(server, &question, patience)
            .map_or_else(|error| failed(&error), |bytes| read_answer(&bytes, id, name, family)),
        Ok(answer) => answer,
        Err(error) => failed(&error),
    }
}

fn by_datagram(
    server: SocketAddr,
    question: &[u8],
    patience: Duration,
    read: impl Fn(&[u8]) -> DnsAnswer,
) -> std::io::Result<DnsAnswer> {
    let any: SocketAddr =
        if server.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = UdpSocket::bind(any)?;
    // Only this server's datagrams arrive then.
    socket.connect(server)?;
    socket.send(question)?;
    let until = Instant::now() + patience;
    let mut bytes = [0; DATAGRAM_BYTES_MAX];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        let count = socket.recv(&mut bytes)?;
        match read(&bytes[..count]) {
            DnsAnswer::Other => {}
            answer => return Ok(answer),
        }
    }
}

/// RFC 1035, section 4.2.2: a length in front of the message.
fn by_stream(server: SocketAddr, question: &[u8], patience: Duration) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let len = u16::try_from(question.len()).map_err(|_| ErrorKind::InvalidInput)?;
    stream.write_all(&[&len.to_be_bytes(), question].concat())?;
    let mut len = [0; 2];
    stream.read_exact(&mut len)?;
    let mut bytes = vec![0; usize::from(u16::from_be_bytes(len))];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn failed(error: &std::io::Error) -> DnsAnswer {
    DnsAnswer::Failed(match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => LookupError::TimedOut,
        _ => LookupError::NoServer,
    })
}

/// What the system knows from elsewhere: other files, mDNS, directories (nsswitch.conf).
fn ask_system(host: &str) -> Option<Outcome> {
    let mut addresses: Vec<IpAddr> = (host, 0).to_socket_addrs().ok()?.map(|address| address.ip()).collect();
    addresses.sort_by_key(IpAddr::is_ipv6);
    addresses.dedup();
    (!addresses.is_empty()).then_some(Outcome::Found { addresses, ttl_s: SYSTEM_TTL_S })
}

/// RFC 6761, section 6.3.
fn is_localhost(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

fn address_of(server: &ScopedIp) -> Option<SocketAddr> {
    match server {
        ScopedIp::V4(address) => Some((*address, PORT).into()),
        ScopedIp::V6(address, None) => Some((*address, PORT).into()),
        // A name of an interface is rare, and has no number without the system's help.
        ScopedIp::V6(address, Some(scope)) => {
            let scope = scope.parse().ok()?;
            Some(SocketAddrV6::new(*address, PORT, 0, scope).into())
        }
    }
}

const PORT: u16 = 53;

/// What resolv.conf may ask for at most: the waiting for one server, the rounds, the servers and the domains to try.
const PATIENCE_S_MAX: u64 = 5;
const ATTEMPTS_MAX: u32 = 3;
const SERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 6;

/// How long the lines of a file count.
const HOSTS_TTL_S: u32 = 5;

/// How long addresses count of which no time is known.
const SYSTEM_TTL_S: u32 = 30;

/// Without EDNS a server sends 512 bytes at most; some send more.
const DATAGRAM_BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_follow_resolv_conf() {
        let (config, _) = Config::parse_with_errors(b"search a.test b.test\noptions ndots:2\n");
        let names = |host| candidates(host, &config, true).join(" ");
        assert_eq!(names("x"), "x.a.test x.b.test x");
        assert_eq!(names("x.y"), "x.y.a.test x.y.b.test x.y");
        assert_eq!(names("x.y.z"), "x.y.z x.y.z.a.test x.y.z.b.test");
        assert_eq!(names("x."), "x");
        assert_eq!(candidates("x", &config, false), ["x"]);
    }

    #[test]
    fn localhost_needs_no_server() {
        let none = Lookup { hosts: "/nonexistent".into(), ..Lookup::default() };
        for host in ["localhost", "LOCALHOST.", "app.localhost"] {
            let Outcome::Found { addresses, .. } = none.look_up(host) else { panic!("{host}") };
            assert_eq!(addresses, [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()], "{host}");
        }
    }
}
