//! Goal: a name has the addresses that DNS says now, and keeps them while no server answers. Method: a DNS server in the
//! test, whose answers the test changes.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use baton_dns::{Lookup, LookupError, Name, Names, Outcome};
use simple_dns::rdata::{A, AAAA, RData};
use simple_dns::{CLASS, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};

/// What the server says.
#[derive(Clone, Default)]
struct Zone {
    addresses: Vec<IpAddr>,
    /// Answers with an error.
    fails: bool,
    /// Answers nothing.
    is_silent: bool,
    /// Sends all answers over TCP.
    truncates: bool,
    questions: usize,
}

struct Server {
    address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
}

impl Server {
    fn start(addresses: &[&str]) -> Self {
        let (datagrams, streams) = (0..100).find_map(|_| both_on_one_port().ok()).expect("a port");
        let address = datagrams.local_addr().unwrap();
        let zone = Arc::new(Mutex::new(Zone { addresses: parse(addresses), ..Zone::default() }));
        let shared = Arc::clone(&zone);
        std::thread::spawn(move || {
            let mut bytes = [0; 512];
            while let Ok((count, client)) = datagrams.recv_from(&mut bytes) {
                if let Some(answer) = answer(&bytes[..count], &shared, false) {
                    datagrams.send_to(&answer, client).unwrap();
                }
            }
        });
        let shared = Arc::clone(&zone);
        std::thread::spawn(move || {
            for stream in streams.incoming() {
                let mut stream = stream.unwrap();
                let mut len = [0; 2];
                stream.read_exact(&mut len).unwrap();
                let mut question = vec![0; usize::from(u16::from_be_bytes(len))];
                stream.read_exact(&mut question).unwrap();
                let answer = answer(&question, &shared, true).unwrap();
                stream.write_all(&(answer.len() as u16).to_be_bytes()).unwrap();
                stream.write_all(&answer).unwrap();
            }
        });
        Self { address, zone }
    }

    fn change(&self, change: impl FnOnce(&mut Zone)) {
        change(&mut self.zone.lock().unwrap());
    }

    fn questions(&self) -> usize {
        self.zone.lock().unwrap().questions
    }

    /// Asks this server only; answers hold for a second.
    fn lookup(&self) -> Lookup {
        Lookup { hosts: "/nonexistent".into(), servers: vec![self.address], ..Lookup::default() }
    }
}

/// Fails if the port that was free for datagrams is not for streams.
fn both_on_one_port() -> std::io::Result<(UdpSocket, TcpListener)> {
    let datagrams = UdpSocket::bind("127.0.0.1:0")?;
    let streams = TcpListener::bind(datagrams.local_addr()?)?;
    Ok((datagrams, streams))
}

fn answer(question: &[u8], zone: &Mutex<Zone>, over_tcp: bool) -> Option<Vec<u8>> {
    let mut zone = zone.lock().unwrap();
    zone.questions += 1;
    if zone.is_silent {
        return None;
    }
    let question = Packet::parse(question).unwrap();
    let asked = question.questions[0].clone();
    let mut packet = question.into_reply();
    if zone.fails {
        *packet.rcode_mut() = RCODE::ServerFailure;
    } else if zone.truncates && !over_tcp {
        packet.set_flags(PacketFlag::TRUNCATION);
    } else {
        let records = zone.addresses.iter().filter_map(|address| match (address, asked.qtype) {
            (IpAddr::V4(address), QTYPE::TYPE(TYPE::A)) => Some(RData::A(A { address: u32::from(*address) })),
            (IpAddr::V6(address), QTYPE::TYPE(TYPE::AAAA)) => {
                Some(RData::AAAA(AAAA { address: u128::from(*address) }))
            }
            _ => None,
        });
        packet.answers =
            records.map(|data| ResourceRecord::new(asked.qname.clone(), CLASS::IN, 1, data)).collect();
        if zone.addresses.is_empty() {
            *packet.rcode_mut() = RCODE::NameError;
        }
    }
    Some(packet.build_bytes_vec().unwrap())
}

fn parse(addresses: &[&str]) -> Vec<IpAddr> {
    addresses.iter().map(|text| text.parse().unwrap()).collect()
}

/// Waits for the event.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it has not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn has(name: &Name, addresses: &[&str]) -> bool {
    name.addresses()[..] == parse(addresses)[..]
}

#[test]
fn a_name_follows_its_records() {
    let server = Server::start(&["192.0.2.1", "2001:db8::1"]);
    let names = Names::new(server.lookup());
    let name = names.watch("origin.test");
    assert!(names.begin(Duration::from_secs(60)).unwrap());
    assert!(has(&name, &["192.0.2.1", "2001:db8::1"]), "{:?}", name.addresses());
    let first: Vec<_> = (0..3).map(|_| name.in_turn().next().unwrap()).collect();
    assert_eq!(first, parse(&["192.0.2.1", "2001:db8::1", "192.0.2.1"]));
    assert_eq!(name.in_turn().collect::<Vec<_>>(), parse(&["2001:db8::1", "192.0.2.1"]));

    server.change(|zone| zone.addresses = parse(&["192.0.2.2"]));
    wait_until(|| has(&name, &["192.0.2.2"]));

    // No server answers: the last answer counts, and the next one is taken.
    server.change(|zone| zone.fails = true);
    let before = server.questions();
    wait_until(|| server.questions() > before + 1);
    assert!(has(&name, &["192.0.2.2"]));
    server.change(|zone| (zone.fails, zone.addresses) = (false, parse(&["192.0.2.3"])));
    wait_until(|| has(&name, &["192.0.2.3"]));
}

#[test]
fn a_name_is_watched_once_and_no_longer_than_it_is_held() {
    let server = Server::start(&["192.0.2.1"]);
    let names = Names::new(server.lookup());
    let name = names.watch("origin.test");
    assert!(Arc::ptr_eq(&name, &names.watch("Origin.TEST")));
    assert!(names.begin(Duration::from_secs(60)).unwrap());
    drop(name);
    let other = names.watch("other.test");
    assert!(names.begin(Duration::from_secs(60)).unwrap());
    assert_eq!((other.host(), other.addresses().len()), ("other.test", 1));
    drop(names);
    // The thread is gone: nothing is looked up any more, but what was found counts.
    other.hurry();
    assert!(has(&other, &["192.0.2.1"]));
}

/// A reload may name other servers.
#[test]
fn other_servers_are_asked_from_then_on() {
    let (one, other) = (Server::start(&["192.0.2.1"]), Server::start(&["192.0.2.2"]));
    let names = Names::new(one.lookup());
    let name = names.watch("origin.test");
    assert!(names.begin(Duration::from_secs(60)).unwrap());
    assert!(has(&name, &["192.0.2.1"]));
    names.ask(&[other.address]);
    wait_until(|| has(&name, &["192.0.2.2"]));
}

/// Without a thread no name is looked up: a configuration that is only inspected asks no DNS server.
#[test]
fn nothing_is_looked_up_before_the_beginning() {
    let server = Server::start(&["192.0.2.1"]);
    let names = Names::new(server.lookup());
    assert!(names.begin(Duration::ZERO).unwrap(), "no names");
    let name = names.watch("origin.test");
    assert!(name.addresses().is_empty() && name.in_turn().next().is_none());
    assert_eq!(server.questions(), 0);
}

#[test]
fn each_way_of_a_lookup_is_gone() {
    let server = Server::start(&["192.0.2.1"]);
    let found = |text: &str| Outcome::Found { addresses: parse(&[text]), ttl_s: 1 };
    let lookup = server.lookup();
    assert_eq!(lookup.look_up("origin.test"), found("192.0.2.1"));
    server.change(|zone| zone.truncates = true);
    assert_eq!(lookup.look_up("origin.test"), found("192.0.2.1"), "over TCP");
    server.change(|zone| zone.fails = true);
    assert_eq!(lookup.look_up("origin.test"), Outcome::Failed(LookupError::Refused));
    server.change(|zone| *zone = Zone::default());
    assert_eq!(lookup.look_up("origin.test"), Outcome::Absent);

    // The next server is asked if the first is not there.
    let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    server.change(|zone| zone.addresses = parse(&["2001:db8::1"]));
    let two = Lookup { servers: vec![gone, server.address], ..server.lookup() };
    assert_eq!(two.look_up("origin.test"), found("2001:db8::1"));
}

#[test]
fn hosts_come_first_and_are_read_each_time() {
    let server = Server::start(&["192.0.2.1"]);
    let file = tempfile::NamedTempFile::new().unwrap();
    let lookup = Lookup { hosts: file.path().into(), ..server.lookup() };
    let address = |outcome| match outcome {
        Outcome::Found { addresses, .. } => addresses[0].to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(address(lookup.look_up("origin.test")), "192.0.2.1");
    std::fs::write(file.path(), "192.0.2.7 origin.test\n").unwrap();
    let before = server.questions();
    assert_eq!(address(lookup.look_up("origin.test")), "192.0.2.7");
    assert_eq!(server.questions(), before, "no server is asked");
}

/// Without DNS servers the system may know the name.
#[test]
fn the_system_is_asked_last() {
    let lookup =
        Lookup { hosts: "/nonexistent".into(), resolv_conf: "/nonexistent".into(), servers: Vec::new() };
    assert_eq!(lookup.look_up("no-such-name.invalid"), Outcome::Failed(LookupError::NoServer));
    // Of the names in the system's own file, which is not read here.
    assert!(matches!(lookup.look_up("ip6-localhost"), Outcome::Found { .. } | Outcome::Failed(_)));
}
